/** Servers for tests that only this machine can reach. */
import { createServer, type AddressInfo, type LookupFunction, type Server } from "node:net";

/** Makes the server listen on a free port; resolves with the port. */
export async function listen(server: Server, host = "127.0.0.1"): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

/** Returns a free port for a process that cannot choose one itself. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A DNS lookup that resolves every name to this machine. */
export const toLoopback: LookupFunction = (_name, options, done) =>
  options.all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);
