/** Prepares pods for shutdown, and cancels the preparation (§4.8). */
import { callLivingFirst, callPods, type PodTargets } from "../../../infra/call-pods.ts";
import type { Clock } from "../../../infra/clock.ts";
import { startDeadline } from "../../../infra/deadline.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";

export interface PodCalls {
  readonly podHttp: PodHttp;
  readonly clock: Clock;
  readonly namespace: string;
  readonly endpoints: PodTargets;
  /**
   * Checked before each request; false once another process may hold the Lease: it may call the same pods for another
   * downscale.
   */
  readonly isOurs: () => boolean;
  /** Called for each pod that was unreachable or refused. */
  readonly onFailure: (url: string, error: unknown) => void;
}

/**
 * Sends a POST to every pod; resolves with true if every pod answered 2xx. The first failure cancels the other
 * requests.
 */
export function postPrepare(calls: PodCalls, signal: AbortSignal): Promise<boolean> {
  return callPods({ ...optionsOf(calls), method: "POST", signal, stopAtFailure: true });
}

/**
 * Sends a DELETE to every pod, prepared or not, those that answer first, for `budgetMs` milliseconds at most and while the Lease is held;
 * resolves with true if every pod answered 2xx.
 */
export async function cancelPreparation(calls: PodCalls, budgetMs: number, caller?: AbortSignal): Promise<boolean> {
  using deadline = startDeadline(budgetMs, caller, calls.clock);
  return await callLivingFirst({ ...optionsOf(calls), method: "DELETE", signal: deadline.signal });
}

function optionsOf({ podHttp, namespace, endpoints, isOurs, onFailure }: PodCalls) {
  return {
    http: podHttp,
    namespace,
    headers: { "content-type": "application/json" },
    targets: endpoints,
    mayCall: isOurs,
    onFailure: ({ url }: { readonly url: string }, error: unknown) => onFailure(url, error),
  };
}
