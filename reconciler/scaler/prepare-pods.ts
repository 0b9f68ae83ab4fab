/** Tells pods that they are to go (§2.6). */
import { firstOfSignals } from "../../infra/clock.ts";
import { cancelled } from "../../infra/deadline.ts";
import { messageOf, RolloutError } from "../../infra/errors.ts";
import type { PodHttp } from "../../infra/pod-http.ts";
import { visitEach } from "../../infra/slots.ts";
import { hold, type Hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import { foldAges, readPreparedAt, type Delay, type Endpoints, type YoungPod } from "../scaling/delayed.ts";

/** Something worth a log line, though it changes nothing. */
export interface Note {
  readonly level: "info" | "warn";
  readonly text: string;
}

/** Requests of one batch in flight. */
const AT_ONCE = 32;

/** What the pods that are to leave said. */
export interface Prepared {
  readonly young: YoungPod | undefined;
}

/**
 * POSTs to every pod that is to leave: the last one whose delay is not over, or the hold of the first that failed, which cancels the rest.
 * Throws `Cancelled` once `signal` fires; no further pod is asked then.
 */
export async function prepareLeaving(
  http: PodHttp,
  zone: Zone,
  leave: Endpoints,
  delay: Delay,
  { now, signal }: { readonly now: () => number; readonly signal: AbortSignal },
): Promise<Prepared | Hold> {
  const batch = new AbortController();
  const call = { namespace: zone.namespace, signal: firstOfSignals(signal, batch.signal) };
  const ages = foldAges(delay);
  try {
    await visitEach(numbered(leave), { atOnce: AT_ONCE, signal }, async ([place, { pod, url }]) => {
      const { status, body } = await http.send("POST", url, call);
      const at = status >= 200 && status < 300 ? readPreparedAt(body) : undefined;
      // The body is not repeated: it may carry a secret, and holds become Events.
      if (at === undefined)
        throw new RolloutError("Invalid", `${pod} answered ${status}, and the answer is not {"timestamp": <Unix seconds>}`);
      ages.add(place, at, now());
    });
    if (signal.aborted) throw cancelled(signal);
    return { young: ages.youngest() };
  } catch (error) {
    if (signal.aborted) throw error;
    return hold("PrepareFailed", `${zone.name} is not scaled down: a pod could not be prepared: ${messageOf(error)}`, [zone], zone.name);
  } finally {
    batch.abort();
  }
}

function* numbered<T>(items: Iterable<T>): Generator<[place: number, item: T]> {
  let place = 0;
  for (const item of items) yield [place++, item];
}
