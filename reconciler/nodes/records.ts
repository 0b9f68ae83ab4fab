/**
 * Records the steps of the active nodes in the policy's status: the active and the failed nodes, those that go to the
 * end of the queue, and the freeze.
 */
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { ActiveStep } from "./plan-active.ts";
import {
  type ActiveNode,
  type DeferredNode,
  type FailedNode,
  type Freeze,
  MAX_MESSAGE,
  MAX_WAIT_TEXT,
  type PolicyStatus,
  RELEASED,
} from "./policy.ts";
import type { PolicySnapshot } from "./snapshot.ts";

interface PolicyRecords {
  readonly active: readonly ActiveNode[];
  readonly failed: readonly FailedNode[];
  readonly deferred: readonly DeferredNode[];
  readonly frozen: Freeze | undefined;
}

/** At most as many failures are kept: a policy freezes long before, unless `maxFailed` is larger. */
const MAX_FAILED = 100;

/** Controllers that all active nodes together remember, 200 bytes each: an object has 1.5 MB at most. */
const MAX_WORKLOADS = 3000;

/**
 * The records after the steps. Each attempt fails once, by its node and its start: a process that dies between two
 * writes repeats the step.
 */
export function recordSteps(steps: readonly ActiveStep[], { now, policy, nodes }: PolicySnapshot): RecordsStatus {
  const { status, maxFailed } = policy;
  const at = formatTimestamp(now);
  const failures = steps.flatMap(({ entry, step }) => {
    const isFailure = step.step === "freeze" || (step.step === "reset" && step.afterReboot);
    return isFailure
      ? [
          {
            node: entry.node,
            startedAt: entry.startedAt,
            to: entry.to,
            at,
            reason: step.reason,
            message: step.message.slice(0, MAX_MESSAGE),
          },
        ]
      : [];
  });
  const isKnown = ({ node, startedAt }: FailedNode): boolean =>
    status.failed.some((one) => one.node === node && one.startedAt === startedAt);
  const failed = [...status.failed, ...failures.filter((one) => !isKnown(one))].slice(-MAX_FAILED);
  const unusable = steps.some(({ step }) => step.step === "freeze");
  const isFrozen = failed.length >= maxFailed || (unusable && failed.length > 0);
  const present = new Set(nodes.map(({ name }) => name));
  return {
    active: steps.flatMap((one) => keepActive(one, Math.floor(MAX_WORKLOADS / steps.length))),
    failed,
    deferred: deferNodes(steps, status.deferred, at).filter(({ node }) => present.has(node)),
    frozen: status.frozen ?? (isFrozen ? freezeFor(failed, at) : undefined),
  };
}

export type RecordsStatus = PolicyRecords & Pick<PolicyStatus, "active" | "failed" | "deferred">;

function keepActive({ entry, step }: ActiveStep, most: number): ActiveNode[] {
  if (step.step === "done" || step.step === "release") return [];
  if (step.step === "reset")
    return [{ ...entry, ending: entry.ending ?? { reason: step.reason, message: step.message.slice(0, MAX_MESSAGE) } }];
  const drains = step.step === "advance" && step.workloads && entry.phase === "Holding";
  return [drains ? { ...entry, workloads: step.workloads.slice(0, most) } : entry];
}

/** Resets for these reasons do not count as an unfinished attempt of the node. */
const UNCOUNTED: ReadonlySet<string> = new Set(["UpdateFailed", "Frozen"]);

/** None for a reset that was recorded before: it is repeated until its shadow is written, and counts once. */
function newEnding({ entry, step }: ActiveStep) {
  return step.step === "release" || (step.step === "reset" && !entry.ending) ? step : undefined;
}

function deferNodes(steps: readonly ActiveStep[], deferred: readonly DeferredNode[], at: string): DeferredNode[] {
  const byNode = new Map(deferred.map((one) => [one.node, one]));
  for (const one of steps) {
    const { node } = one.entry;
    if (one.step.step === "done") byNode.delete(node);
    const ending = newEnding(one);
    if (!ending) continue;
    const before = byNode.get(node)?.count ?? 0;
    // The agent itself counts the failures that it reports.
    const counts = ending.step === "reset" ? !UNCOUNTED.has(ending.reason) : ending.backOff;
    const message = ending.message.slice(0, MAX_WAIT_TEXT);
    byNode.set(node, { node, count: before + (counts ? 1 : 0), at, reason: ending.reason, message });
  }
  return [...byNode.values()];
}

function freezeFor(failed: readonly FailedNode[], at: string): Freeze {
  const last = failed.at(-1);
  const message = `${last?.node ?? "a node"}: ${last?.message ?? ""}`;
  return {
    id: `${last?.node ?? "node"}-${at.replaceAll(/[-:]/g, "")}`,
    at,
    reason: last?.reason ?? "UpdateFailed",
    message,
  };
}

/**
 * The status after a person has cleared the freeze by its id (§17.5): the nodes that caused it leave their slots, and
 * are no longer advanced.
 */
export function unfreeze({ now, policy }: PolicySnapshot): PolicyStatus {
  const { status } = policy;
  if (!status.frozen || policy.unfreeze !== status.frozen.id) return status;
  const isStuck = ({ node, startedAt }: ActiveNode): boolean =>
    status.failed.some((one) => one.node === node && one.startedAt === startedAt);
  const at = formatTimestamp(now);
  const stuck = status.active.filter(isStuck).map(({ node }) => ({ node, count: 1, at, reason: RELEASED }));
  const { frozen: _, ...rest } = status;
  return {
    ...rest,
    failed: [],
    active: status.active.filter((entry) => !isStuck(entry)),
    deferred: [...status.deferred.filter(({ node }) => !stuck.some((one) => one.node === node)), ...stuck],
  };
}
