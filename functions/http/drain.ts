/** Ends servers without cutting off a request. */
import type { Server, ServerResponse } from "node:http";
import type { Clock } from "../../infra/clock.ts";
import type { BackgroundTasks } from "./rim.ts";

/** Longer than the API server keeps an idle connection (90 s), so that none is closed while a request is on its way. */
const IDLE_CONNECTION_MS = 180_000;
/**
 * Timeouts of a server that API servers call. API servers open more connections than they need at once and keep the
 * rest. Node.js measures the time for a request from the start of the connection, and an API server does not repeat a
 * request that this timeout cuts off. A request that has arrived has its own deadline (rim.ts).
 */
export const CONNECTION_TIMEOUTS = {
  keepAliveTimeout: IDLE_CONNECTION_MS,
  headersTimeout: IDLE_CONNECTION_MS,
  requestTimeout: IDLE_CONNECTION_MS,
};
/** Milliseconds that webhooks may need after their deadline, to cancel preparations and release Leases. */
export const AFTERWARDS_MS = 6000;
/** Milliseconds between two checks whether a request has arrived. */
const CHECK_MS = 50;
/**
 * Milliseconds without a request until idle connections are closed. A request that arrives during the close is lost.
 * After this time, the connections in use have had their last answer, and the others are rarely used.
 */
const QUIET_MS = 3000;

/** A server whose requests are counted. */
export interface CountedServer {
  readonly server: Server;
  /** All requests so far. */
  readonly requests: () => number;
  readonly unanswered: () => number;
  /** From now on each answer is the last on its connection, and tells the client so. */
  readonly sayGoodbye: () => void;
}

/** Counts the requests of a server from now on. */
export function countRequests(server: Server): CountedServer {
  // No Set: one that changes with each request keeps responses until the next full garbage collection.
  const open: ServerResponse[] = [];
  let requests = 0;
  let isLeaving = false;
  server.prependListener("request", (_request, response: ServerResponse) => {
    requests++;
    open.push(response);
    if (isLeaving) endConnection(response);
    response.once("close", () => open.splice(open.indexOf(response), 1));
  });
  return {
    server,
    requests: () => requests,
    unanswered: () => open.length,
    sayGoodbye() {
      isLeaving = true;
      for (const response of open) endConnection(response);
    },
  };
}

function endConnection(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader("connection", "close");
}

/**
 * Ends connections one answer at a time, and the server once no request has come for `QUIET_MS`. Resolves once all
 * requests are answered and all tasks have ended, or after `graceMs` milliseconds.
 */
export async function drain(
  servers: readonly CountedServer[],
  tasks: BackgroundTasks,
  { graceMs, clock }: { readonly graceMs: number; readonly clock: Clock },
): Promise<void> {
  const ended = new AbortController();
  const late = clock.sleep(graceMs, ended.signal);
  const quiet = Promise.all([...servers.map((counted) => untilQuiet(counted, ended.signal, clock)), tasks.settled()]);
  await Promise.race([quiet, late]);
  ended.abort();
  for (const { server } of servers) server.close().closeAllConnections();
}

/** Resolves once no request has come or been open for `QUIET_MS`, or no connection is left. */
async function untilQuiet(counted: CountedServer, ended: AbortSignal, clock: Clock): Promise<void> {
  counted.sayGoodbye();
  let seen = counted.requests();
  for (let quietMs = 0; quietMs < QUIET_MS && !ended.aborted && (await hasConnections(counted.server));) {
    await clock.sleep(CHECK_MS, ended);
    const isQuiet = counted.unanswered() === 0 && counted.requests() === seen;
    quietMs = isQuiet ? quietMs + CHECK_MS : 0;
    seen = counted.requests();
  }
}

const hasConnections = (server: Server): Promise<boolean> =>
  new Promise((resolve) => server.getConnections((error, count) => resolve(error !== null || count > 0)));
