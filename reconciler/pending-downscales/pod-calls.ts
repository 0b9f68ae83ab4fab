/** Telling pods that they are to go, and taking it back (§4.8). */
import { callPods } from "../../infra/call-pods.ts";
import { startDeadline } from "../../infra/deadline.ts";
import type { PodHttp } from "../../infra/pod-http.ts";

export interface PodCalls {
  readonly podHttp: PodHttp;
  readonly namespace: string;
  /** The pods' URLs, made as they are needed. */
  readonly endpoints: () => Iterable<string>;
  /** Asked before each request; false once the Lease may have passed to another process, which may tell the same pods otherwise. */
  readonly isOurs: () => boolean;
  /** Called with pods that could not be reached or refused. */
  readonly onFailure: (url: string, error: unknown) => void;
}

/** POSTs to all; resolves with whether every one answered 2xx. The first that did not ends the rest. */
export function preparePods(calls: PodCalls, signal: AbortSignal): Promise<boolean> {
  return callPods({ ...optionsOf(calls), method: "POST", signal, stopAtFailure: true });
}

/** DELETEs at all, whether they were prepared or not, as far as `budgetMs` and the Lease reach; resolves with whether every one answered 2xx in that time. */
export async function unpreparePods(calls: PodCalls, budgetMs: number, caller?: AbortSignal): Promise<boolean> {
  using deadline = startDeadline(budgetMs, caller);
  return await callPods({ ...optionsOf(calls), method: "DELETE", signal: deadline.signal });
}

function optionsOf({ podHttp, namespace, endpoints, isOurs, onFailure }: PodCalls) {
  return {
    http: podHttp,
    namespace,
    headers: { "content-type": "application/json" },
    targets: targetsOf(endpoints()),
    mayCall: isOurs,
    onFailure: ({ url }: { readonly url: string }, error: unknown) => onFailure(url, error),
  };
}

function* targetsOf(urls: Iterable<string>): Generator<{ readonly url: string }> {
  for (const url of urls) yield { url };
}
