/** Refused preparations of a downscale: the webhook that denied it stores nothing but an Event. */
import { events, type Event } from "../../infra/kubernetes/resources.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import type { Session } from "../session.ts";

interface Refusal {
  readonly zone: Zone;
  readonly message: string;
  /** RFC 3339. */
  readonly at: string;
}

/** An older refusal says nothing about the present pods. */
const MAX_AGE_MS = 10 * 60_000;

/** The latest refusal of each zone that has not been scaled down since. */
export async function gatherRefusals(session: Session, zones: readonly Zone[]): Promise<Refusal[]> {
  const { namespace, clock } = session;
  const query = { namespace, fieldSelector: "reason=PrepareFailed" };
  const { items } = await readAll({ resource: events, query, read: (event: Event) => event }, session);
  return zones.flatMap((zone) => {
    const after = Math.max(clock.now() - MAX_AGE_MS, parseTimestamp(zone.scaling.lastDownscale ?? "") ?? 0);
    const own = items
      .filter(({ reason, involvedObject }) => reason === "PrepareFailed" && involvedObject.uid === zone.uid)
      .map(({ message = "", lastTimestamp: at = "" }) => ({ zone, message, at }))
      .filter(({ at }) => (parseTimestamp(at) ?? 0) > after)
      .toSorted((a, b) => (a.at < b.at ? 1 : -1));
    return own.slice(0, 1);
  });
}
