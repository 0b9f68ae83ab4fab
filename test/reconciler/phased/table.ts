/** Tables of situations: one PhasedRollout in a cluster, and the next write in a few words. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decidePhased } from "../../../reconciler/phased/decide-phased.ts";
import type { PhasedDecision } from "../../../reconciler/phased/snapshot.ts";
import { HELD } from "../../../reconciler/phased/target.ts";
import { ago, NEW, NOW, OLD, rolling, type Scene, snapshot } from "./builders.ts";

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
      return `claim${decision.from === undefined ? "" : ` from ${decision.from}`}${decision.original === undefined ? "" : `, before: ${decision.original}`}`;
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

function describeStatus({ status, dueAt }: Extract<PhasedDecision, { action: "report" }>): string {
  const { phase, rollingPodStatus: step, conditions } = status;
  const [ready, updated, checks] = conditions;
  const of = step
    ? ` ${step.status}@${step.partition} ${step.consecutiveSuccessfulChecks}/${step.consecutiveFailedChecks}`
    : "";
  const due = dueAt === undefined ? "" : ` due in ${Math.round((dueAt - NOW) / 1000)} s`;
  const health = checks ? ` checks ${checks.status}` : "";
  return `${phase}${ready ? ` ${ready.status}/${ready.reason} ${updated?.status}/${updated?.reason}` : ""}${of}${health}${due}`;
}

export const decideIn = (scene: Scene): string => summarize(decidePhased(snapshot(scene)));

export const NEWER = { current: OLD, update: NEW };

export const READY = "True/Ready False/Rolling";

type Row = readonly [name: string, scene: Scene, expected: string];

export function table(title: string, rows: readonly Row[]): void {
  describe(title, () => {
    for (const [name, scene, expected] of rows) it(name, () => assert.equal(decideIn(scene), expected));
  });
}

/** A step at which all pods are available and the delay is over. */
export const checking = (partition: number, more: object = {}): object =>
  rolling(partition, { status: "WaitForChecks", analisysStartTime: ago(61), ...more });

export const stepped = (partition: number): object =>
  checking(partition, { consecutiveSuccessfulChecks: 1, lastAttemptTime: ago(30) });

export const ROLLED_BACK = {
  phase: "Rolling",
  targetUID: "uid-db",
  updateRevision: OLD,
  conditions: [{ type: "Updated", status: "False", reason: "RollingBack", message: "m", lastTransitionTime: ago(5) }],
};
