/** May this pod be disrupted now (§5.1): asked by the eviction webhook and by the rollout alike. */
import { firstOf, type ObjectRef, type Rule } from "../model/decision.ts";
import { moveToFront } from "../model/order.ts";
import type { BudgetZone } from "./member.ts";
import { ageOf, isForEviction } from "./reservation.ts";
import { countZone, describeCount, type EvictionSnapshot } from "./tally.ts";
import { verdict, type Verdict, type VerdictReason } from "./verdict.ts";
import { allowedUnavailable, BUDGET_KIND } from "./zpdb.ts";

type EvictionRule = Rule<[snapshot: EvictionSnapshot], Verdict>;

const ownZone = ({ pod, zones }: EvictionSnapshot): BudgetZone | undefined => zones.find((zone) => zone.uid === pod.owner);

const ownerKnown: EvictionRule = (snapshot) => {
  const { pod, budget } = snapshot;
  const { controller } = pod;
  const say = (message: string): Verdict => about(snapshot, "OwnerNotFound", message);
  if (!controller) return say("unable to find a StatefulSet pod owner");
  if (controller.kind !== "StatefulSet")
    return say(`pod owner is not a StatefulSet - ${pod.name} has owner ${controller.name} (${controller.kind})`);
  if (ownZone(snapshot)) return undefined;
  return say(
    `unable to find StatefulSet ${controller.name} by name: it is not among those that zoned pod disruption budget ${budget.name} selects`,
  );
};

/** The API server retries an eviction that conflicts for 10 s, and looks the pod up by its name each time. */
const RETRIED_FOR_MS = 15_000;

/**
 * A pod that was allowed to go a moment ago is not allowed to go for somebody else as well: the rollout and an eviction do not share a pod, and
 * an eviction that goes by the name alone might reach the successor. Evictions bound to the pod's UID do each other no harm.
 */
const notTwice: EvictionRule = (snapshot) => {
  const { pod, reservations, now, by, rollout, unpinned } = snapshot;
  const found = reservations[pod.name];
  if (!found || found.uid !== pod.uid || ageOf(found, now) >= RETRIED_FOR_MS) return undefined;
  const sameKind = found.by === by || isForEviction(found) === (rollout === undefined);
  if (sameKind && !unpinned) return undefined;
  const whom = isForEviction(found) ? "an eviction" : "the rollout";
  return about(snapshot, "AllowedAlready", `${pod.name} was allowed to go a moment ago, for ${whom}; try again once it is gone`);
};

/** A configured 0 gives way to the rollout's own limit, in partition mode to 1 (§1.5.7, §5.1.7). */
function maxUnavailable(snapshot: EvictionSnapshot): number {
  const { budget, rollout } = snapshot;
  const zone = ownZone(snapshot);
  const allowed = allowedUnavailable(budget, { spec: zone?.replicas, status: zone?.status.replicas ?? 0 });
  if (allowed > 0 || !rollout) return allowed;
  return budget.partitionOf ? 1 : rollout.maxUnavailable;
}

const aboveZero: EvictionRule = (snapshot) =>
  maxUnavailable(snapshot) === 0 ? about(snapshot, "MaxUnavailableZero", "max unavailable = 0") : undefined;

const severalZones: EvictionRule = (snapshot) =>
  snapshot.zones.length < 2 ? about(snapshot, "TooFewZones", "minimum number of StatefulSets not found") : undefined;

const partitionKnown: EvictionRule = (snapshot) => {
  const { pod, budget } = snapshot;
  if (!budget.partitionOf || budget.partitionOf(pod.name) !== undefined) return undefined;
  return about(snapshot, "PartitionUnknown", "failed to extract partition from pod Name regular expression");
};

/** Zone mode: the other zones must be healthy whatever is allowed, the pod's own within what is. All zones that block are named, the own one last. */
const zonesWithin: EvictionRule = (snapshot) => {
  if (snapshot.budget.partitionOf) return undefined;
  const blocking = moveToFront(snapshot.zones, (zone) => zone.uid !== snapshot.pod.owner).flatMap((zone) => {
    const isOwn = zone.uid === snapshot.pod.owner;
    // The rollout replaces what is lost already: that takes nothing from its own zone.
    if (isOwn && snapshot.rollout && snapshot.pod.broken !== undefined) return [];
    const count = countZone(zone, snapshot);
    return count.notReady + count.unknown >= (isOwn ? maxUnavailable(snapshot) : 1) ? [describeCount(count, zone.name)] : [];
  });
  return blocking.length > 0 ? about(snapshot, "BudgetSpent", blocking.join("; ")) : undefined;
};

/** Partition mode: the pod's peers in all the other zones together. A zone without any counts as one that is missing. */
const partitionWithin: EvictionRule = (snapshot) => {
  const partition = snapshot.budget.partitionOf?.(snapshot.pod.name);
  if (partition === undefined) return undefined;
  const counts = snapshot.zones
    .filter((zone) => zone.uid !== snapshot.pod.owner)
    .map((zone) => countZone(zone, snapshot, partition))
    .map(({ tested, notReady, unknown }) => ({ notReady, unknown: tested + notReady + unknown === 0 ? 1 : unknown }));
  const sum = counts.reduce((a, b) => ({ notReady: a.notReady + b.notReady, unknown: a.unknown + b.unknown }), { notReady: 0, unknown: 0 });
  if (sum.notReady + sum.unknown < maxUnavailable(snapshot)) return undefined;
  return about(snapshot, "BudgetSpent", describeCount(sum, `partition ${partition}`));
};

const allowed = (snapshot: EvictionSnapshot): Verdict => {
  const partition = snapshot.budget.partitionOf?.(snapshot.pod.name);
  const where = partition === undefined ? "" : ` for partition ${partition}`;
  return about(snapshot, "Allowed", `zpdb met${where} across ${snapshot.zones.length} zones`);
};

function about({ pod, budget }: EvictionSnapshot, reason: VerdictReason, message: string): Verdict {
  const { namespace, name, uid } = budget;
  const ref: ObjectRef = { kind: BUDGET_KIND, namespace, name, uid };
  return verdict(reason, message, [pod, ref]);
}

const denied = firstOf<[EvictionSnapshot], Verdict>([
  ownerKnown,
  aboveZero,
  severalZones,
  partitionKnown,
  notTwice,
  zonesWithin,
  partitionWithin,
]);

/** The first rule that denies, or `Allowed`: then the pod must be reserved before it goes. */
export function decideEviction(snapshot: EvictionSnapshot): Verdict {
  return denied(snapshot) ?? allowed(snapshot);
}
