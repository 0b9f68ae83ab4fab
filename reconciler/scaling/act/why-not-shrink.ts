/** The last checks before a zone shrinks: slow pods or other groups may have delayed the write. */
import type { ScaleZone } from "../../model/outcome.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { findAdmitted, type PendingDownscales } from "../../downscale/pending.ts";
import { gatherGroup, gatherGroupZones } from "../../snapshot/gather.ts";
import { hold, type Hold } from "../../model/decision.ts";
import type { Zone } from "../../model/zone.ts";
import { gatherPending, nameLease } from "../../downscale/act/downscale-lease.ts";
import { decideShrink } from "../shrink.ts";
import { gatherTimes } from "./gather-scaling.ts";
import type { ShrinkFacts, Scaler } from "./scaler.ts";

/**
 * Reads and checks all conditions for a smaller zone again. `pending` are the pending downscales of its group if nobody
 * else can add one now; otherwise they are read last, as one may be added at any time. A reading made for an earlier
 * zone of the group may refuse this one too, but never lets it shrink: a group of zones that wait costs one read a
 * step. Throws `Conflict` if the zone or its leader has changed since it was read, or the error of the API
 * server.
 */
export async function whyNotShrink(
  { zone, replicas }: ScaleZone,
  scaler: Scaler,
  pending?: PendingDownscales,
): Promise<Hold | undefined> {
  const { lastRead } = scaler;
  const refused = lastRead.facts && judge({ zone, replicas }, lastRead.facts);
  if (typeof refused === "object") return refused;
  const zones = await gatherGroupZones(zone, scaler);
  const same = zones.find((one) => isSame(one, zone));
  if (!same) throw new RolloutError("Conflict", `${zone.name} has changed since it was read`);
  // The hold reports a tracker that cannot be read.
  const times = await gatherTimes(
    zones,
    same.scaling.minTime !== undefined || same.scaling.leader !== undefined,
    scaler,
  );
  lastRead.facts = { times, group: await gatherGroup(zones, scaler) };
  const why = judge({ zone, replicas }, lastRead.facts);
  if (why === "outdated")
    throw new RolloutError("Conflict", `the leader of ${zone.name} has changed since it was read`);
  if (why) return why;
  return noOtherAdmitted(same, {
    zones,
    now: scaler.clock.now(),
    pending: pending ?? (await gatherPendingOf(same, scaler)),
  });
}

const isSame = (one: Zone, { uid, resourceVersion }: Zone): boolean =>
  one.uid === uid && one.resourceVersion === resourceVersion;

/** "outdated" also if another version of the zone was read. */
function judge(
  { zone, replicas }: Pick<ScaleZone, "zone" | "replicas">,
  { group, times }: ShrinkFacts,
): Hold | "outdated" | undefined {
  const same = times.zones.find((one) => isSame(one, zone));
  return same ? decideShrink({ zone: same, replicas }, times, group) : "outdated";
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
  return {
    ...hold("OtherZoneNotReady", message, [zone, admitted.zone]),
    dedupKey: `${zone.name} after ${admitted.zone.name}`,
  };
}
