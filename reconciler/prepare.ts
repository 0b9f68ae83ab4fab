/** Tells pods that they are to go [2.6]. */
import { firstOfSignals } from "../infra/clock.ts";
import { messageOf, RolloutError } from "../infra/errors.ts";
import type { PodHttp } from "../infra/pod-http.ts";
import { visitEach } from "../infra/slots.ts";
import { hold, type Hold } from "./model/decision.ts";
import type { Zone } from "./model/zone.ts";
import { readPreparedAt, type Endpoint } from "./scaling/delayed.ts";

/** Something worth a log line, though it changes nothing. */
export interface Note {
  readonly level: "info" | "warn";
  readonly text: string;
}

/** Requests of one batch in flight. */
const AT_ONCE = 32;

/**
 * POSTs to every pod that is to leave: when each was prepared (milliseconds since the epoch, in order), or the hold of the first that failed,
 * which cancels the rest. Throws `Cancelled` once `signal` fires.
 */
export async function prepareLeaving(http: PodHttp, zone: Zone, leave: readonly Endpoint[], signal: AbortSignal): Promise<number[] | Hold> {
  const batch = new AbortController();
  const call = { namespace: zone.namespace, signal: firstOfSignals(signal, batch.signal) };
  const preparedAt: number[] = [];
  try {
    await visitEach(leave.entries(), { atOnce: AT_ONCE }, async ([place, { pod, url }]) => {
      const { status, body } = await http.send("POST", url, call);
      const at = status >= 200 && status < 300 ? readPreparedAt(body) : undefined;
      if (at === undefined)
        throw new RolloutError(
          "Invalid",
          `${pod} answered ${status} ${JSON.stringify(body.slice(0, 100))}, not {"timestamp": <Unix seconds>}`,
        );
      preparedAt[place] = at;
    });
    return preparedAt;
  } catch (error) {
    if (signal.aborted) throw error;
    return hold("PrepareFailed", `${zone.name} is not scaled down: a pod could not be prepared: ${messageOf(error)}`, [zone], zone.name);
  } finally {
    batch.abort();
  }
}
