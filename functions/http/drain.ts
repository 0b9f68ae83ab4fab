/** Ending without cutting anybody off. */
import { subscribe } from "node:diagnostics_channel";
import type { Server, ServerResponse } from "node:http";
import type { Clock } from "../../infra/clock.ts";
import type { BackgroundTasks } from "./background-tasks.ts";

/** Longer than the API server keeps an idle connection (90 s), so that none is closed under a request that is on its way. */
export const IDLE_CONNECTION_MS = 180_000;
/** What handlers may still do when their request's time is over: take back what was half done, and free what they held. */
export const AFTERWARDS_MS = 6000;
/** A connection that was kept alive becomes idle only with its last answer. */
const LOOK_MS = 50;
/** For a request that may be on its way. */
const UNUSED_MS = 500;

/** Stops accepting, and resolves once all requests are answered and all work is done, or after `graceMs`. */
export async function drain(servers: readonly Server[], tasks: BackgroundTasks, graceMs: number, clock: Clock): Promise<void> {
  const ended = new AbortController();
  const late = clock.sleep(graceMs, ended.signal);
  const quiet = Promise.all([...servers.map((server) => close(server, ended.signal, clock)), tasks.settled()]);
  await Promise.race([quiet, late]);
  ended.abort();
  for (const server of servers) server.closeAllConnections();
}

/** Requests that each server has not answered yet. */
const unanswered = new WeakMap<Server, number>();
subscribe("http.server.request.start", (message) => {
  const { server, response } = message as { readonly server: Server; readonly response: ServerResponse };
  unanswered.set(server, (unanswered.get(server) ?? 0) + 1);
  response.once("close", () => unanswered.set(server, (unanswered.get(server) ?? 1) - 1));
});

/** A connection on which no request has come yet does not count as idle: one that stays so is closed after a moment. */
async function close(server: Server, ended: AbortSignal, clock: Clock): Promise<void> {
  const closed = new AbortController();
  server.close(() => closed.abort());
  let quiet = 0;
  while (!closed.signal.aborted && !ended.aborted) {
    server.closeIdleConnections();
    quiet = (unanswered.get(server) ?? 0) === 0 ? quiet + 1 : 0;
    if (quiet * LOOK_MS >= UNUSED_MS) server.closeAllConnections();
    await clock.sleep(LOOK_MS, closed.signal);
  }
}
