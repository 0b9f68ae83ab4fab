/** Loaded into a reconciler under test (`--import`): names of pods resolve to this machine, where a server plays them all. */
import dns from "node:dns";

const { lookup } = dns;
const isPod = (name: string): boolean => /\.svc\.cluster\.local\.?$/.test(name);

dns.lookup = ((name: string, ...rest: [never, never]) => lookup(isPod(name) ? "localhost" : name, ...rest)) as typeof dns.lookup;
