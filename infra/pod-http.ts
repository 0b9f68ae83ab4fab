/** HTTP requests to pods (§2.7): without the credentials of the Kubernetes client, and few at a time. */
import type { IncomingMessage } from "node:http";
import type { LookupFunction } from "node:net";
import type { Clock } from "./clock.ts";
import { startDeadline } from "./deadline.ts";
import { messageOf, RolloutError } from "./errors.ts";
import { type OpenRequest, readText, requestOnce } from "./http.ts";
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
}

export interface PodHttp {
  /**
   * Resolves with any answer but 511; rejects with a RolloutError: `Timeout`, `Cancelled`, `Unreachable`, or `Invalid`
   * for 511 and for a redirect away from the pod. No body is sent. Errors carry neither passwords of the URL nor
   * anything of the answer but its status.
   */
  send(method: PodMethod, url: string, request: PodRequest): Promise<PodAnswer>;
}

/** Observes every request. */
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
const MAX_REDIRECTS = 10;
const MAX_ANSWER_LENGTH = 64 * 1024;

/** A client whose limit on concurrent requests covers all its callers; namespaces take turns. */
export function createPodHttp({ timeoutMs, clock, atOnce = AT_ONCE, lookup, open, observer }: PodHttpOptions): PodHttp {
  const slots = createSlots(atOnce);
  return {
    async send(method, url, request) {
      // By namespace: silent pods of one must not take the turns of the others.
      using _slot = await slots.take(request.signal, request.namespace);
      using deadline = startDeadline(timeoutMs, request.signal, clock);
      const { pathname: path } = new URL(url);
      const start = clock.monotonic();
      let status = "error";
      try {
        const answer = await exchange(new URL(url), {
          method,
          redirects: 0,
          request,
          signal: deadline.signal,
          lookup,
          open,
        });
        status = String(answer.status);
        if (answer.status !== 511) return answer;
        observer?.clusterRefused({ method, namespace: request.namespace });
        throw new RolloutError("Invalid", `it belongs to another cluster than ${request.namespace}`, { status: 511 });
      } catch (error) {
        throw explain(error, `${method} ${redactUrl(url)}`);
      } finally {
        observer?.podAnswered({ path, method, status, seconds: (clock.monotonic() - start) / 1000 });
      }
    },
  };
}

interface Sending {
  readonly method: PodMethod | "GET";
  /** How many redirects led here. */
  readonly redirects: number;
  readonly request: PodRequest;
  readonly signal: AbortSignal;
  readonly lookup: LookupFunction | undefined;
  readonly open: OpenRequest | undefined;
}

async function exchange(url: URL, sending: Sending): Promise<PodAnswer> {
  const answer = await sendOne(url, sending);
  const body = await readText(answer, sending.signal, MAX_ANSWER_LENGTH);
  const status = answer.statusCode ?? 0;
  const { location } = answer.headers;
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return { status, body };
  if (sending.redirects === MAX_REDIRECTS) throw new Error(`more than ${MAX_REDIRECTS} redirects`);
  const next = new URL(location, url);
  // A pod must not redirect us to another host, which we may reach and the pod may not.
  if (next.origin !== url.origin)
    throw new RolloutError("Invalid", "a redirect to another host, port or scheme is not followed", { status });
  // RFC 9110, 15.4: 307 and 308 repeat the method; other redirects turn it into GET.
  return exchange(next, {
    ...sending,
    method: status >= 307 ? sending.method : "GET",
    redirects: sending.redirects + 1,
  });
}

/** Each pod is a host: kept-alive connections would be as many as pods. */
function sendOne(url: URL, { method, request, signal, lookup, open }: Sending): Promise<IncomingMessage> {
  return requestOnce(url, {
    method,
    headers: { ...request.headers, "x-cluster": request.namespace, "content-length": 0 },
    signal,
    open,
    ...(lookup && { lookup }),
    // A certificate does not contain the trailing dot of a fully qualified name.
    ...(url.protocol === "https:" && { servername: url.hostname.replace(/\.$/, "") }),
  });
}

/** The URL as messages may show it: without user-info, query and fragment, any of which may contain a password. */
export function redactUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

function explain(failure: unknown, what: string): RolloutError {
  const known = failure instanceof RolloutError ? failure : undefined;
  return new RolloutError(known?.code ?? "Unreachable", `${what}: ${messageOf(failure)}`, {
    cause: failure,
    ...(known?.status && { status: known.status }),
  });
}
