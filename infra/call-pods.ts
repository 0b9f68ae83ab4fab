/** Calls many pods, a bounded number at once. All calls to pods go through here. */
import { firstOfSignals } from "./clock.ts";
import { hasCode, RolloutError } from "./errors.ts";
import type { PodAnswer, PodHttp, PodMethod, PodRequest } from "./pod-http.ts";
import { visitEach } from "./slots.ts";

export interface PodTarget {
  readonly url: string;
}

export interface PodCallOptions<Target extends PodTarget> extends Omit<PodRequest, "signal"> {
  readonly http: PodHttp;
  readonly method: PodMethod;
  /** Taken one at a time, as their turn comes: there may be a million. */
  readonly targets: Iterable<Target>;
  /** Requests in flight at once; 32 unless given. */
  readonly atOnce?: number;
  /** Once it fires no further pod is called, and requests in flight are cancelled. */
  readonly signal: AbortSignal;
  /**
   * Called before each request. Once it returns false, no further pod is called, and requests in flight are cancelled.
   */
  readonly mayCall?: () => boolean;
  /** The first failure cancels all other requests. */
  readonly stopAtFailure?: boolean;
  /** Called with each answer; if it throws, the call has failed. By default every answer but 2xx is a failure. */
  readonly onAnswer?: (target: Target, answer: PodAnswer) => void;
  /** Called with each failure; with `stopAtFailure` only with the first. */
  readonly onFailure: (target: Target, error: unknown) => void;
}

const AT_ONCE = 32;

/** Resolves, once no request is in flight, with whether every pod was called and none failed. Never rejects. */
export async function callPods<Target extends PodTarget>(calls: PodCallOptions<Target>): Promise<boolean> {
  const { http, method, targets, namespace, headers, mayCall, stopAtFailure = false } = calls;
  const stop = new AbortController();
  const signal = firstOfSignals(calls.signal, stop.signal);
  const request = { namespace, signal, ...(headers && { headers }) };
  let failed = false;
  await visitEach(targets, { atOnce: calls.atOnce ?? AT_ONCE, signal }, async (target) => {
    try {
      if (mayCall?.() === false)
        throw new RolloutError("LeaseLost", "it was not called: the lease of its rollout group is no longer ours");
      const answer = await http.send(method, target.url, request);
      (calls.onAnswer ?? requireSuccess)(target, answer);
    } catch (error) {
      failed = true;
      if (!stopAtFailure || !stop.signal.aborted) calls.onFailure(target, error);
      if (stopAtFailure || hasCode(error, "LeaseLost"))
        stop.abort(new RolloutError("Cancelled", "another pod could not be called"));
    }
  });
  return !failed && !signal.aborted;
}

/** The body is not repeated: it may carry a secret. */
function requireSuccess(_target: PodTarget, { status }: PodAnswer): void {
  if (status < 200 || status > 299) throw new RolloutError("Invalid", `it answered ${status}`, { status });
}
