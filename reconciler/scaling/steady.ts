/**
 * Shrinking a zone takes pods away, and so does a rollout: we never do this in two zones at once. Upstream leaves the
 * check to its webhook, which may not be installed.
 */
import { endsRollout, whyRefused } from "../downscale/decide-admission.ts";
import { findCulprit, worstOf } from "../model/culprit.ts";
import { type Culprit, hold, type Hold } from "../model/decision.ts";
import {
  countAwaited,
  isGivenUp,
  type Shrink,
  type ShrinkInGroup,
  describeUnavailable,
  describeUnsteady,
  isHealthy,
  isSteady,
  isSurplus,
  unavailable,
  withoutIdleSurplus,
} from "../model/readiness.ts";
import { isMoving, servesNothing } from "../model/health.ts";
import { listSome } from "../../infra/cut.ts";
import { waitForOrphans } from "../model/orphans.ts";
import type { GatheredGroup, Zone, ZoneWithPods } from "../model/zone.ts";
import type { ScaleZone } from "../model/outcome.ts";
import type { ZoneTimes } from "./snapshot.ts";
import { decideFollower } from "./leader.ts";
import { minTimeOver, timedOrphans } from "./min-time.ts";

/**
 * The hold that keeps `zone` from shrinking while another zone loses pods: by a rollout, a revert or a downscale. The
 * other zone's pods decide, because a revert leaves its revisions equal:
 *
 *   a pod of the other zone                                       `zone`
 *   is terminating, missing or surplus                            waits: the pod is on its way
 *   has not been Ready since it was created                       waits: a rollout may have replaced it
 *   is surplus, and was never Ready                               does not wait: nobody loses it
 *   is to go, too, and does not come up or was not created        does not wait (`isGivenUp`)
 *   was Ready, and is not any more                                waits only if the other zone rolls out
 *
 * The last line is a fault of that zone alone. A leader that has it must not keep its followers at their size (§2.1.4),
 * however often its containers restart. Two zones skip this check: one with `grafana.com/rollout-force-replicas`, and
 * one that loses only pods that serve nothing (`losesNothing`).
 *
 * Where a webhook judges the downscales of a healthy zone, the zone also waits for whatever the webhook would refuse,
 * such as outdated pods. Otherwise each tick would reserve pods for a write that is refused.
 */
export function othersSteady(
  { zone, replicas: size }: { readonly zone: Zone; readonly replicas: number },
  { zones, orphans }: GatheredGroup,
  now: number,
): Hold | undefined {
  const orphaned = waitForOrphans(zone, orphans, "waits to shrink");
  if (orphaned) return orphaned;
  const busy = busyZones(zones, { zone, size, now });
  if (busy.length === 0) return undefined;
  const objects = [zone, ...busy.map(({ other }) => other)];
  const dedupKey = `${zone.name} after ${listSome(busy.map(({ other }) => other.name))}`;
  const message = `${zone.name} waits to shrink: ${listSome(
    busy.map(({ what }) => what),
    "; ",
  )}`;
  return { ...hold("OtherZoneNotReady", message, objects), ...worstOf(busy.map(({ culprit }) => culprit)), dedupKey };
}

interface BusyZone {
  readonly other: Zone;
  readonly what: string;
  readonly culprit: Culprit;
}

/** The other zones that `shrink.zone` has to wait for. */
function busyZones(zones: readonly ZoneWithPods[], shrink: Shrink): readonly BusyZone[] {
  const { scaling, uid } = shrink.zone;
  // Others may wait for an unhealthy zone, which must not wait for them in turn: the webhook alone decides.
  const own = scaling.judgedByWebhook ? zones.find((zone) => zone.uid === uid) : undefined;
  const isJudged = own !== undefined && isHealthy(own);
  const inGroup = { ...shrink, zones, mayBeOutdated: isJudged && endsRollout(own, shrink.size) };
  return zones.flatMap((other): readonly BusyZone[] => {
    if (other.uid === uid) return [];
    const what = whatIsUnderWay(other, inGroup) ?? (isJudged ? whyRefused(other, inGroup) : undefined);
    return what === undefined ? [] : [{ other, what, culprit: findCulprit(other, zones) }];
  });
}

function whatIsUnderWay(whole: ZoneWithPods, shrink: ShrinkInGroup): string | undefined {
  if (!whole.observed) return `the StatefulSet controller has not observed the latest spec of ${whole.name}`;
  if (isHealthy(whole)) return isSteady(whole) ? undefined : describeUnsteady(whole);
  const other = withoutIdleSurplus(whole);
  const { pods, replicas, status } = other;
  const givenUp = pods.filter((pod) => isGivenUp(pod, other, shrink));
  // Pods on their way: missing ones that somebody waits for, surplus ones, and ones that come or go.
  const awaited = countAwaited(other, pods, shrink);
  const isMoved = pods.some((pod) => isMoving(pod) && !givenUp.includes(pod));
  if (awaited > 0 || pods.length > replicas || isMoved) return describeUnavailable(whole);
  // What is left is a fault of the zone alone. Pods that are given up, and missing ones that nobody waits for, are none.
  const isRolling = status.currentRevision !== status.updateRevision || status.updated < status.replicas;
  const { count, missing } = unavailable(whole);
  const blocking = count - givenUp.length - (missing - awaited);
  return isRolling && blocking > 0 ? describeUnavailable(whole) : undefined;
}

/**
 * True if no pod that the zone would lose by shrinking serves anything: after a scale-up that failed in several zones,
 * each of them would otherwise wait for the very pods that the others are about to lose.
 */
export function losesNothing({ firstOrdinal, pods }: ZoneWithPods, replicas: number, now: number): boolean {
  return pods.every((pod) => !isSurplus(pod, { firstOrdinal, replicas }) || servesNothing(pod, now));
}

/** True if the step takes pods away and nobody forces it: only then the rules below are asked. */
export function isShrinking({ zone, replicas }: Pick<ScaleZone, "zone" | "replicas">): boolean {
  return replicas < zone.replicas && zone.scaling.forcedReplicas === undefined;
}

/**
 * The rules for scaling a zone down, by the last facts that are read before the write, and for looks ahead: the hold
 * that keeps the zone at its size; "outdated" if its leader wants another number of replicas by now.
 */
export function decideShrink(
  step: Pick<ScaleZone, "zone" | "replicas">,
  times: ZoneTimes,
  group: GatheredGroup,
): Hold | "outdated" | undefined {
  const why = whyTooEarly(step, times) ?? minTimeOver(step.zone, { ...times, zones: timedOrphans(group) }, "optional");
  if (why) return why;
  const zone = group.zones.find(({ uid }) => uid === step.zone.uid);
  return zone && losesNothing(zone, step.replicas, times.now) ? undefined : othersSteady(step, group, times.now);
}

function whyTooEarly(
  { zone, replicas }: { readonly zone: Zone; readonly replicas: number },
  times: ZoneTimes,
): Hold | "outdated" | undefined {
  if (zone.scaling.leader === undefined) return minTimeOver(zone, times, "optional");
  const again = decideFollower(zone, times);
  if (again?.action === "hold") return again;
  return again?.replicas === replicas ? undefined : "outdated";
}
