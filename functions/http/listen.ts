/** Makes servers listen. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Rejects if the port is in use. Without a host it listens on all addresses; port 0 takes a free one. */
export function listen(server: Server, port: number, host: string | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, ...(host !== undefined && { host }) }, resolve);
  });
}

/** The port on which it listens. */
export const portOf = (server: Server): number => (server.address() as AddressInfo).port;
