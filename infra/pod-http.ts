/** HTTP requests to pods (§2.7): without the credentials of the Kubernetes client, and few at a time. */
import type { LookupFunction } from "node:net";
import type { Clock } from "./clock.ts";
import { redactUrl } from "./credentials.ts";
import { hasCode, messageOf, RolloutError } from "./errors.ts";
import { exchange, type OpenRequest, type Redirect, withinDeadline } from "./http.ts";
import { createSlots } from "./slots.ts";

export type PodMethod = "POST" | "DELETE";

export interface PodAnswer {
  readonly status: number;
  readonly body: string;
}

export interface PodRequest {
  /** The namespace of the pod, sent as `X-Cluster`: a server that serves another one refuses with 511 (§8.5). */
  readonly namespace: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Milliseconds that this request may take after it is sent, if fewer than the client's. */
  readonly timeoutMs?: number;
}

export interface PodHttp {
  /**
   * Resolves with any answer but 511; rejects with a RolloutError: `Timeout`, `Cancelled`, `Unreachable`, or `Invalid`
   * for 511 and for a redirect away from the pod. No body is sent. Errors carry neither passwords of the URL nor
   * anything of the answer but its status.
   */
  send(method: PodMethod, url: string, request: PodRequest): Promise<PodAnswer>;
}

export interface PodObserver {
  /**
   * `path` is the URL's; `status` the HTTP status, or `error`; `seconds` until the whole answer, the wait for a slot
   * excluded.
   */
  podAnswered(call: {
    readonly path: string;
    readonly method: string;
    readonly status: string;
    readonly seconds: number;
  }): void;
  /** A pod answered that it belongs to another cluster. */
  clusterRefused(call: { readonly method: string; readonly namespace: string }): void;
}

export interface PodHttpOptions {
  /** Milliseconds that a request may take after it is sent, redirects included. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Concurrent requests; 32 by default. */
  readonly atOnce?: number;
  /** Resolves the names of pods in place of DNS. */
  readonly lookup?: LookupFunction;
  /** Opens requests in place of the network. */
  readonly open?: OpenRequest | undefined;
  readonly observer?: PodObserver;
}

const AT_ONCE = 32;
const MAX_ANSWER_LENGTH = 64 * 1024;

/** A client whose limit on concurrent requests covers all its callers; namespaces take turns. */
export function createPodHttp({ timeoutMs, clock, atOnce = AT_ONCE, lookup, open, observer }: PodHttpOptions): PodHttp {
  const slots = createSlots(atOnce);
  return {
    async send(method, url, request) {
      // By namespace: silent pods of one namespace must not take the turns of the others.
      using _slot = await slots.take(request.signal, request.namespace);
      const target = new URL(url);
      const start = clock.monotonic();
      let status = "error";
      const ask = async (signal: AbortSignal): Promise<PodAnswer> => {
        const answer = await exchange(target, {
          ...optionsOf(target, method, request),
          signal,
          open,
          ...(lookup && { lookup }),
        });
        status = String(answer.status);
        if (answer.status !== 511) return { status: answer.status, body: answer.text };
        observer?.clusterRefused({ method, namespace: request.namespace });
        throw new RolloutError("Invalid", `it belongs to another cluster than ${request.namespace}`, { status: 511 });
      };
      try {
        const bounds = {
          timeoutMs: Math.min(timeoutMs, request.timeoutMs ?? Infinity),
          clock,
          signal: request.signal,
        };
        return await withinDeadline(`${method} ${redactUrl(url)}`, bounds, ask);
      } finally {
        const seconds = (clock.monotonic() - start) / 1000;
        observer?.podAnswered({ path: target.pathname, method, status, seconds });
      }
    },
  };
}

/** Each pod is a host: kept-alive connections would be as many as pods. */
const optionsOf = ({ protocol, hostname }: URL, method: PodMethod, { headers, namespace }: PodRequest) => ({
  method,
  headers: { ...headers, "x-cluster": namespace },
  maxLength: MAX_ANSWER_LENGTH,
  // A certificate does not contain the trailing dot of a fully qualified name.
  ...(protocol === "https:" && { servername: hostname.replace(/\.$/, "") }),
  onRedirect({ status, from, to }: Redirect) {
    // A pod must not redirect us to another host, which we may reach and the pod may not.
    if (to.origin !== from.origin)
      throw new RolloutError("Invalid", "a redirect to another host, port or scheme is not followed", { status });
    // RFC 9110, 15.4: 307 and 308 repeat the method; other redirects turn it into GET.
    return status >= 307 ? {} : { method: "GET" };
  },
});

/**
 * `db-2 at http://db-2.db.shop.svc.cluster.local./prepare: it answered 500`: the pod, its URL, and the status of its
 * answer or the reason why there was none. Nothing else of the URL or of the answer is repeated.
 */
export function describePodFailure(url: string, error: unknown): string {
  const where = redactUrl(url);
  const [pod = ""] = new URL(url).hostname.split(".");
  const why = hasCode(error, "Cancelled") ? "no answer in time" : messageOf(error);
  return `${pod} at ${where}: ${why.replace(/^(POST|DELETE) /, "").replace(`${where}: `, "")}`;
}
