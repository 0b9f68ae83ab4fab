/** The last look before a zone shrinks: slow pods or other groups may have delayed the write. */
import { RolloutError } from "../../infra/errors.ts";
import { findAdmitted, type PendingDownscales } from "../downscale/pending.ts";
import { gatherGroup, gatherGroupZones } from "../gather.ts";
import { hold, type Hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import { gatherPending, nameLease } from "../pending-downscales/downscale-lease.ts";
import { decideShrink } from "../scaling/shrink.ts";
import type { ScaleZone } from "../scaling/steps.ts";
import { gatherTimes } from "./gather-scaling.ts";
import type { Scaler } from "./scaler.ts";

/**
 * Reads and checks all conditions for a smaller zone again. `pending` are the pending downscales of its group if nobody else can add one now; otherwise they
 * are read last, as one may be added at any time. Throws `Conflict` if the zone or its leader has changed since it was read, `StaleRead`, or the error of
 * the API server.
 */
export async function whyNotShrink({ zone, replicas }: ScaleZone, scaler: Scaler, pending?: PendingDownscales): Promise<Hold | undefined> {
  const zones = await gatherGroupZones(zone, scaler);
  const same = zones.find(({ uid, resourceVersion }) => uid === zone.uid && resourceVersion === zone.resourceVersion);
  if (!same) throw new RolloutError("Conflict", `${zone.name} has changed since it was read`);
  // The hold reports a tracker that cannot be read.
  const times = await gatherTimes(zones, same.scaling.minTime !== undefined || same.scaling.leader !== undefined, scaler);
  const why = decideShrink({ zone: same, replicas }, times, await gatherGroup(zones, scaler));
  if (why === "outdated") throw new RolloutError("Conflict", `the leader of ${zone.name} has changed since it was read`);
  if (why) return why;
  return noOtherAdmitted(same, { zones, now: scaler.clock.now(), pending: pending ?? (await gatherPendingOf(same, scaler)) });
}

const gatherPendingOf = ({ namespace, group, name }: Zone, { cluster }: Scaler): Promise<PendingDownscales> =>
  gatherPending(cluster, { namespace, name: nameLease(group, name) });

interface Admissions {
  readonly zones: readonly Zone[];
  readonly pending: PendingDownscales;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The hold while an admitted downscale of another zone may still be stored. */
function noOtherAdmitted(zone: Zone, { zones, pending, now }: Admissions): Hold | undefined {
  const others = zones.filter(({ uid }) => uid !== zone.uid);
  const admitted = findAdmitted(pending, others, now);
  if (!admitted) return undefined;
  const message = `${zone.name} waits to shrink: ${admitted.description}`;
  return { ...hold("OtherZoneNotReady", message, [zone, admitted.zone]), dedupKey: `${zone.name} after ${admitted.zone.name}` };
}
