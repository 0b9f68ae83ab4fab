/**
 * Calls the node API, the only way by which an agent changes anything in the cluster. Any status is a value; an error
 * means that no answer came.
 */
import { startDeadline } from "../../../infra/deadline.ts";
import { messageOf, RolloutError } from "../../../infra/errors.ts";
import { readText, requestOnce } from "../../../infra/http.ts";
import { ROUTES } from "../routes.ts";
import type { ShadowStatus } from "../shadow.ts";

export type NodeApiRoute = Exclude<keyof typeof ROUTES, "convert" | "ping">;

export interface NodeApiAnswer {
  readonly status: number;
  readonly text: string;
  /** Milliseconds after which to ask again, if the API says so. */
  readonly retryAfterMs: number | undefined;
}

export interface NodeApiRequest {
  readonly status?: ShadowStatus;
  /** The shadow's resourceVersion that the status was computed from. */
  readonly ifMatch?: string;
}

export type CallNodeApi = (route: NodeApiRoute, request?: NodeApiRequest) => Promise<NodeApiAnswer>;

export interface NodeApiOptions {
  /** `https://brupop-apiserver.brupop-bottlerocket-aws.svc.cluster.local:443`. */
  readonly url: URL;
  readonly node: { readonly name: string; readonly uid: string };
  /** The token and the CA are read again for each request: the kubelet replaces both. */
  readonly readToken: () => Promise<string>;
  readonly readCa: () => Promise<string>;
}

/** Milliseconds; the API answers by 90 % of its own timeout, 10 s by default. */
const ANSWER_MS = 30_000;
const MAX_ANSWER_LENGTH = 1024 * 1024;

export function createNodeApi({ url, node, readToken, readCa }: NodeApiOptions): CallNodeApi {
  // The token of each request must not be readable on its way.
  if (url.protocol !== "https:")
    throw new RolloutError("BadConfiguration", `bad configuration: the node API at ${url.href} is not served over TLS`);
  return async (route, { status, ifMatch } = {}) => {
    const body = status === undefined ? "" : JSON.stringify(status);
    const headers = {
      BrupopNodeName: node.name,
      BrupopNodeUid: node.uid,
      BrupopK8sAuthToken: (await readToken()).trim(),
      ...(body && { "content-type": "application/json" }),
      ...(ifMatch !== undefined && { "if-match": `"${ifMatch}"` }),
      "content-length": Buffer.byteLength(body),
    };
    return await send(new URL(ROUTES[route].path, url), {
      method: ROUTES[route].method,
      headers,
      body,
      ca: await readCa(),
    });
  };
}

interface Sending {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
  readonly ca: string;
}

async function send(url: URL, sending: Sending): Promise<NodeApiAnswer> {
  using deadline = startDeadline(ANSWER_MS);
  const { signal } = deadline;
  try {
    const answer = await requestOnce(url, { ...sending, signal });
    const seconds = Number(answer.headers["retry-after"]);
    const retryAfterMs = Number.isInteger(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
    return { status: answer.statusCode ?? 0, text: await readText(answer, signal, MAX_ANSWER_LENGTH), retryAfterMs };
  } catch (cause) {
    if (cause instanceof RolloutError) throw cause;
    throw new RolloutError("Unreachable", `${sending.method} ${url.href}: ${messageOf(cause)}`, { cause });
  }
}
