/** The data that `zonewise status` shows of a namespace, and whether all is done. Pure. */
import { compareByNeed, type ShownGroup, type Standing } from "../../reconciler/group-status/view.ts";
import type { NoTick } from "../../reconciler/report/ticking.ts";
import { findCondition } from "../../reconciler/phased/status.ts";
import { explainPhased, isSeen, type Phased } from "./explain-phased.ts";
import { type GroupState, viewGroupState } from "./group-state.ts";

export interface Overview {
  readonly groups: readonly GroupState[];
  readonly phased: readonly Phased[];
  /** Why PhasedRollouts may not be read. */
  readonly unread?: string;
  /** The reconcilers that do not tick, or whose ticking is unknown. */
  readonly noTicks: readonly NoTick[];
  readonly unprotected: readonly Unprotected[];
}

type Completion = "done" | "blocked" | "going";

/** A group that is ready counts as done while it waits to be scaled. */
const completionOf = ({ standing, isReady }: Pick<ShownGroup, "standing" | "isReady">): Completion =>
  standing === "blocked" ? "blocked" : isReady ? "done" : "going";

const judgeGroup = (state: GroupState): Completion => completionOf(viewGroupState(state));
const judgePhased = (phased: Phased): Completion => {
  const standing = standingOfPhased(phased);
  return completionOf({ standing, isReady: standing === "done" });
};

/** The first of these states that applies to any of them: blocked, stopped (nothing ticks), going, unknown, done. */
export function judgeAll({ groups, phased, unread, ...rest }: Overview): Completion | "stopped" | "unknown" {
  const all = [...groups.map(judgeGroup), ...phased.map(judgePhased)];
  // A first tick that is still due is an ordinary wait.
  const noTicks = rest.noTicks.filter(({ reason }) => reason !== "NotYet");
  if (noTicks.length < rest.noTicks.length && all.length > 0) all.push("going");
  return (
    all.find((one) => one === "blocked") ??
    noTicks.map(({ state }) => state).find((state) => state === "stopped" && all.length > 0) ??
    all.find((one) => one === "going") ??
    (unread === undefined && noTicks.length === 0 ? "done" : "unknown")
  );
}

/** Objects that need a person come first, those that have needed one longest at the top; finished ones come last. */
export function sortByNeed({ groups, phased, ...rest }: Overview): Overview {
  const needOf = (one: Phased) => ({ standing: standingOfPhased(one), holds: [explainPhased(one)] });
  return {
    ...rest,
    groups: groups.toSorted((a, b) => compareByNeed(viewGroupState(a), viewGroupState(b))),
    phased: phased.toSorted((a, b) => compareByNeed(needOf(a), needOf(b))),
  };
}

/** Leaves out finished objects, and counts them. */
export function leaveOutDone({ groups, phased, ...rest }: Overview): Overview & { readonly done: number } {
  const own = groups.filter((group) => judgeGroup(group) !== "done");
  const other = phased.filter((one) => judgePhased(one) !== "done");
  return { ...rest, groups: own, phased: other, done: groups.length + phased.length - own.length - other.length };
}

/** `Suspended` counts as done: it needs nothing. */
export function standingOfPhased(phased: Phased): Standing {
  const { status } = phased.rollout;
  const { phase } = status;
  if (!isSeen(phased)) return "waiting";
  if (phase === "Stalled" || phase.startsWith("Error")) return "blocked";
  if (phase === "Suspended" || findCondition(status, "Updated")?.status === "True") return "done";
  return WAITS.has(explainPhased(phased).reason) ? "waiting" : "moving";
}

/** Steps of a PhasedRollout in which no pod is on its way. */
const WAITS: ReadonlySet<string> = new Set(["Paused", "WaitForInitialDelay", "WaitForChecks", "PrometheusError"]);

/** The fields of a group for `-o json`. */
export function describeGroup(state: GroupState): object {
  const { namespace, group, status } = state;
  const view = viewGroupState(state);
  return {
    kind: "RolloutGroup",
    namespace,
    group,
    progress: completionOf(view),
    message: view.sentence,
    holds: view.holds.map(({ reason, phase }) => ({ reason, phase })),
    status,
  };
}

function describePhased(phased: Phased): object {
  const { namespace, name, targetRef, status } = phased.rollout;
  const { allowed, reason, message } = explainPhased(phased);
  const progress = judgePhased(phased);
  const holds = allowed ? [] : [{ reason, phase: progress === "blocked" ? "Blocked" : "Waiting" }];
  return { kind: "PhasedRollout", namespace, name, targetRef, progress, message, holds, status };
}

export const describeAll = ({ groups, phased }: Overview): object[] => [
  ...groups.map(describeGroup),
  ...phased.map(describePhased),
];

/** Budgets of a namespace that no webhook asks, or that refuse every eviction; for one reason. */
export interface Unprotected {
  readonly namespace: string;
  readonly budgets: readonly string[];
  readonly reason: string;
  readonly message: string;
}

/** The value with the field `unprotected` in each object of such a namespace. */
export function addUnprotected(value: object, unprotected: readonly Unprotected[]): object {
  if (Array.isArray(value)) return value.map((one: object) => addUnprotected(one, unprotected));
  const own = unprotected.filter((one) => "namespace" in value && value.namespace === one.namespace);
  return own.length > 0 ? { ...value, unprotected: own } : value;
}
