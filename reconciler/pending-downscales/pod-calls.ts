/** Telling pods that they are to go, and taking it back (§4.8). */
import { startDeadline } from "../../infra/deadline.ts";
import { RolloutError } from "../../infra/errors.ts";
import type { PodHttp } from "../../infra/pod-http.ts";
import { visitEach } from "../../infra/slots.ts";

export interface PodCalls {
  readonly podHttp: PodHttp;
  readonly namespace: string;
  /** The pods' URLs, made as they are needed. */
  readonly endpoints: () => Iterable<string>;
  /** Asked before each request; false once the Lease may have passed to another process, which may tell the same pods otherwise. */
  readonly isOurs: () => boolean;
  /** Told of every pod that could not be reached or did not agree. */
  readonly onFailure: (url: string, error: unknown) => void;
}

const AT_ONCE = 32;
const HEADERS = { "content-type": "application/json" };

/** POSTs to all; resolves with whether every one answered 2xx. The first that did not ends the rest. */
export async function preparePods({ podHttp, namespace, endpoints, isOurs, onFailure }: PodCalls, signal: AbortSignal): Promise<boolean> {
  const stop = new AbortController();
  let failed = false;
  const cancel = (): void => stop.abort(signal.reason);
  signal.addEventListener("abort", cancel, { once: true });
  if (signal.aborted) cancel();
  await visitEach(endpoints(), { atOnce: AT_ONCE, signal: stop.signal }, async (url) => {
    try {
      if (!isOurs()) throw new RolloutError("LeaseLost", "it was not told: the lease of its rollout group is no longer ours");
      requireSuccess(await podHttp.send("POST", url, { namespace, headers: HEADERS, signal: stop.signal }));
    } catch (error) {
      if (!stop.signal.aborted) onFailure(url, error);
      failed = true;
      stop.abort(new RolloutError("Cancelled", "another pod could not be prepared"));
    }
  });
  signal.removeEventListener("abort", cancel);
  return !failed && !signal.aborted;
}

/** DELETEs at all, whether they were prepared or not, as far as `budgetMs` and the Lease reach; resolves with whether every one answered 2xx in that time. */
export async function unpreparePods(
  { podHttp, namespace, endpoints, isOurs, onFailure }: PodCalls,
  budgetMs: number,
  caller?: AbortSignal,
): Promise<boolean> {
  using deadline = startDeadline(budgetMs, caller);
  const { signal } = deadline;
  let failed = false;
  await visitEach(endpoints(), { atOnce: AT_ONCE, signal }, async (url) => {
    if (!isOurs()) return deadline.cancel();
    try {
      requireSuccess(await podHttp.send("DELETE", url, { namespace, headers: HEADERS, signal }));
    } catch (error) {
      onFailure(url, error);
      failed = true;
    }
  });
  return !failed && !signal.aborted;
}

/** The body is not repeated: it may carry a secret. */
function requireSuccess({ status }: { readonly status: number }): void {
  if (status < 200 || status > 299) throw new RolloutError("Invalid", `it answered ${status}`, { status });
}
