/**
 * Decides whether pods may go by a downscale now (§5.11): only the other zones matter. How many pods of its own zone go is what the user wants, so that
 * neither that zone's limit nor a `maxUnavailable` of 0 counts.
 */
import { countAwaited, isGivenUp } from "../model/given-up.ts";
import { servesNothing } from "../model/lost.ts";
import { groupBy, ordinalOf } from "../model/order.ts";
import { countMissing } from "../model/readiness.ts";
import type { BudgetPod, BudgetZone } from "./budget-pod.ts";
import { addUp, countPods, describeUnavailability, type PodView, sumOf } from "./unavailability.ts";
import { verdict, type Verdict } from "./verdict.ts";
import { allowedUnavailable, BUDGET_KIND } from "./zpdb.ts";

/** The facts for a decision about one downscale, gathered at one moment. */
export interface DownscaleSnapshot extends PodView {
  /** The StatefulSets that the budget selects, in byte order of their names. */
  readonly zones: readonly BudgetZone[];
  /** UID of the StatefulSet that is to shrink. */
  readonly uid: string;
  /** The ordinal of the first pod that goes. */
  readonly from: number;
}

/** `Allowed`, or `BudgetSpent` with the zones or the partition that the downscale has to wait for. */
export function decideDownscale(snapshot: DownscaleSnapshot): Verdict {
  const { now, budget, zones, uid, from } = snapshot;
  const { namespace, name } = budget;
  const own = zones.find((zone) => zone.uid === uid);
  const objects = [...(own ? [own] : []), { kind: BUDGET_KIND, namespace, name, uid: budget.uid } as const];
  const leaving = own?.pods.filter((pod) => ordinalOf(pod) >= from) ?? [];
  const message = leaving.some((pod) => !servesNothing(pod, now))
    ? budget.partitionOf
      ? findPartition(leaving, snapshot)
      : findZones(snapshot)
    : undefined;
  if (message !== undefined) return verdict("BudgetSpent", message, objects);
  return verdict("Allowed", `zpdb met across ${zones.length} zones`, objects);
}

const othersOf = ({ zones, uid }: DownscaleSnapshot): BudgetZone[] => zones.filter((zone) => zone.uid !== uid);

/** Pods of another zone that are to go as well, and do not come up or are not made, do not count: they would wait for this zone. */
function countOther(other: BudgetZone, snapshot: DownscaleSnapshot): { readonly pods: readonly BudgetPod[]; readonly unknown: number } {
  const { zones, uid, from, now } = snapshot;
  const zone = zones.find((one) => one.uid === uid);
  if (!zone) return { pods: other.pods, unknown: countMissing(other, other.pods) };
  const shrink = { zone, size: from - zone.firstOrdinal, now, zones };
  return { pods: other.pods.filter((pod) => !isGivenUp(pod, other, shrink)), unknown: countAwaited(other, other.pods, shrink) };
}

/** Zone mode: names the other zones with unavailable pods. */
function findZones(snapshot: DownscaleSnapshot): string | undefined {
  const blocking = othersOf(snapshot).flatMap((zone) => {
    const { pods, unknown } = countOther(zone, snapshot);
    const count = { ...countPods(pods, zone, snapshot), unknown };
    return sumOf(count) > 0 ? [describeUnavailability(count, zone.name)] : [];
  });
  return blocking.length > 0 ? blocking.join("; ") : undefined;
}

/**
 * Partition mode: the first partition that would lose more pods than allowed. A zone without a pod of the partition is no obstacle, unlike for an
 * eviction: it may have shrunk before this one.
 */
function findPartition(leaving: readonly BudgetPod[], snapshot: DownscaleSnapshot): string | undefined {
  const { budget, zones, uid } = snapshot;
  const own = zones.find((zone) => zone.uid === uid);
  const allowed = Math.max(1, allowedUnavailable(budget, { spec: own?.replicas, status: own?.status.replicas ?? 0 }));
  const partitionOf = ({ name }: BudgetPod): string => budget.partitionOf?.(name) ?? "";
  const others = othersOf(snapshot).map((zone) => {
    const { pods, unknown } = countOther(zone, snapshot);
    return { zone, unknown, pods: groupBy(pods, partitionOf) };
  });
  for (const partition of new Set(leaving.map(partitionOf))) {
    const counts = others.map(({ zone, unknown, pods }) => ({ ...countPods(pods.get(partition) ?? [], zone, snapshot), unknown }));
    const sum = addUp(counts);
    if (sumOf(sum) >= allowed) return describeUnavailability(sum, `partition ${partition}`);
  }
  return undefined;
}
