/** Calls many pods, a bounded number at once. All calls to pods go through here. */
import { firstOfSignals } from "./clock.ts";
import { hasCode, RolloutError } from "./errors.ts";
import type { PodAnswer, PodHttp, PodMethod, PodRequest } from "./pod-http.ts";
import { visitEach } from "./slots.ts";

interface PodTarget {
  readonly url: string;
}

/** Pods to call, made one at a time as their turn comes: there may be a million. */
export interface PodTargets<Target extends PodTarget = PodTarget> extends Iterable<Target> {
  readonly count: number;
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
  const { http, method, targets, namespace, headers, timeoutMs, mayCall, stopAtFailure = false } = calls;
  const stop = new AbortController();
  const signal = firstOfSignals(calls.signal, stop.signal);
  const request = { namespace, signal, ...(headers && { headers }), ...(timeoutMs !== undefined && { timeoutMs }) };
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

interface LivingFirstOptions<Target extends PodTarget> extends Omit<
  PodCallOptions<Target>,
  "stopAtFailure" | "targets" | "timeoutMs"
> {
  readonly targets: PodTargets<Target>;
  readonly random?: () => number;
}

/** Milliseconds in which a pod that is up answers as a rule. */
const QUICK_MS = 1000;
/** The part of the places that pods have which were silent: calls to other zones go on beside them. */
const SILENT_PART = 1 / 4;

/**
 * Calls every pod so that those that answer do not wait for those that do not: each has a second at first; those that
 * were silent, or are slow, are called again with the usual time, once all others were. A call that is ended before all
 * were called begins elsewhere the next time, by chance, so that no pod always comes last. Resolves as `callPods`.
 */
export async function callLivingFirst<Target extends PodTarget>(calls: LivingFirstOptions<Target>): Promise<boolean> {
  const { targets, random = Math.random } = calls;
  const silent: Target[] = [];
  let failed = false;
  const fail = (target: Target, error: unknown): void => {
    failed = true;
    calls.onFailure(target, error);
  };
  const noteSilent = (target: Target, error: unknown): void =>
    hasCode(error, "Timeout") ? void silent.push(target) : fail(target, error);
  const order = beginAt(targets, Math.floor(random() * targets.count));
  await callPods({ ...calls, targets: order, timeoutMs: QUICK_MS, onFailure: noteSilent });
  const atOnce = Math.max(1, Math.floor((calls.atOnce ?? AT_ONCE) * SILENT_PART));
  // Calls none once the Lease is lost, either.
  const isOver = await callPods({ ...calls, targets: silent, atOnce, onFailure: fail });
  return isOver && !failed;
}

/** All items, from this one on, and then those before it. */
function* beginAt<T>(items: Iterable<T>, start: number): Generator<T> {
  for (const isBefore of [false, true]) {
    let place = 0;
    for (const item of items) if (place++ < start === isBefore) yield item;
  }
}

/** The body is not repeated: it may carry a secret. */
function requireSuccess(_target: PodTarget, { status }: PodAnswer): void {
  if (status < 200 || status > 299) throw new RolloutError("Invalid", `it answered ${status}`, { status });
}
