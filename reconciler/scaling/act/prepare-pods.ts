/** Prepares the pods that are to leave (§2.6). */
import { callPods } from "../../../infra/call-pods.ts";
import { cancelled } from "../../../infra/deadline.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { describePodFailure, type PodHttp } from "../../../infra/pod-http.ts";
import { foldAges, readPreparedAt, type Endpoint, type Endpoints } from "../delayed.ts";
import type { PodAnswers } from "../snapshot.ts";
import type { PreparePods } from "../steps.ts";

interface PrepareOptions {
  readonly http: PodHttp;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/**
 * Sends a POST to every pod that is to leave. Resolves with the last pod whose delay is not over, or the error of the
 * first failure, which cancels the other requests. Throws `Cancelled` once `signal` fires; no further pod is called
 * then.
 */
export async function preparePods(
  { zone, wanted, pods, delay }: PreparePods,
  { http, now, signal }: PrepareOptions,
): Promise<PodAnswers> {
  const ages = foldAges(delay);
  let failure: string | undefined;
  await callPods({
    http,
    method: "POST",
    namespace: zone.namespace,
    targets: numbered(pods),
    signal,
    stopAtFailure: true,
    onAnswer({ place }, { status, body }) {
      const at = status >= 200 && status < 300 ? readPreparedAt(body) : undefined;
      // Without the body: it may contain a secret, and holds become Events.
      if (at === undefined)
        throw new RolloutError("Invalid", `it answered ${status}, and the answer is not {"timestamp": <Unix seconds>}`);
      ages.add(place, at, now());
    },
    onFailure: ({ url }, error) => void (failure = describePodFailure(url, error)),
  });
  if (signal.aborted) throw cancelled(signal);
  return failure === undefined ? { wanted, youngest: ages.youngest() } : { wanted, failure };
}

function* numbered(pods: Endpoints): Generator<Endpoint & { readonly place: number }> {
  let place = 0;
  for (const pod of pods) yield { ...pod, place: place++ };
}
