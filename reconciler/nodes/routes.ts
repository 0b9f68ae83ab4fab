/**
 * The API between agents and functions, as the original's agents speak it: the node is named by the headers, never by
 * the body.
 */

const BASE = "/bottlerocket-node-resource";

export const ROUTES = {
  /** Creates the shadow; 200 with the shadow also if it exists and belongs to the node. */
  create: { method: "POST", path: BASE },
  /** Body and answer: the status (`ShadowStatus`). */
  update: { method: "PUT", path: BASE },
  /**
   * One round of evictions. 200 only once the node is drained; otherwise 503 with Retry-After. Both with a
   * `DrainAnswer`.
   */
  cordonAndDrain: { method: "POST", path: `${BASE}/cordon-and-drain` },
  /** Undoes our own cordon and label only. */
  uncordon: { method: "POST", path: `${BASE}/uncordon` },
  excludeFromLb: { method: "POST", path: `${BASE}/exclude-from-lb` },
  removeExclusionFromLb: { method: "POST", path: `${BASE}/remove-exclusion-from-lb` },
  convert: { method: "POST", path: "/crdconvert" },
  ping: { method: "GET", path: "/ping" },
} as const;

/** Lower case, as Node gives header names. */
export const HEADERS = {
  nodeName: "brupopnodename",
  nodeUid: "brupopnodeuid",
  /** A raw token, without `Bearer`. */
  token: "brupopk8sauthtoken",
  /**
   * On PUT, optional: the shadow's resourceVersion that the status was computed from, 409 if it has changed.
   */
  ifMatch: "if-match",
} as const;

/** The audience of the agents' tokens. */
export const AUDIENCE = "brupop-apiserver";

/** The body of every answer other than 2xx and the 503 of a drain. */
export interface ApiError {
  readonly error: string;
  readonly code: "BadRequest" | "Unauthorized" | "Forbidden" | "NotFound" | "Conflict" | "Unavailable";
}
