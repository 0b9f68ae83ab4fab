import { Agent } from "node:https";
import type { Connection } from "../../infra/kubernetes/connection.ts";
import type { Emulator } from "../emulator/index.ts";

/** A connection of the embedded cluster's administrator. */
export function connectionOf({ url, caPem, token }: Emulator): Connection {
  const agent = new Agent({ keepAlive: true });
  return {
    server: new URL(url),
    authorize: () => Promise.resolve({ ca: caPem, headers: { authorization: `Bearer ${token}` }, agent }),
    close: () => agent.destroy(),
  };
}
