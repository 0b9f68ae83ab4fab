/** Decides the next step of a tick in a world: scale, then roll out, under gates and budgets. It changes nothing. */
import type { DeletePods, FinishZone, ScaleZone } from "../model/outcome.ts";
import type { Pod } from "../model/pod.ts";
import { holdPod, isAllowed } from "../budget/verdict.ts";
import { judgeGates } from "../gates/hold.ts";
import { identityOf } from "../gates/rollout.ts";
import { blameUnavailable } from "../model/culprit.ts";
import type { Hold } from "../model/decision.ts";
import { holdForLost, holdForOrphans } from "../model/orphans.ts";
import type { GateVerdicts, GroupSnapshot } from "../model/zone.ts";
import { decideRollout } from "../rollout/decide-rollout.ts";
import { judgeDisruption, reserve } from "./budget-verdicts.ts";
import { nextScaling, type ScalingOutlook } from "./next-scaling.ts";
import type { World } from "./world.ts";

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
  const { namespace, group: name, zones, orphans, now } = world;
  return { namespace, name, zones, now, ...(orphans && { orphans }), ...(gates && { gates }) };
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
