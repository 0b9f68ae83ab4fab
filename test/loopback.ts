/** Servers for tests that only this machine can reach. */
import { createServer, type AddressInfo, type LookupFunction, type Server } from "node:net";

/** Makes the server listen on a free port; resolves with the port. */
export async function listen(server: Server, host = "127.0.0.1"): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

/** Below the ports that the system gives to connections and to servers that leave the choice to it. */
const OWN_PORTS = { from: 10_000, processes: 1000, each: 20 };
let asked = 0;

/**
 * Returns a free port for a process that cannot choose one itself: one that nobody gets by chance until the process has
 * it. Test processes at the same time have ports of their own, as their ids are near each other.
 */
export async function freePort(): Promise<number> {
  const { from, processes, each } = OWN_PORTS;
  for (let misses = 0; misses < each; misses++) {
    const port = from + (process.pid % processes) * each + (asked++ % each);
    const server = createServer();
    const isFree = new Promise<boolean>((resolve) =>
      server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true)),
    );
    if (!(await isFree)) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
  throw new Error(`the ${each} ports of this process are taken`);
}

/** A DNS lookup that resolves every name to this machine. */
export const toLoopback: LookupFunction = (_name, options, done) =>
  options.all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);
