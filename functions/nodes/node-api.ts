/**
 * The rim of the node API, whose routes the agents of the original know, too:
 *
 *   1. the route                                                       else 404, 405
 *   2. an agent that runs on the node it speaks for                    else 400, 401, 403
 *   3. the body of a PUT: bounded, in time, JSON                       else 413, 408, 400
 *   4. the route's work, until the deadline                            else 503 with Retry-After
 *   5. the answer, one log line, the metrics; never anything of the token
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { startDeadline, unlessAborted } from "../../infra/deadline.ts";
import { hasCode, messageOf } from "../../infra/errors.ts";
import { HEADERS, ROUTES } from "../../reconciler/nodes/routes.ts";
import type { Handler, Rim } from "../http/admission.ts";
import type { Identify } from "./identify-caller.ts";
import { type NodeAnswer, type NodeRequest, type NodeRoute, refuse } from "./node-answer.ts";

export type NodeRouteName = Exclude<keyof typeof ROUTES, "convert" | "ping">;
export type NodeRoutes = Readonly<Record<NodeRouteName, NodeRoute>>;

export interface NodeApi {
  readonly rim: Pick<Rim, "clock" | "log" | "metrics" | "tasks" | "readBody" | "requestTimeoutMs">;
  readonly identify: Identify;
  readonly routes: NodeRoutes;
}

/** Share of the request timeout that the work may use; the rest is for the answer. */
const TIMEOUT_SHARE = 0.9;

const NAMES = Object.keys(ROUTES).filter((name): name is NodeRouteName => name !== "convert" && name !== "ping");

/** The handlers by path. None of them rejects. */
export function serveNodeApi(api: NodeApi): ReadonlyMap<string, Handler> {
  const byPath = Map.groupBy(NAMES, (name) => ROUTES[name].path);
  const handlers = [...byPath].map(([path, names]): [string, Handler] => {
    const byMethod = new Map(names.map((name) => [ROUTES[name].method as string, name]));
    return [path, (request, response) => serveOne(api, byMethod, { request, response })];
  });
  return new Map([...handlers, [ROUTES.ping.path, ping]]);
}

async function ping({ method }: IncomingMessage, response: ServerResponse): Promise<void> {
  if (method === ROUTES.ping.method) response.writeHead(200, { "content-type": "text/plain" }).end("pong");
  else response.writeHead(405, { allow: ROUTES.ping.method }).end();
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

async function serveOne(
  api: NodeApi,
  byMethod: ReadonlyMap<string, NodeRouteName>,
  { request, response }: Exchange,
): Promise<void> {
  const { clock, log, metrics, tasks, requestTimeoutMs } = api.rim;
  const name = byMethod.get(request.method ?? "");
  if (name === undefined)
    return void response.writeHead(405, { allow: [...byMethod.keys()].join(", "), connection: "close" }).end();
  const route = `node_${name}`;
  const start = clock.monotonic();
  metrics.requestStarted("POST", route);
  using deadline = startDeadline(TIMEOUT_SHARE * requestTimeoutMs);
  response.on("close", () => {
    if (!response.writableFinished) deadline.cancel();
  });
  const work = tasks.track(answerFor(api, name, { request, signal: deadline.signal }));
  const answer = await unlessAborted(work, deadline.signal).catch((error: unknown) => answerTrouble(error));
  const sentBytes = send(response, answer);
  const seconds = (clock.monotonic() - start) / 1000;
  metrics.requestDone({ method: "POST", route, status: answer.status, seconds, receivedBytes: 0, sentBytes });
  const fields = { route: name, node: request.headers[HEADERS.nodeName], status: answer.status, seconds };
  if (answer.status < 400) log.info("node request", fields);
  else log[answer.status >= 500 ? "info" : "warn"]("node request refused", { ...fields, answer: answer.body });
}

interface Receiving {
  readonly request: IncomingMessage;
  readonly signal: AbortSignal;
}

async function answerFor(
  { rim, identify, routes }: NodeApi,
  name: NodeRouteName,
  { request, signal }: Receiving,
): Promise<NodeAnswer> {
  const deadlineMs = TIMEOUT_SHARE * rim.requestTimeoutMs;
  const caller = await identify(request.headers, { deadlineMs, signal });
  if ("status" in caller) return caller;
  const received = name === "update" ? await rim.readBody(request, signal) : { value: undefined };
  if ("status" in received) return { status: received.status, body: { error: received.message, code: "BadRequest" } };
  const nodeRequest: NodeRequest = {
    node: caller.node,
    body: received.value,
    ifMatch: readVersion(request.headers[HEADERS.ifMatch]),
    call: { deadlineMs, signal },
    log: rim.log,
  };
  return await routes[name](nodeRequest);
}

/** An entity tag, quoted or not. */
const readVersion = (header: string | undefined): string | undefined => header?.replace(/^"(.*)"$/, "$1");

/** The answer for an error of the API server or of the connection. */
function answerTrouble(error: unknown): NodeAnswer {
  if (hasCode(error, "NotFound")) return refuse("NotFound", error.message);
  if (hasCode(error, "Conflict", "AlreadyExists")) return refuse("Conflict", error.message);
  if (hasCode(error, "Invalid")) return refuse("BadRequest", error.message);
  return refuse("Unavailable", messageOf(error));
}

function send(response: ServerResponse, { status, body, version, retryAfterSeconds }: NodeAnswer): number {
  const text = body === undefined ? "" : JSON.stringify(body);
  const bytes = Buffer.byteLength(text);
  response.writeHead(status, {
    ...(text && { "content-type": "application/json" }),
    "content-length": bytes,
    ...(version !== undefined && { etag: `"${version}"` }),
    ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
    ...(status === 401 && { "www-authenticate": "Bearer" }),
  });
  response.end(text);
  return bytes;
}
