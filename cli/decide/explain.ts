/** Explains a group, one of its zones or a pod, by what is recorded and by what a tick would decide now. Pure. */
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import type { BudgetPod, BudgetZone } from "../../reconciler/budget/budget-pod.ts";
import { findBlocking } from "../../reconciler/budget/denial-cache.ts";
import { NOT_NOW } from "../../reconciler/budget/verdict.ts";
import type { Block } from "../../reconciler/group-status/status.ts";
import { findFacts } from "../../reconciler/model/decision.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import { nextStep, type GroupOutlook } from "../../reconciler/plan/next-step.ts";
import type { World } from "../../reconciler/plan/world.ts";
import {
  allow,
  earliestOf,
  explainBlock,
  explainHold,
  explainVerdict,
  type Explanation,
  type Blocker,
} from "./answer.ts";
import { isRecorded, type GroupState } from "./group-state.ts";

const ROLL = "roll out";
const SCALE = "scale";
const EVICT = "evict";

/** What is recorded, if it was recorded of the group as it is; otherwise what a tick would decide now. */
export function explainGroup(state: GroupState, world: World): Explanation[] {
  const { namespace } = state;
  const recorded = blocksOf(state);
  if (isRecorded(state) && recorded.length > 0)
    return recorded.map((block) => explainBlock(block, questionOf(block), namespace));
  return explainNow(nextStep(world), namespace, recorded);
}

const blocksOf = (state: GroupState | undefined): readonly Block[] => state?.status?.blocked ?? [];
const isAmong = (blockers: readonly Blocker[]) => (object: Blocker) =>
  blockers.some(({ kind, name }) => kind === object.kind && name === object.name);

const questionOf = ({ reason }: Block): string => (findFacts(reason)?.scaling ? SCALE : ROLL);

function explainNow(
  { step, hold, scalingHolds }: GroupOutlook,
  namespace: string,
  recorded: readonly Block[],
): Explanation[] {
  const context = { namespace, recorded };
  const rollout = hold
    ? explainHold(hold, ROLL, context)
    : allow(ROLL, step?.message ?? "all zones are updated and ready");
  return [rollout, ...scalingHolds.map((one) => explainHold(one, SCALE, context))];
}

/** The answers of its group that concern the zone; without any, whose turn it is. */
export function explainZone(zone: BudgetZone, state: GroupState, world: World): Explanation[] {
  const answers = explainGroup(state, world);
  const own = answers.filter(({ question, objects }) => question === ROLL || objects[0]?.name === zone.name);
  const { step } = nextStep(world);
  const [rollout] = own;
  if (!rollout?.allowed || !step || step.zone.uid === zone.uid) return own;
  return [allow(ROLL, `it is the turn of ${step.zone.name}: ${step.message}`), ...own.slice(1)];
}

/** May it be evicted now, and may the rollout replace it. */
export function explainPod(pod: BudgetPod, state: GroupState | undefined, world: World): Explanation[] {
  // Drains pin no UID: on a name whose pod is on its way out, they might reach its successor.
  const judged = judgeDisruption(world, pod, { unpinned: pod.terminating });
  const blocking = judged.snapshot ? blockersOf(pod, judged.snapshot) : [];
  const eviction = explainVerdict(judged.verdict, EVICT, {
    namespace: pod.namespace,
    blockers: judged.verdict.reason === "BudgetSpent" ? blocking : [],
    since: earliestOf(blocksOf(state).flatMap((block) => (block.objects.some(isAmong(blocking)) ? [block.since] : []))),
  });
  const zone = world.zones.find(({ uid }) => uid === pod.owner);
  return state && zone ? [eviction, ...explainTurn(pod, zone, { state, world })] : [eviction];
}

/** Why the API server refused an eviction in these words; undefined if nothing of ours says no. */
export function explainRefusal(
  refusal: string,
  pod: BudgetPod,
  { state, world }: { readonly state: GroupState | undefined; readonly world: World },
): Explanation | undefined {
  const context = { namespace: pod.namespace, blockers: [] };
  if (refusal.includes(NOT_NOW.message)) return explainVerdict({ ...NOT_NOW, objects: [pod] }, EVICT, context);
  return explainPod(pod, state, world)
    .slice(0, 1)
    .find(({ allowed }) => !allowed);
}

interface Subject {
  readonly state: GroupState;
  readonly world: World;
}

function explainTurn(pod: BudgetPod, zone: BudgetZone, { state, world }: Subject): Explanation[] {
  if (pod.revision === zone.status.updateRevision)
    return [allow(ROLL, `${pod.name} is at the update revision already`)];
  const { step, denied } = nextStep(world);
  const context = { namespace: pod.namespace, recorded: blocksOf(state) };
  const denial = denied.find(({ objects }) => objects.some(({ kind, name }) => kind === "Pod" && name === pod.name));
  if (denial) return [explainHold(denial, ROLL, context)];
  if (step?.action === "deletePods" && step.pods.some(({ uid }) => uid === pod.uid)) return [allow(ROLL, step.message)];
  return explainZone(zone, state, world).slice(0, 1);
}

/** The pods that the budget counts as unavailable: of other zones first, as none of those may be. */
function blockersOf(pod: BudgetPod, snapshot: NonNullable<ReturnType<typeof judgeDisruption>["snapshot"]>): Blocker[] {
  const { blocking } = findBlocking(snapshot.zones, snapshot, 0);
  const partition = snapshot.budget.partitionOf?.(pod.name);
  const counted = blocking.filter(
    (one) => partition === undefined || snapshot.budget.partitionOf?.(one.pod) === partition,
  );
  const others = counted.filter(({ zone }) => zone.uid !== pod.owner);
  const chosen = others.length > 0 ? others : counted.filter((one) => one.pod !== pod.name);
  return chosen.map((one) => ({ kind: "Pod", name: one.pod }));
}

/** A StatefulSet that is in no group, and that no PhasedRollout targets. */
export function explainUnmanaged({ spec }: StatefulSet): Explanation {
  const strategy = spec?.updateStrategy?.type ?? "RollingUpdate";
  const who =
    strategy === "OnDelete"
      ? "nobody replaces its pods: somebody has to delete them"
      : "its own controller replaces its pods";
  return allow(ROLL, `it is in no rollout group and no PhasedRollout targets it: ${who} (${strategy})`);
}
