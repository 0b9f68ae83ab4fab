/**
 * The shell of a tick over values: it takes the steps of scaling, and asks budgets before it deletes, as the real one
 * does.
 */
import type { DeletePods, ScaleZone } from "../../../reconciler/model/outcome.ts";
import assert from "node:assert/strict";
import { decideEviction } from "../../../reconciler/budget/decide-eviction.ts";
import { decideDownscale } from "../../../reconciler/budget/decide-downscale.ts";
import { livingReservations, presentIn, type Reservation } from "../../../reconciler/budget/reservation.ts";
import { holdDownscale, isAllowed } from "../../../reconciler/budget/verdict.ts";
import type { Budget } from "../../../reconciler/budget/zpdb.ts";
import type { Hold } from "../../../reconciler/model/decision.ts";
import { GIVEN_UP_MS } from "../../../reconciler/model/readiness.ts";
import { RECOVERY_MS } from "../../../reconciler/model/health.ts";
import type { GatheredGroup, ZoneWithPods } from "../../../reconciler/model/zone.ts";
import { decideScaling } from "../../../reconciler/scaling/decide-scaling.ts";
import { foldAges } from "../../../reconciler/scaling/delayed.ts";
import { decideShrink, isShrinking } from "../../../reconciler/scaling/steady.ts";
import type { PreparePods, ReferenceReading, ZoneFacts } from "../../../reconciler/scaling/snapshot.ts";
import { isObserved, type SmallCluster } from "../small-cluster.ts";

interface ScalingFacts {
  readonly now: number;
  /** What mirroring zones are to have, by UID. */
  readonly references?: ReadonlyMap<string, ReferenceReading>;
  /** Since when each pod has been prepared to go, by its name: the pods' own memory. */
  readonly prepared?: Map<string, number>;
  /** What the budget says to a zone that is to shrink. */
  readonly denies?: (step: ScaleZone) => Hold | undefined;
}

/** The zone that is scaled, if one is. A zone that may not shrink is refused, and the next one has its turn. */
export function chooseScale(
  group: GatheredGroup,
  { now, references, prepared = new Map(), denies = () => undefined }: ScalingFacts,
): { readonly step: ScaleZone | undefined; readonly holds: readonly Hold[] } {
  const times = { zones: group.zones, tracked: new Map<string, string>(), now };
  const facts = new Map<string, ZoneFacts>();
  const add = (uid: string, more: ZoneFacts): void => void facts.set(uid, { ...facts.get(uid), ...more });
  for (;;) {
    const { next, scalingHolds, unread } = decideScaling({ ...times, facts, clusterDomain: "" });
    if (unread) {
      const reading = references?.get(unread.uid) ?? assert.fail(unread.name);
      add(unread.uid, facts.get(unread.uid)?.reference ? { confirmed: reading } : { reference: reading });
    } else if (!next || next.action === "hold") return { step: undefined, holds: scalingHolds };
    else if (next.action === "cancelPreparation") {
      for (const { pod } of next.pods) prepared.delete(pod);
      add(next.zone.uid, { notified: true });
    } else if (next.action === "preparePods") add(next.zone.uid, { answers: callPods(next, prepared, now) });
    else if (next.action === "writeBack") add(next.zone.uid, { writtenBack: "done" });
    else {
      const refused = isShrinking(next) ? (decideShrink(next, times, group) ?? denies(next)) : undefined;
      assert.notEqual(refused, "outdated");
      if (refused === undefined || refused === "outdated") return { step: next, holds: scalingHolds };
      add(next.zone.uid, { refused });
    }
  }
}

/** A pod remembers when it was first called. */
function callPods(
  { pods, delay }: PreparePods,
  prepared: Map<string, number>,
  now: number,
): NonNullable<ZoneFacts["answers"]> {
  const ages = foldAges(delay);
  for (const [place, { pod }] of [...pods].entries()) {
    if (!prepared.has(pod)) prepared.set(pod, now);
    ages.add(place, prepared.get(pod) ?? now, now);
  }
  return { youngest: ages.youngest() };
}

/** The replicas are stored, and the time of a downscale; the controller has not seen it yet. */
export function applyScale({ zone, replicas, recordAt }: ScaleZone, cluster: SmallCluster): void {
  if (recordAt !== undefined)
    cluster.annotate(zone.name, { "grafana.com/last-downscale": new Date(recordAt).toISOString() });
  cluster.change(zone.name, { replicas });
}

/** A budget with its reservations, which a grant adds to. */
interface StoredGrants {
  readonly budget: Budget;
  readonly reservations: Map<string, Reservation>;
}

/** Why the budget keeps a zone from shrinking. */
export function denyShrink(
  { zone, replicas }: ScaleZone,
  zones: readonly ZoneWithPods[],
  { budget, reservations, now }: StoredGrants & { readonly now: number },
): Hold | undefined {
  const living = livingReservations(Object.fromEntries(reservations), presentIn(zones), now);
  const verdict = decideDownscale({
    now,
    budget,
    zones,
    reservations: living,
    uid: zone.uid,
    from: zone.firstOrdinal + replicas,
  });
  return isAllowed(verdict) ? undefined : holdDownscale(verdict, zone);
}

/** The pods of the batch that the budget lets go, one after the other; the rollout waits if there are none. */
export function grantPods(
  decision: DeletePods,
  zones: readonly ZoneWithPods[],
  { budget, reservations, now }: StoredGrants & { readonly now: number },
): DeletePods["pods"] {
  const own = zones.find(({ uid }) => uid === decision.zone.uid) ?? assert.fail();
  return decision.pods.filter(({ name }) => {
    const pod = own.pods.find((one) => one.name === name) ?? assert.fail(name);
    const living = livingReservations(Object.fromEntries(reservations), presentIn(zones), now);
    const rollout = { maxUnavailable: own.maxUnavailable };
    if (!isAllowed(decideEviction({ now, pod, budget, zones, reservations: living, rollout }))) return false;
    const time = new Date(now).toISOString();
    reservations.set(name, { kind: "rollout", uid: pod.uid, pinned: true, time, by: "reconciler" });
    return true;
  });
}

/** Controllers of zones whose latest spec they have seen keep up; those of others are late. */
export function syncObserved(cluster: SmallCluster): void {
  for (const set of cluster.sets()) if (isObserved(set)) cluster.sync(set.metadata.name);
}

/** Controllers see the latest spec. */
export function syncLagging(cluster: SmallCluster): boolean {
  const lagging = cluster.sets().filter((set) => !isObserved(set));
  for (const { metadata } of lagging) cluster.sync(metadata.name);
  return lagging.length > 0;
}

/** When pods that are not ready begin to count differently, by time alone (§1.4a, §2.0). */
export const momentsOf = (zones: readonly ZoneWithPods[]): number[] =>
  zones.flatMap(({ pods }) =>
    pods.flatMap(({ health: { state, since } }) =>
      state === "ready" || since === undefined ? [] : [RECOVERY_MS, GIVEN_UP_MS].map((ms) => since + ms),
    ),
  );
