/** Tables of situations: one PhasedRollout in a cluster, and the next write in a few words. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide, HELD, type PhasedDecision } from "./adapter.ts";
import { ago, NEW, NOW, OLD, rolling, type SetTraits } from "../../builders/phased.ts";
import { factsOf, type Scene } from "./scene.ts";

/** The decision in a few words: what is written, or the reported phase, `Ready`, `Updated` and step. */
function summarize(decision: PhasedDecision): string {
  switch (decision.action) {
    case "setPartition":
      return decision.partition === HELD
        ? `held: ${decision.reason}`
        : `partition ${decision.partition} ${decision.reason}`;
    case "releasePod":
      return `release ${decision.pod?.name ?? "nothing"} by partition ${decision.partition}`;
    case "replacePod":
      return `replace ${decision.pod.name}`;
    case "releaseTarget":
      return `give back with partition ${decision.partition ?? "kept"}, ${decision.pods} pods`;
    case "claim":
      return `claim${decision.original === undefined ? "" : `, before: ${decision.original}`}`;
    case "report":
      return describeStatus(decision);
    case "addFinalizer":
    case "dropFinalizer":
    case "check":
      return decision.action;
    default:
      return decision satisfies never;
  }
}

/** `Ready` and `Updated` of each phase, as the original has them; told only where they are others. */
const USUAL: Readonly<Record<string, string>> = {
  ErrorSTSNotFound: "False/ErrorSTSNotFound Unknown/ErrorSTSNotFound",
  ErrorCannotManage: "False/ErrorCannotManage Unknown/ErrorCannotManage",
  Suspended: "True/Suspended Unknown/Suspended",
  Rolling: "True/Ready False/Rolling",
  Updated: "True/Ready True/Updated",
};

/** The phase is told of a rollout without a step alone, and checks only once some were asked. */
function describeStatus({ status, dueAt }: Extract<PhasedDecision, { action: "report" }>): string {
  const { phase, rollingPodStatus: step, promotedStep, targetUID, conditions } = status;
  const [ready, updated, checks] = conditions;
  const said = ready && `${ready.status}/${ready.reason} ${updated?.status}/${updated?.reason}`;
  const checked = step && `${step.consecutiveSuccessfulChecks}/${step.consecutiveFailedChecks}`;
  return [
    phase === "Rolling" && step ? undefined : phase,
    targetUID === undefined || targetUID === "uid-db" ? undefined : `of ${targetUID}`,
    said === USUAL[phase] ? undefined : said,
    step && `${step.status}@${step.partition}`,
    checked === "0/0" ? undefined : checked,
    checks && `checks ${checks.status}`,
    promotedStep && `promoted ${promotedStep}`,
    dueAt === undefined ? undefined : `due in ${Math.round((dueAt - NOW) / 1000)} s`,
  ]
    .filter((part) => part !== undefined)
    .join(" ");
}

export const decideIn = (scene: Scene): string => summarize(decide(factsOf(scene)));

export const NEWER = { current: OLD, update: NEW };

/** In the middle of a rollout of `db`: no pod is released. */
export const held = (pods: string, status: object, more: Scene = {}): Scene => ({ set: NEWER, pods, status, ...more });

/** In the middle of a rollout of `db`: the pods from this index on are released. */
export const released = (partition: number, pods: string, status: object, more: Scene = {}): Scene => ({
  set: { ...NEWER, partition },
  pods,
  status,
  ...more,
});

/** After a rollout of three pods of `db`: the controller has recorded the revision of all. */
export const done = (status: object, more: Scene = {}): Scene => ({
  set: { current: NEW, update: NEW },
  pods: "nnn",
  status,
  ...more,
});

type Row = readonly [name: string, scene: Scene, expected: string];

/** Microseconds: a decision reads at as many places as there are pods, whatever numbers are written. */
const LONG = 500_000;

export function table(title: string, rows: readonly Row[]): void {
  describe(title, () => {
    for (const [name, scene, expected] of rows)
      it(name, () => {
        const facts = factsOf(scene);
        const begun = process.cpuUsage();
        assert.equal(summarize(decide(facts)), expected);
        assert.ok(process.cpuUsage(begun).user < LONG, "it reads at too many places");
      });
  });
}

/** A step at which all pods are available and the delay is over. */
export const checking = (partition: number, more: object = {}): object =>
  rolling(partition, { status: "WaitForChecks", analisysStartTime: ago(61), ...more });

/** A step whose initial delay began so many seconds ago. */
export const delaying = (partition: number, seconds: number): object =>
  rolling(partition, { status: "WaitForInitialDelay", analisysStartTime: ago(seconds) });

/** A step of which all checks have passed just now. */
export const passed = (partition: number, more: object = {}): object =>
  checking(partition, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1), ...more });

export const stepped = (partition: number): object =>
  checking(partition, { consecutiveSuccessfulChecks: 1, lastAttemptTime: ago(30) });

export const ROLLED_BACK = {
  phase: "Rolling",
  targetUID: "uid-db",
  updateRevision: OLD,
  conditions: [{ type: "Updated", status: "False", reason: "RollingBack", message: "m", lastTransitionTime: ago(5) }],
};

/** After a template of `db` was taken back: the pods from this index on may go. */
export const reverted = (partition: number, pods: string, set: SetTraits = {}): Scene => ({
  set: { partition, ...set },
  pods,
  status: ROLLED_BACK,
});
