/** Servers of tests, which only this machine can reach. */
import { createServer, type AddressInfo, type LookupFunction, type Server } from "node:net";

/** Lets the server listen on a port that is free; resolves with it. */
export async function listen(server: Server, host = "127.0.0.1"): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

/** A port for a process that has to be told one. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Every name is this machine. */
export const toLoopback: LookupFunction = (_name, options, done) =>
  options.all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);
