/** Decides the next step of a tick in a world: scale, then roll out, under gates and budgets. It changes nothing. */
import type { DeletePods, FinishZone, ScaleZone } from "../model/outcome.ts";
import type { Pod } from "../model/pod.ts";
import { holdPod, isAllowed } from "../budget/verdict.ts";
import { judgeGates } from "../gates/hold.ts";
import { identityOf } from "../gates/rollout.ts";
import { blameUnavailable } from "../model/culprit.ts";
import type { Hold } from "../model/decision.ts";
import { holdForLost, holdForOrphans } from "../model/orphans.ts";
import type { GateVerdicts, GroupSnapshot, ZoneWithPods } from "../model/zone.ts";
import { decideRollout } from "../rollout/decide-rollout.ts";
import { judgeDisruption, reserve, judgeDownscale } from "./budget-verdicts.ts";
import { type World, putZone } from "./world.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { decideScaling } from "../scaling/decide-scaling.ts";
import { foldAges } from "../scaling/delayed.ts";
import {
  addFacts,
  type PreparePods,
  type ScalingSnapshot,
  type ScalingStep,
  type ZoneFacts,
  zoneFactsOf,
} from "../scaling/snapshot.ts";
import { decideShrink, isShrinking } from "../scaling/steady.ts";

export type GroupStep = ScaleZone | DeletePods | FinishZone;

export interface GroupOutlook extends Pick<ScalingOutlook, "scalingHolds" | "preparing"> {
  /** The step; undefined if only waiting is left, or nothing. */
  readonly step: GroupStep | undefined;
  /** Why the rollout waits, or would: an orphaned zone is not whole. Undefined for a settled group too. */
  readonly hold: Hold | undefined;
  /** Why the budgets keep pods that were chosen. */
  readonly denied: readonly Hold[];
  /** The rollout was not decided, as a zone is scaled first. */
  readonly isScaling: boolean;
}

export function nextStep(world: World): GroupOutlook {
  const { change, ...scaling } = nextScaling(world);
  if (change) return { ...scaling, step: change, hold: undefined, denied: [], isScaling: true };
  return { ...scaling, ...nextRolloutStep(world), isScaling: false };
}

type RolloutOutlook = Pick<GroupOutlook, "step" | "hold" | "denied">;

function nextRolloutStep(world: World): RolloutOutlook {
  const { zones, orphans = [] } = world;
  if (zones.length === 0) return { step: undefined, hold: holdForLost(orphans), denied: [] };
  const decision = decideRollout(snapshotOf(world));
  if (!decision) return { step: undefined, hold: holdForOrphans(orphans), denied: [] };
  if (decision.action === "hold") return { step: undefined, hold: decision, denied: [] };
  return decision.action === "finishZone"
    ? { step: decision, hold: undefined, denied: [] }
    : askBudgets(decision, world);
}

/** The snapshot that the rollout is decided from. */
export function snapshotOf(world: World): GroupSnapshot {
  const gates = gateVerdicts(world);
  const { zones, orphans, now } = world;
  return { zones, now, ...(orphans && { orphans }), ...(gates && { gates }) };
}

function gateVerdicts({ gates, zones, now }: World): GateVerdicts | undefined {
  return gates.length > 0 ? judgeGates(gates, { identity: identityOf(zones), zones, now }) : undefined;
}

/** One pod after the other: each that may go counts for the next. */
function askBudgets(decision: DeletePods, world: World): RolloutOutlook {
  const { zone } = decision;
  const granted: Pod[] = [];
  const denied: Hold[] = [];
  let current = world;
  for (const { name } of decision.pods) {
    const pod = world.zones.find(({ uid }) => uid === zone.uid)?.pods.find((one) => one.name === name);
    if (!pod) continue;
    const { verdict } = judgeDisruption(current, pod, {
      uid: pod.uid,
      rollout: { maxUnavailable: zone.maxUnavailable },
    });
    if (!isAllowed(verdict))
      denied.push(blameUnavailable(holdPod(verdict, pod, zone), pod, { zone, zones: world.zones }));
    else granted.push(pod);
    if (isAllowed(verdict)) current = reserve(current, pod);
  }
  const [denial] = denied;
  return granted.length === 0
    ? { step: undefined, hold: denial, denied }
    : { step: { ...decision, pods: granted }, hold: undefined, denied };
}

// The scaling of a world's group: the tick's own decisions, with steps that change only facts.

interface ScalingOutlook {
  /** The zone that is scaled next, if one may be. */
  readonly change: ScaleZone | undefined;
  readonly scalingHolds: readonly Hold[];
  /** Pods that are to prepare and do not yet. */
  readonly preparing: readonly PreparePods[];
}

type Step = Exclude<ScalingStep, Hold>;

function nextScaling(world: World): ScalingOutlook {
  const preparing: PreparePods[] = [];
  // No pod is called, so no address is complete.
  let snapshot: ScalingSnapshot = { ...world, clusterDomain: "", facts: new Map() };
  for (;;) {
    const { next, scalingHolds, unread } = decideScaling(snapshot);
    if (unread) snapshot = readReference(snapshot, unread.uid, world);
    else if (!next || next.action === "hold") return { change: snapshot.scaled?.step, scalingHolds, preparing };
    else snapshot = take(next, { snapshot, scalingHolds, preparing }, world);
  }
}

function readReference(snapshot: ScalingSnapshot, uid: string, { zones, references, now }: World): ScalingSnapshot {
  const zone = zones.find((one) => one.uid === uid);
  if (!zone) return snapshot;
  const reading = references.get(uid) ?? { unreadable: "it was not read" };
  return addFacts(snapshot, zone, {
    facts: zoneFactsOf(snapshot, zone).reference ? { confirmed: reading } : { reference: reading },
    now,
  });
}

interface Progress {
  readonly snapshot: ScalingSnapshot;
  readonly scalingHolds: readonly Hold[];
  readonly preparing: PreparePods[];
}

function take(step: Step, { snapshot, scalingHolds, preparing }: Progress, world: World): ScalingSnapshot {
  const withFacts = (facts: ZoneFacts): ScalingSnapshot => addFacts(snapshot, step.zone, { facts, now: world.now });
  switch (step.action) {
    case "cancelPreparation":
      return withFacts({ notified: true });
    case "preparePods": {
      if (!world.preparedAt.has(step.zone.uid)) preparing.push(step);
      return withFacts({ answers: answer(step, world) });
    }
    case "writeBack":
      return withFacts({ writtenBack: "done" });
    case "scaleZone": {
      const refused = whyNotShrink(step, world);
      return refused ? withFacts({ refused }) : { ...snapshot, scaled: { step, scalingHolds } };
    }
    default:
      return step satisfies never;
  }
}

/** No pod is called: the pods count as prepared from the moment at which they are first to go. */
function answer({ zone, delay, pods }: PreparePods, { preparedAt, now }: World): NonNullable<ZoneFacts["answers"]> {
  const ages = foldAges(delay);
  ages.add(pods.count - 1, preparedAt.get(zone.uid) ?? now, now);
  return { youngest: ages.youngest() };
}

/**
 * The check that a tick makes right before the write, without downscales that others have just admitted: in a look
 * ahead nothing changes between the decision and the write.
 */
function whyNotShrink(step: ScaleZone, world: World): Hold | undefined {
  if (!isShrinking(step)) return undefined;
  const why = decideShrink(step, world, world);
  if (why) return why === "outdated" ? undefined : why;
  const zone = world.zones.find(({ uid }) => uid === step.zone.uid);
  return zone && judgeDownscale(world, zone, step.replicas);
}

/** The world after the zone was scaled; its controller has not seen it yet. */
export function applyScale(world: World, { zone, replicas, recordAt }: ScaleZone): World {
  const found = world.zones.find(({ uid }) => uid === zone.uid);
  if (!found) return world;
  const lastDownscale = recordAt === undefined ? found.scaling.lastDownscale : formatTimestamp(recordAt);
  const scaling = { ...found.scaling, lastDownscale };
  const next: ZoneWithPods = { ...found, replicas, scaling, generation: found.generation + 1, observed: false };
  const preparedAt = new Map(world.preparedAt);
  preparedAt.delete(zone.uid);
  return putZone({ ...world, preparedAt }, next);
}
