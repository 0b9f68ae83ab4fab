/** Ending without cutting anybody off. */
import type { Server } from "node:http";
import type { Clock } from "../infra/clock.ts";
import type { Work } from "./work.ts";

/** Longer than the API server keeps an idle connection (90 s), so that none is closed under a request that is on its way. */
export const IDLE_CONNECTION_MS = 180_000;
/** A connection that was kept alive becomes idle only with its last answer. */
const LOOK_MS = 50;

/** Stops accepting, and resolves once all requests are answered and all work is done, or after `graceMs`. */
export async function drain(servers: readonly Server[], work: Work, graceMs: number, clock: Clock): Promise<void> {
  const ended = new AbortController();
  const late = clock.sleep(graceMs, ended.signal);
  const quiet = Promise.all([...servers.map((server) => close(server, ended.signal, clock)), work.settled()]);
  await Promise.race([quiet, late]);
  ended.abort();
  for (const server of servers) server.closeAllConnections();
}

async function close(server: Server, ended: AbortSignal, clock: Clock): Promise<void> {
  const closed = new AbortController();
  server.close(() => closed.abort());
  while (!closed.signal.aborted && !ended.aborted) {
    server.closeIdleConnections();
    await clock.sleep(LOOK_MS, closed.signal);
  }
}
