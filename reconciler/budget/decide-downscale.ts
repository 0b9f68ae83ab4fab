/**
 * Decides whether pods may go by a downscale now (§5.11): only the other zones matter. The user decides how many pods
 * of its own zone go, so neither that zone's limit nor a `maxUnavailable` of 0 counts.
 */
import { countAwaited, isGivenUp, type ShrinkInGroup } from "../model/readiness.ts";
import { servesNothing } from "../model/health.ts";
import { ordinalOf } from "../model/order.ts";
import { findExcess } from "../model/refused-group.ts";
import type { Pod } from "../model/pod.ts";
import type { ZoneWithPods } from "../model/zone.ts";
import { addUp, countPods, describeUnavailability, type BudgetView, sumOf } from "./decide-eviction.ts";
import { verdict, type Verdict } from "./verdict.ts";
import { allowedUnavailable } from "./zpdb.ts";

interface DownscaleSnapshot extends BudgetView {
  /** The StatefulSets that the budget selects, in byte order of their names. */
  readonly zones: readonly ZoneWithPods[];
  /** UID of the StatefulSet that is to shrink. */
  readonly uid: string;
  /** The ordinal of the first pod that goes. */
  readonly from: number;
}

/**
 * `Allowed`, `BudgetSpent` with the zones or the partition that the downscale has to wait for, or why its group is
 * refused.
 */
export function decideDownscale(snapshot: DownscaleSnapshot): Verdict {
  const { budget, zones, uid } = snapshot;
  const zone = zones.find((one) => one.uid === uid);
  const objects = zone ? [zone, budget] : [budget];
  const excess = zone && findExcess(zone, zones);
  if (excess) return verdict(excess.reason, excess.message, objects);
  const message = zone && whyWait(zone, snapshot);
  if (message !== undefined) return verdict("BudgetSpent", message, objects);
  return verdict("Allowed", `zpdb met across ${zones.length} zones`, objects);
}

function whyWait(zone: ZoneWithPods, { from, zones, ...view }: DownscaleSnapshot): string | undefined {
  const { now, budget } = view;
  const leaving = zone.pods.filter((pod) => ordinalOf(pod) >= from);
  if (!leaving.some((pod) => !servesNothing(pod, now))) return undefined;
  const shrink = { zone, size: from - zone.firstOrdinal, now, zones };
  const others = zones.filter(({ uid }) => uid !== zone.uid).map((other) => countOther(other, shrink));
  return budget.partitionOf ? findPartition(leaving, { ...view, zone, others }) : findZones(others, view);
}

/** Another zone with the pods that count, and the number of those that are not there. */
interface OtherZone {
  readonly zone: ZoneWithPods;
  readonly pods: readonly Pod[];
  readonly unknown: number;
}

/**
 * Pods of another zone do not count if they are to go as well, and do not become ready or are not created: they would
 * wait for this zone.
 */
function countOther(other: ZoneWithPods, shrink: ShrinkInGroup): OtherZone {
  return {
    zone: other,
    pods: other.pods.filter((pod) => !isGivenUp(pod, other, shrink)),
    unknown: countAwaited(other, other.pods, shrink),
  };
}

/** Zone mode: names the other zones with unavailable pods. */
function findZones(others: readonly OtherZone[], view: BudgetView): string | undefined {
  const blocking = others.flatMap(({ zone, pods, unknown }) => {
    const count = { ...countPods(pods, zone, view), unknown };
    return sumOf(count) > 0 ? [describeUnavailability(count, zone.name)] : [];
  });
  return blocking.length > 0 ? blocking.join("; ") : undefined;
}

interface PartitionView extends BudgetView {
  readonly zone: ZoneWithPods;
  readonly others: readonly OtherZone[];
}

/**
 * Partition mode: the first partition that would lose more pods than allowed. A zone without a pod of the partition is
 * no obstacle, unlike for an eviction: it may have shrunk before this one.
 */
function findPartition(leaving: readonly Pod[], { zone: own, others, ...view }: PartitionView): string | undefined {
  const { budget } = view;
  const allowed = Math.max(1, allowedUnavailable(budget, { spec: own.replicas, status: own.status.replicas }));
  const partitionOf = ({ name }: Pod): string => budget.partitionOf?.(name) ?? "";
  const grouped = others.map(({ pods, ...other }) => ({ ...other, pods: Map.groupBy(pods, partitionOf) }));
  for (const partition of new Set(leaving.map(partitionOf))) {
    const counts = grouped.map(({ zone, unknown, pods }) => ({
      ...countPods(pods.get(partition) ?? [], zone, view),
      unknown,
    }));
    const sum = addUp(counts);
    if (sumOf(sum) >= allowed) return describeUnavailability(sum, `partition ${partition}`);
  }
  return undefined;
}
