/** Explains a group, one of its zones or a pod, by the records and by what a tick would decide now. Pure. */
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import type { Pod } from "../../reconciler/model/pod.ts";
import type { Zone, ZoneWithPods } from "../../reconciler/model/zone.ts";
import { countsAsReady, type EvictionSnapshot } from "../../reconciler/budget/decide-eviction.ts";
import { isIdleSurplus, missingPods } from "../../reconciler/model/readiness.ts";
import { NOT_NOW } from "../../reconciler/budget/verdict.ts";
import type { StoredHold } from "../../reconciler/group-status/status.ts";
import { findFacts } from "../../reconciler/model/decision.ts";
import { describeBypass } from "../../reconciler/gates/bypass.ts";
import { bypassesOf } from "../../reconciler/gates/hold.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import { nextStep, type GroupOutlook } from "../../reconciler/plan/next-step.ts";
import type { World } from "../../reconciler/plan/world.ts";
import {
  allow,
  allowByTick,
  explainDenial,
  earliestOf,
  explainStored,
  explainHold,
  explainVerdict,
  type Explanation,
  type Blocker,
  GO_ON,
  type Scene,
} from "./answer.ts";
import { describeHealth, isReady, isTerminating } from "../../reconciler/model/health.ts";
import { how, kubectl } from "../../reconciler/model/remedy.ts";
import { curePods, listNames } from "../../reconciler/remedies/cures.ts";
import { storedHolds, isRecorded, notePause, type GroupState } from "./group-state.ts";

const ROLL = "roll out";
const SCALE = "scale";
const EVICT = "evict";

const NOTHING_TO_DO = "Nothing to do";
const UP_TO_DATE = "all zones are up to date";

/**
 * The recorded holds, if they are of the group's present state and the reconciler ticks; otherwise the decision that a
 * tick would make now.
 */
export function explainGroup(state: GroupState, world: World): Explanation[] {
  const recorded = storedHolds(state);
  if (isRecorded(state) && recorded.length > 0 && !state.isOld)
    return recorded.map((stored) => explainStored(stored, questionOf(stored), world));
  return explainNow(nextStep(world), world, recorded);
}

const isAmong = (blockers: readonly Blocker[]) => (object: Blocker) =>
  blockers.some(({ kind, name }) => kind === object.kind && name === object.name);

const questionOf = ({ reason }: StoredHold): string => (findFacts(reason)?.scaling ? SCALE : ROLL);

function explainNow(
  { step, hold: held, scalingHolds }: GroupOutlook,
  scene: World,
  recorded: readonly StoredHold[],
): Explanation[] {
  const context = { scene, recorded, now: scene.now };
  const rollout = held
    ? explainHold(held, ROLL, context)
    : step
      ? allowByTick(ROLL, step.message)
      : explainSettled(scene.zones);
  return [rollout, ...scalingHolds.map((one) => explainHold(one, SCALE, context))];
}

/** There is nothing to do. Where these zones are all paused, a new template would wait too. */
const explainSettled = (zones: readonly ZoneWithPods[]): Explanation =>
  allow(ROLL, [UP_TO_DATE, ...notePause(zones)].join("; "), NOTHING_TO_DO);

/** One answer for each zone that may begin without its gates, whatever else holds the group. */
export const explainBypasses = (zones: readonly ZoneWithPods[], { gates, now }: World): Explanation[] =>
  bypassesOf(gates, { zones, now }).map((one) =>
    allow(
      "begin without gates",
      `${one.zone} has a bypass ${describeBypass(one)}; all other rules still apply`,
      "May begin without gates",
    ),
  );

/** The answers of its group that concern the zone; without any, the zone whose turn it is. */
export function explainZone(zone: ZoneWithPods, state: GroupState, world: World): Explanation[] {
  const answers = explainGroup(state, world);
  const own = answers.filter(({ question, objects }) => question === ROLL || objects[0]?.name === zone.name);
  const { step } = nextStep(world);
  const [rollout] = own;
  if (!rollout?.allowed || step?.zone.uid === zone.uid) return own;
  if (!step) return [explainSettled([zone]), ...own.slice(1)];
  return [allowByTick(ROLL, `it is the turn of ${step.zone.name}: ${step.message}`), ...own.slice(1)];
}

/** Answers whether the pod may be evicted now, and whether the rollout may replace it. */
export function explainPod(pod: Pod, state: GroupState | undefined, world: World): Explanation[] {
  // Drains pin no UID: if the pod is terminating, an eviction by name might reach its successor.
  const judged = judgeDisruption(world, pod, { unpinned: isTerminating(pod) });
  const blocking = judged.snapshot ? blockersOf(pod, judged.snapshot) : [];
  const eviction = explainVerdict(judged.verdict, EVICT, {
    answer: "Can be evicted",
    scene: world,
    blockers: judged.verdict.reason === "BudgetSpent" ? blocking : [],
    since: earliestOf(
      storedHolds(state).flatMap((stored) => (stored.objects.some(isAmong(blocking)) ? [stored.since] : [])),
    ),
  });
  const zone = world.zones.find(({ uid }) => uid === pod.owner);
  if (!state || !zone) return [eviction];
  const turn = explainTurn(pod, zone, { state, world });
  return [eviction, ...turn, ...explainEffect(pod, { state, world }, turn)];
}

/** The effects of a pod that is not ready: it blocks its group, and evictions from other zones. `said` was told before. */
function explainEffect(pod: Pod, { state, world }: Subject, said: readonly Explanation[]): Explanation[] {
  if (isReady(pod)) return [];
  const zone = world.zones.find(({ uid }) => uid === pod.owner)?.name;
  const kept = explainGroup(state, world).filter((one) => !one.allowed && isBlockedBy(one, pod.name, zone));
  const held = world.zones.filter((zone) => zone.uid !== pod.owner && isKept(pod, zone, world));
  const evictions = held.map(({ name }) => name);
  const [first] = kept;
  if (!first && evictions.length === 0) return [];
  const scene = { ...world, message: "", objects: [pod] };
  const message = [
    `${pod.name} (${describeHealth(pod)}) keeps group ${state.group} waiting`,
    ...kept.filter((one) => !said.some(({ message }) => message === one.message)).map(({ message }) => message),
    ...(evictions.length > 0 ? [`no pod of ${listNames(evictions)} may be evicted`] : []),
  ].join("; ");
  return [
    explainDenial({
      question: GO_ON,
      reason: first?.reason ?? "BudgetSpent",
      rule: "all pods of the group are ready",
      message,
      objects: [{ kind: "RolloutGroup", name: state.group }],
      since: first?.since,
      remedy: curePods(scene),
    }),
  ];
}

/** True if the answer names the pod, or its zone if it names only zones. The first zone may be the waiting one. */
function isBlockedBy({ reason, objects }: Explanation, pod: string, zone: string | undefined): boolean {
  if (objects.some(({ kind, name }) => kind === "Pod" && name === pod)) return true;
  const ill = reason === "OtherZoneNotReady" ? objects.slice(1) : reason === "MultipleZonesNotReady" ? objects : [];
  return ill.some(({ name }) => name === zone);
}

/** True if the budget forbids the eviction of a healthy pod of that zone because of this pod. */
function isKept(pod: Pod, zone: ZoneWithPods, world: World): boolean {
  const other = zone.pods.find(isReady);
  if (!other) return false;
  const { verdict, snapshot } = judgeDisruption(world, other, { unpinned: false });
  return (
    verdict.reason === "BudgetSpent" &&
    snapshot !== undefined &&
    blockersOf(other, snapshot).some(({ name }) => name === pod.name)
  );
}

/** What the API server answers to a dry-run eviction. */
export type EvictionAnswer =
  | { readonly kind: "allowed" }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unknown"; readonly why: string };

/**
 * The answers about a pod, the first of which is about its eviction, with what the API server answers. It only counts if
 * no rule of ours says no: a PodDisruptionBudget, or somebody else's webhook, may refuse the eviction all the same.
 */
export function addAnswer(
  answers: readonly Explanation[],
  answer: EvictionAnswer,
  { pod, scene }: { readonly pod: Pod; readonly scene: Scene },
): Explanation[] {
  const [eviction, ...rest] = answers;
  if (!eviction?.allowed || answer.kind === "allowed") return [...answers];
  if (answer.kind === "unknown")
    return [{ ...eviction, message: `${eviction.message}; a dry-run eviction got no answer: ${answer.why}` }, ...rest];
  if (answer.message.includes(NOT_NOW.message))
    return [explainVerdict({ ...NOT_NOW, objects: [pod] }, EVICT, { scene, blockers: [] }), ...rest];
  const refused = explainDenial({
    question: EVICT,
    reason: "Refused",
    rule: "every PodDisruptionBudget and every other webhook allows the eviction",
    message: `the API server refuses a dry-run eviction: ${answer.message}`,
    objects: [],
    remedy: how("look at what the message names", kubectl(scene, "get pdb")),
  });
  return [refused, ...rest];
}

interface Subject {
  readonly state: GroupState;
  readonly world: World;
}

function explainTurn(pod: Pod, zone: ZoneWithPods, { state, world }: Subject): Explanation[] {
  if (pod.revision === zone.status.updateRevision)
    return [allow(ROLL, `${pod.name} is already updated: ${pod.revision}`, NOTHING_TO_DO)];
  const { step, denied } = nextStep(world);
  const context = { scene: world, recorded: storedHolds(state), now: world.now };
  const denial = denied.find(({ objects }) => objects.some(({ kind, name }) => kind === "Pod" && name === pod.name));
  if (denial) return [explainHold(denial, ROLL, context)];
  if (step?.action === "deletePods" && step.pods.some(({ uid }) => uid === pod.uid))
    return [allowByTick(ROLL, step.message)];
  return explainZone(zone, state, world).slice(0, 1);
}

/**
 * A pod that is not ready, reserved or missing. A pod that a downscale removes is not one: only its zone shows whether it
 * is still to go.
 */
interface BlockingPod {
  readonly pod: string;
  readonly zone: Zone;
}

/** Missing pods of a zone that are named: `spec.replicas` may be larger than memory. */
const MAX_MISSING = 100;

function findBlocking({ zones, ...view }: EvictionSnapshot): readonly BlockingPod[] {
  return zones.flatMap(({ pods, ...zone }) => {
    const unready = pods
      .filter((pod) => !countsAsReady(pod, view) && !isIdleSurplus(pod, zone))
      .map(({ name }) => name);
    return [...unready, ...missingPods(zone, pods, MAX_MISSING)].map((pod) => ({ pod, zone }));
  });
}

/**
 * The pods that the budget counts as unavailable; only those of other zones if there are any, as none of those may be
 * unavailable.
 */
function blockersOf(pod: Pod, snapshot: NonNullable<ReturnType<typeof judgeDisruption>["snapshot"]>): Blocker[] {
  const blocking = findBlocking(snapshot);
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
      ? "nothing replaces its pods: someone has to delete them"
      : "its own controller replaces its pods";
  const message = `it is in no rollout group and no PhasedRollout targets it: ${who} (${strategy})`;
  return allow(ROLL, message, "Not managed by Zonewise");
}
