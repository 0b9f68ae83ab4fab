/**
 * Calls the node API, the only way by which an agent changes anything in the cluster. Any status is a value; an error
 * means that no answer came.
 */
import { RolloutError } from "../../../infra/errors.ts";
import { type Carrier, exchange, readRetryAfter, withinDeadline } from "../../../infra/http.ts";
import { ROUTES } from "../routes.ts";
import type { ShadowStatus } from "../shadow.ts";

export type NodeApiRoute = Exclude<keyof typeof ROUTES, "convert" | "ping">;

export interface NodeApiAnswer {
  readonly status: number;
  readonly text: string;
  /** Milliseconds after which to ask again, if the API says so. */
  readonly retryAfterMs: number | undefined;
}

interface NodeApiRequest {
  readonly status?: ShadowStatus;
  /** The shadow's resourceVersion that the status was computed from. */
  readonly ifMatch?: string;
}

export type CallNodeApi = (route: NodeApiRoute, request?: NodeApiRequest) => Promise<NodeApiAnswer>;

interface NodeApiOptions extends Carrier {
  /** `https://brupop-apiserver.brupop-bottlerocket-aws.svc.cluster.local:443`. */
  readonly url: URL;
  readonly node: { readonly name: string; readonly uid: string };
  /** Reads the node's UID after a 403: a Node that was deleted is registered again with another one. By default it stays. */
  readonly readUid?: () => Promise<string>;
  /** The token and the CA are read again for each request: the kubelet replaces both. */
  readonly readToken: () => Promise<string>;
  readonly readCa: () => Promise<string>;
}

/** Milliseconds; the API answers by 90 % of its own timeout, 10 s by default. */
const ANSWER_MS = 30_000;
const FORBIDDEN = 403;

export function createNodeApi({ url, node, readUid, readToken, readCa, open, clock }: NodeApiOptions): CallNodeApi {
  // The token of each request must not be readable on its way.
  if (url.protocol !== "https:")
    throw new RolloutError("BadConfiguration", `bad configuration: the node API at ${url.href} is not served over TLS`);
  let { uid } = node;
  return async (route, { status, ifMatch } = {}) => {
    const { method, path } = ROUTES[route];
    const target = new URL(path, url);
    const headers = {
      BrupopNodeName: node.name,
      BrupopNodeUid: uid,
      BrupopK8sAuthToken: (await readToken()).trim(),
      ...(status && { "content-type": "application/json" }),
      ...(ifMatch !== undefined && { "if-match": `"${ifMatch}"` }),
    };
    const sending = { method, headers, body: status && JSON.stringify(status), ca: await readCa(), open };
    const answer = await withinDeadline(`${method} ${target.href}`, { timeoutMs: ANSWER_MS, clock }, (signal) =>
      exchange(target, { ...sending, signal }),
    );
    if (answer.status === FORBIDDEN && readUid) uid = await readUid().catch(() => uid);
    return { status: answer.status, text: answer.text, retryAfterMs: readRetryAfter(answer.headers) };
  };
}
