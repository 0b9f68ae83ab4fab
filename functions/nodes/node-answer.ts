/** The contract between the rim of the node API (node-api.ts) and its routes. */
import type { Clock } from "../../infra/clock.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import type { Node } from "../../infra/kubernetes/resources.ts";
import type { Log } from "../../infra/log.ts";
import type { ApiError } from "../../reconciler/nodes/routes.ts";

export interface NodeAnswer {
  readonly status: number;
  /** Sent as JSON; no body if it is left out. */
  readonly body?: unknown;
  readonly retryAfterSeconds?: number;
}

/** A request of an agent that speaks for this node, and what its answer is made with. */
export interface NodeRequest {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  /** The namespace of the shadows. */
  readonly namespace: string;
  /** As read for this request. */
  readonly node: Node;
  readonly body: unknown;
  /** The shadow's resourceVersion that the caller has seen. */
  readonly ifMatch: string | undefined;
  /** The bounds of the request. */
  readonly call: Call;
}

export type NodeRoute = (request: NodeRequest) => Promise<NodeAnswer>;

const CODES: Readonly<Record<ApiError["code"], number>> = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  Conflict: 409,
  Unavailable: 503,
};
/** Seconds until an agent retries a request that failed here. */
const RETRY_SECONDS = 5;

/** A refusal; a temporary one says when to retry. */
export function refuseNode(code: ApiError["code"], error: string): NodeAnswer {
  const body: ApiError = { error, code };
  return { status: CODES[code], body, ...(code === "Unavailable" && { retryAfterSeconds: RETRY_SECONDS }) };
}
