/**
 * The node API behind the rim (rim.ts), with the routes that the agents of the original use:
 *
 *   1. the route                                                       else 404, 405
 *   2. an agent that runs on the node it speaks for                    else 400, 401, 403
 *   3. the body of a PUT: bounded, in time, JSON                       else 413, 408, 400
 *   4. the route's work, until the deadline                            else 503 with Retry-After
 *   5. the answer, one log line, the metrics; none of them contains any part of the token
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { unlessAborted } from "../../infra/deadline.ts";
import { hasCode, messageOf } from "../../infra/errors.ts";
import { HEADERS, ROUTES } from "../../reconciler/nodes/routes.ts";
import { type Exchange, type Handler, type HttpAnswer, type Rim, serveEndpoint, TIMEOUT_SHARE } from "../http/rim.ts";
import { cordonAndDrain, excludeFromLoadBalancers, removeExclusion, uncordon } from "./drain-node.ts";
import { identifyCaller } from "./identify-caller.ts";
import { type NodeAnswer, type NodeRequest, type NodeRoute, refuseNode } from "./node-answer.ts";
import { createShadow, updateStatus } from "./shadow.ts";

type NodeRouteName = Exclude<keyof typeof ROUTES, "convert" | "ping">;

const NODE_ROUTES: Readonly<Record<NodeRouteName, NodeRoute>> = {
  create: createShadow,
  update: updateStatus,
  cordonAndDrain,
  uncordon,
  excludeFromLb: excludeFromLoadBalancers,
  removeExclusionFromLb: removeExclusion,
};

interface NodeApi extends Pick<NodeRequest, "cluster" | "namespace"> {
  readonly rim: Pick<Rim, "clock" | "log" | "metrics" | "tasks" | "readBody" | "requestTimeoutMs">;
}

const NAMES = Object.keys(NODE_ROUTES) as NodeRouteName[];

/** The handlers by path. */
export function serveNodeApi(api: NodeApi): ReadonlyMap<string, Handler> {
  const byPath = Map.groupBy(NAMES, (name) => ROUTES[name].path);
  const handlers = [...byPath].map(([path, names]): [string, Handler] => {
    const byMethod = new Map(names.map((name) => [ROUTES[name].method as string, serveRoute(api, name)]));
    const allow = [...byMethod.keys()].join(", ");
    return [
      path,
      async (request, response) => {
        const handler = byMethod.get(request.method ?? "");
        if (handler) await handler(request, response);
        else response.writeHead(405, { allow, connection: "close" }).end();
      },
    ];
  });
  return new Map([...handlers, [ROUTES.ping.path, ping]]);
}

async function ping({ method }: IncomingMessage, response: ServerResponse): Promise<void> {
  if (method === ROUTES.ping.method) response.writeHead(200, { "content-type": "text/plain" }).end("pong");
  else response.writeHead(405, { allow: ROUTES.ping.method }).end();
}

function serveRoute(api: NodeApi, name: NodeRouteName): Handler {
  const { log, tasks, requestTimeoutMs } = api.rim;
  const answer = async (exchange: Exchange): Promise<HttpAnswer> => {
    const work = tasks.track(answerFor(api, name, exchange));
    const answered = await unlessAborted(work, exchange.signal).catch((error: unknown) => answerTrouble(error));
    const { status, body } = answered;
    const node = exchange.request.headers[HEADERS.nodeName];
    return {
      ...writeAnswer(answered),
      log(seconds) {
        const fields = { route: name, node, status, seconds };
        if (status < 400) log.info("node request", fields);
        else log[status >= 500 ? "info" : "warn"]("node request refused", { ...fields, answer: body });
      },
    };
  };
  return serveEndpoint({ route: `node_${name}`, deadlineMs: () => TIMEOUT_SHARE * requestTimeoutMs, answer }, api.rim);
}

async function answerFor(
  { rim, cluster, namespace }: NodeApi,
  name: NodeRouteName,
  { request, signal, deadlineMs }: Exchange,
): Promise<NodeAnswer> {
  const call = { deadlineMs, signal };
  const caller = await identifyCaller(request.headers, { cluster, namespace, call });
  if ("status" in caller) return caller;
  const received = name === "update" ? await rim.readBody(request, signal) : { value: undefined };
  if ("status" in received) return { status: received.status, body: { error: received.message, code: "BadRequest" } };
  return await NODE_ROUTES[name]({
    cluster,
    namespace,
    clock: rim.clock,
    log: rim.log,
    node: caller.node,
    body: received.value,
    ifMatch: readVersion(request.headers[HEADERS.ifMatch]),
    call,
  });
}

/** An entity tag, quoted or not. */
const readVersion = (header: string | undefined): string | undefined => header?.replace(/^"(.*)"$/, "$1");

/** The answer for an error of the API server or of the connection. */
function answerTrouble(error: unknown): NodeAnswer {
  if (hasCode(error, "NotFound")) return refuseNode("NotFound", error.message);
  if (hasCode(error, "Conflict", "AlreadyExists")) return refuseNode("Conflict", error.message);
  if (hasCode(error, "Invalid")) return refuseNode("BadRequest", error.message);
  return refuseNode("Unavailable", messageOf(error));
}

function writeAnswer({ status, body, retryAfterSeconds }: NodeAnswer): HttpAnswer {
  const text = body === undefined ? "" : JSON.stringify(body);
  return {
    status,
    text,
    headers: {
      ...(text && { "content-type": "application/json" }),
      ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
      ...(status === 401 && { "www-authenticate": "Bearer" }),
    },
  };
}
