/** Ends servers without cutting off a request. */
import { subscribe } from "node:diagnostics_channel";
import type { Server, ServerResponse } from "node:http";
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

/** Stops accepting; resolves once all requests are answered and all tasks have ended, or after `graceMs` milliseconds. */
export async function drain(
  servers: readonly Server[],
  tasks: BackgroundTasks,
  { graceMs, clock }: { readonly graceMs: number; readonly clock: Clock },
): Promise<void> {
  const ended = new AbortController();
  const late = clock.sleep(graceMs, ended.signal);
  const quiet = Promise.all([...servers.map((server) => close(server, ended.signal, clock)), tasks.settled()]);
  await Promise.race([quiet, late]);
  ended.abort();
  for (const server of servers) server.closeAllConnections();
}

/** Unanswered requests of each server. */
const unanswered = new WeakMap<Server, number>();
subscribe("http.server.request.start", (message) => {
  const { server, response } = message as { readonly server: Server; readonly response: ServerResponse };
  unanswered.set(server, (unanswered.get(server) ?? 0) + 1);
  response.once("close", () => unanswered.set(server, (unanswered.get(server) ?? 1) - 1));
});

/** Node does not count a connection without a first request as idle: such connections are closed after `QUIET_MS`. */
async function close(server: Server, ended: AbortSignal, clock: Clock): Promise<void> {
  const closed = new AbortController();
  server.close(() => closed.abort());
  let quiet = 0;
  while (!closed.signal.aborted && !ended.aborted) {
    server.closeIdleConnections();
    quiet = (unanswered.get(server) ?? 0) === 0 ? quiet + 1 : 0;
    if (quiet * CHECK_MS >= QUIET_MS) server.closeAllConnections();
    await clock.sleep(CHECK_MS, closed.signal);
  }
}
