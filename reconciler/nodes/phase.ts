/** What an active node is waiting for, and for how long it may. */
import type { UpdateNode } from "./node.ts";
import type { ActiveNode, NodePhase } from "./policy-status.ts";
import type { Policy } from "./policy.ts";
import { DEFAULT_SPEC, type State } from "./shadow.ts";

/** True if the node runs in another boot than the one in which its update began. */
export function hasRebooted({ bootId, shadow }: UpdateNode, entry: ActiveNode): boolean {
  if (entry.bootId === "") return false;
  const reported = shadow?.status?.boot_id ?? "";
  return [bootId, reported].some((id) => id !== "" && id !== entry.bootId);
}

/** A reboot was announced: it may go down at any moment, and nothing uncordons it before it is back. */
export function isInReboot({ shadow, bootId, ready }: UpdateNode): boolean {
  const rebooting = shadow?.status?.rebooting;
  return Boolean(rebooting) && (!ready || bootId === "" || bootId === rebooting?.boot_id);
}

/** The phase by the shadow as it is; `Done` once both states are Idle. */
export function phaseOf(node: UpdateNode, entry: ActiveNode): NodePhase | "Done" {
  const { spec, status } = node.shadow ?? { spec: DEFAULT_SPEC };
  if (!status || status.current_state === "ErrorReset") return "Recovering";
  const { until, reached } = PHASES_OF[spec.state];
  const isReached = status.current_state === spec.state;
  if (isReached && spec.state === "Idle") return entry.phase === "Starting" ? "Starting" : "Done";
  if (isReached) return reached;
  return until === "Draining" && isRebooting(node, entry) ? "Rebooting" : until;
}

const isRebooting = (node: UpdateNode, entry: ActiveNode): boolean =>
  Boolean(node.shadow?.status?.rebooting) || hasRebooted(node, entry);

/** By wanted state: the phase until it is reached, and then. */
const PHASES_OF: Readonly<Record<State, { readonly until: NodePhase; readonly reached: NodePhase }>> = {
  Idle: { until: "Recovering", reached: "Recovering" },
  StagedAndPerformedUpdate: { until: "Staging", reached: "Holding" },
  RebootedIntoUpdate: { until: "Draining", reached: "Returning" },
  MonitoringUpdate: { until: "Returning", reached: "Monitoring" },
  ErrorReset: { until: "Recovering", reached: "Recovering" },
};

/** Seconds to wait for a write of ours that may have been lost; longer than any write takes. */
const STARTING_S = 60;

/** Seconds that a node may be in a phase. */
export function deadlineOf(
  phase: NodePhase,
  { deadlines, drain, health }: Pick<Policy, "deadlines" | "drain" | "health">,
): number {
  const table: Readonly<Record<NodePhase, number>> = {
    Starting: STARTING_S,
    Staging: deadlines.stageSeconds,
    Holding: deadlines.holdSeconds,
    // A forced reboot needs some time after the timeout.
    Draining: drain.timeoutSeconds + (drain.onTimeout === "Reboot" ? deadlines.rebootSeconds : 0),
    Rebooting: deadlines.rebootSeconds,
    Returning: deadlines.rebootSeconds,
    Monitoring: health.minReadySeconds + health.timeoutSeconds,
    Recovering: deadlines.recoverSeconds,
  };
  return table[phase];
}
