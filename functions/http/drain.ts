/** Ends servers without cutting off a request. */
import type { Server } from "node:http";
import type { Clock } from "../../infra/clock.ts";
import type { BackgroundTasks } from "./background-tasks.ts";

/** Longer than the API server keeps an idle connection (90 s), so that none is closed while a request is on its way. */
export const IDLE_CONNECTION_MS = 180_000;
/** Milliseconds that webhooks may need after their deadline, to cancel preparations and release Leases. */
export const AFTERWARDS_MS = 6000;
/** Milliseconds between two checks: a kept-alive connection becomes idle only after its last answer. */
const CHECK_MS = 50;
/** Milliseconds without an open request, as one may be on its way. */
const QUIET_MS = 500;

/** A server whose unanswered requests are counted. */
export interface CountedServer {
  readonly server: Server;
  readonly unanswered: () => number;
}

/** Counts the requests of a server from now on. */
export function countRequests(server: Server): CountedServer {
  let unanswered = 0;
  server.prependListener("request", (_request, response) => {
    unanswered++;
    response.once("close", () => unanswered--);
  });
  return { server, unanswered: () => unanswered };
}

/** Stops accepting; resolves once all requests are answered and all tasks have ended, or after `graceMs` milliseconds. */
export async function drain(
  servers: readonly CountedServer[],
  tasks: BackgroundTasks,
  { graceMs, clock }: { readonly graceMs: number; readonly clock: Clock },
): Promise<void> {
  const ended = new AbortController();
  const late = clock.sleep(graceMs, ended.signal);
  const quiet = Promise.all([...servers.map((counted) => close(counted, ended.signal, clock)), tasks.settled()]);
  await Promise.race([quiet, late]);
  ended.abort();
  for (const { server } of servers) server.closeAllConnections();
}

/** Node does not count a connection without a first request as idle: such connections are closed after `QUIET_MS`. */
async function close({ server, unanswered }: CountedServer, ended: AbortSignal, clock: Clock): Promise<void> {
  const closed = new AbortController();
  server.close(() => closed.abort());
  let quiet = 0;
  while (!closed.signal.aborted && !ended.aborted) {
    server.closeIdleConnections();
    quiet = unanswered() === 0 ? quiet + 1 : 0;
    if (quiet * CHECK_MS >= QUIET_MS) server.closeAllConnections();
    await clock.sleep(CHECK_MS, closed.signal);
  }
}
