/**
 * Loaded into a reconciler under test (`--import`): pods' DNS names resolve to this machine, where one server
 * stands for all pods.
 */
import dns from "node:dns";

const { lookup } = dns;
const isPod = (name: string): boolean => /\.svc\.cluster\.local\.?$/.test(name);

dns.lookup = ((name: string, ...rest: [never, never]) =>
  lookup(isPod(name) ? "localhost" : name, ...rest)) as typeof dns.lookup;
