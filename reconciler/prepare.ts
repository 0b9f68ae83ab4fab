/** Tells pods that they are to go, or that they stay [2.6]. */
import { firstOfSignals } from "../infra/clock.ts";
import { hasCode, RolloutError } from "../infra/errors.ts";
import type { PodHttp } from "../infra/pod-http.ts";
import { hold, type Hold } from "./model/decision.ts";
import type { Zone } from "./model/zone.ts";
import { readPreparedAt, type Endpoint } from "./scaling/delayed.ts";

/** Something worth a log line, though it changes nothing. */
export interface Note {
  readonly level: "info" | "warn";
  readonly text: string;
}

/**
 * POSTs to every pod that is to leave: when each was prepared (milliseconds since the epoch, in order), or the hold of the first that failed,
 * which cancels the rest. Throws `Cancelled` once `signal` fires.
 */
export async function prepareLeaving(http: PodHttp, zone: Zone, leave: readonly Endpoint[], signal: AbortSignal): Promise<number[] | Hold> {
  const batch = new AbortController();
  const call = { namespace: zone.namespace, signal: firstOfSignals(signal, batch.signal) };
  try {
    return await Promise.all(
      leave.map(async ({ pod, url }) => {
        const { status, body } = await http.send("POST", url, call);
        const at = status >= 200 && status < 300 ? readPreparedAt(body) : undefined;
        if (at === undefined)
          throw new RolloutError(
            "Invalid",
            `${pod} answered ${status} ${JSON.stringify(body.slice(0, 100))}, not {"timestamp": <Unix seconds>}`,
          );
        return at;
      }),
    );
  } catch (error) {
    if (signal.aborted) throw error;
    const said = error instanceof Error ? error.message : String(error);
    return hold("PrepareFailed", `${zone.name} is not scaled down: a pod could not be prepared: ${said}`, [zone], zone.name);
  } finally {
    batch.abort();
  }
}

/** DELETEs at every pod that stays. Whatever they answer changes nothing; what they answer amiss is told in a line. */
export async function tellStaying(http: PodHttp, zone: Zone, stay: readonly Endpoint[], signal: AbortSignal): Promise<Note[]> {
  const locked: string[] = [];
  const failed: string[] = [];
  await Promise.all(
    stay.map(async ({ pod, url }) => {
      try {
        const { status } = await http.send("DELETE", url, { namespace: zone.namespace, signal });
        if (status === 409) locked.push(pod);
        else if (status < 200 || status >= 300) failed.push(`${pod} answered ${status}`);
      } catch (error) {
        if (!hasCode(error, "Cancelled")) failed.push(error instanceof Error ? error.message : String(error));
      }
    }),
  );
  const notes: Note[] = [];
  if (locked.length > 0)
    notes.push({ level: "info", text: `${zone.name}: the preparation of ${locked.toSorted().join(", ")} is locked (409)` });
  if (failed.length > 0) {
    notes.push({
      level: "warn",
      text: `${zone.name}: ${failed.length} pods could not be told that they stay; the first: ${failed.toSorted()[0]}`,
    });
  }
  return notes;
}
