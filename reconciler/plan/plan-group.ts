/**
 * Looks ahead: the steps that ticks will take in a group, in order, if nobody changes anything, pods that can come up
 * do, and the checks of gates pass.
 *
 *   decide as a tick does (next-step.ts): a step? -> apply it -> decide again
 *     a wait? -> gates advance (controllers.ts) -> controllers and kubelets do their part (controllers.ts) -> time passes -> decide again
 *                none of these changes anything: the group is settled, or blocked for good
 *
 * It begins with the world as it was read (act/gather-world.ts), and calls nothing.
 */
import type { Pod } from "../model/pod.ts";
import { timeLeft } from "../budget/reservation.ts";
import { listSteps } from "../group-status/progress.ts";
import type { RemainingStep } from "../group-status/status.ts";
import { GIVEN_UP_MS } from "../model/readiness.ts";
import { goneHealth, isReady, RECOVERY_MS } from "../model/health.ts";
import type { Hold } from "../model/decision.ts";
import { listRemaining } from "../rollout/decide-rollout.ts";
import type { PreparePods } from "../scaling/snapshot.ts";
import { settle, withCounts, followGates } from "./controllers.ts";
import { nextStep, type GroupOutlook, type GroupStep, applyScale } from "./next-step.ts";
import { putZone, type World } from "./world.ts";

/** A step, and the wait before it. */
export interface PlannedAction {
  readonly action: "ScaleZone" | "PreparePods" | "ReplacePods" | "FinishZone";
  readonly zone: string;
  readonly pods?: readonly string[];
  /** Replicas that the zone gets, or would get once its pods are prepared. */
  readonly replicas?: number;
  readonly message: string;
  /** The reasons to wait since the step before, in the order in which they came. */
  readonly waits: readonly string[];
  readonly waitMs: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export interface GroupPlan {
  readonly steps: readonly PlannedAction[];
  /** `cut`: there are more than were asked for. */
  readonly end: "settled" | "blocked" | "cut";
  readonly holds: readonly Hold[];
  /** What is left of the rollout once they are over. */
  readonly remaining: readonly RemainingStep[];
  /** When it ends, milliseconds since the epoch. */
  readonly endsAt: number;
  /** The wait after the last step, such as that for a gate after the last zone. */
  readonly lastWait: Pick<PlannedAction, "waits" | "waitMs">;
}

/** Waits of the whole simulation: gates and delays take some, an error in the simulation would take them all. */
const MAX_WAITS = 100_000;

/** The next `most` steps (§18.4). */
export function planGroup(start: World, most: number): GroupPlan {
  const collected = collectSteps(start.now);
  let world = start;
  for (let rounds = 0; ; rounds++) {
    const outlook = nextStep(world);
    collected.note(outlook, world.now);
    const { steps } = collected;
    if (outlook.step && steps.length >= most) {
      const lastWait = { waits: [], waitMs: 0 };
      return { steps: steps.slice(0, most), end: "cut", holds: [], remaining: [], endsAt: world.now, lastWait };
    }
    const next = advance(world, outlook);
    if (!next || rounds > MAX_WAITS + steps.length)
      return { steps, ...finish(outlook, world), lastWait: collected.wait(world.now) };
    world = next;
  }
}

type Undated = Omit<PlannedAction, "waits" | "waitMs" | "at">;

function collectSteps(startedAt: number) {
  const steps: PlannedAction[] = [];
  let waits: string[] = [];
  let since = startedAt;
  const add = (step: Undated, now: number): void => {
    steps.push({ ...step, waits, waitMs: now - since, at: now });
    [waits, since] = [[], now];
  };
  return {
    steps,
    wait: (now: number): GroupPlan["lastWait"] => ({ waits, waitMs: now - since }),
    note(outlook: GroupOutlook, now: number): void {
      for (const step of outlook.preparing) add(describePreparation(step), now);
      if (outlook.step) add(describe(outlook.step), now);
      else waits = [...new Set([...waits, ...outlookHolds(outlook).map(({ reason }) => reason)])];
    },
  };
}

function describePreparation({ zone, wanted, pods }: PreparePods): Undated {
  const message = `preparing the last ${pods.count} pods of ${zone.name}`;
  return { action: "PreparePods", zone: zone.name, replicas: wanted, message };
}

function finish(outlook: GroupOutlook, { now, zones }: World): Omit<GroupPlan, "steps" | "lastWait"> {
  const holds = outlookHolds(outlook);
  const end = holds.length > 0 ? "blocked" : "settled";
  return { end, holds, remaining: end === "blocked" ? listSteps(listRemaining(zones)) : [], endsAt: now };
}

/** The holds that the group waits for. */
const outlookHolds = ({ hold, scalingHolds }: GroupOutlook): Hold[] => [...(hold ? [hold] : []), ...scalingHolds];

function describe(step: GroupStep): Undated {
  const { message, zone } = step;
  switch (step.action) {
    case "scaleZone":
      return { action: "ScaleZone", zone: zone.name, replicas: step.replicas, message };
    case "deletePods":
      return { action: "ReplacePods", zone: zone.name, pods: step.pods.map(({ name }) => name), message };
    case "finishZone":
      return { action: "FinishZone", zone: zone.name, message };
    default:
      return step satisfies never;
  }
}

/** The world after the next step or wait; undefined if it would be the same for ever. */
function advance(world: World, outlook: GroupOutlook): World | undefined {
  const prepared = outlook.preparing.reduce((map, { zone }) => new Map(map).set(zone.uid, world.now), world.preparedAt);
  const now = { ...world, preparedAt: prepared };
  // As in a tick, the gates are followed from the world in which the step was decided.
  const followed = outlook.isScaling ? { world: now, progressed: false, nextAt: undefined } : followGates(now);
  if (outlook.step) return apply(followed.world, outlook.step);
  if (followed.progressed) return followed.world;
  const settled = settle(followed.world);
  if (settled) return settled.world;
  const at = nextMoment(followed.world, outlook, followed.nextAt);
  return at === undefined ? undefined : { ...followed.world, now: at };
}

function apply(world: World, step: GroupStep): World {
  const zone = world.zones.find(({ uid }) => uid === step.zone.uid);
  if (!zone) return world;
  switch (step.action) {
    case "scaleZone":
      return applyScale(world, step);
    case "deletePods": {
      const chosen = new Set(step.pods.map(({ uid }) => uid));
      const leave = (pod: Pod): Pod => ({ ...pod, health: goneHealth(pod.health, world.now) });
      return putZone(
        world,
        withCounts({ ...zone, pods: zone.pods.map((pod) => (chosen.has(pod.uid) ? leave(pod) : pod)) }),
      );
    }
    case "finishZone":
      return putZone(
        world,
        withCounts({ ...zone, status: { ...zone.status, currentRevision: zone.status.updateRevision } }),
      );
    default:
      return step satisfies never;
  }
}

/** After these times a pod that is not ready counts differently (§1.4a, §2.0). */
const WAITS_FOR_PODS = [RECOVERY_MS, GIVEN_UP_MS];

/** The next time at which time alone may change a decision. */
function nextMoment(
  { budgets, zones, now }: World,
  outlook: GroupOutlook,
  nextCheck: number | undefined,
): number | undefined {
  const untils = outlookHolds(outlook).flatMap(({ until }) => (until === undefined ? [] : [until + 1]));
  const reserved = budgets.flatMap(({ reservations }) =>
    Object.values(reservations).map((one) => now + timeLeft(one, now)),
  );
  const delays = budgets.flatMap(({ content }) =>
    "problem" in content || content.crossZoneEvictionDelayMs === 0 ? [] : [content.crossZoneEvictionDelayMs],
  );
  const pods = [...zones, ...budgets.flatMap(({ others }) => others)].flatMap((zone) => zone.pods);
  const overdue = pods.flatMap((pod) => {
    const { since } = pod.health;
    return isReady(pod) || since === undefined ? [] : WAITS_FOR_PODS.map((ms) => since + ms);
  });
  const ready = pods.flatMap(({ readySince }) =>
    readySince === undefined ? [] : delays.map((ms) => readySince + ms + 1),
  );
  const isWaiting = outlookHolds(outlook).length > 0;
  const all = [
    ...untils,
    ...(isWaiting ? [...reserved, ...overdue, ...ready, ...(nextCheck === undefined ? [] : [nextCheck])] : []),
  ];
  const later = all.filter((at) => at > now);
  return later.length > 0 ? later.reduce((a, b) => Math.min(a, b)) : undefined;
}
