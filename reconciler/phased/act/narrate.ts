/** Reports the writes for PhasedRollouts: log lines and Events, each from the decision itself. */
import { isSameJson } from "../../../infra/json.ts";
import type { Log } from "../../../infra/log.ts";
import type { Hold } from "../../model/decision.ts";
import { type Notice, noticesOf } from "../notices.ts";
import type { PhasedRollout } from "../phased-rollout.ts";
import type { Recorder } from "../../report/act/recorder.ts";
import type { GatheredRollout } from "./gather-rollouts.ts";
import type { Write } from "./take-phased-step.ts";

export interface Narrator {
  /** Called after each write; `hold` if a budget forbade it. */
  readonly narrate: (
    emitEvents: Recorder["emitEvents"],
  ) => (decision: Write, gathered: GatheredRollout, hold: Hold | undefined) => void;
  /** Forgets all but these. */
  readonly endTick: (living: readonly PhasedRollout[]) => void;
}

export function createNarrator(log: Log): Narrator {
  /** The last hold of each, which is logged once. */
  const holds = new Map<string, string>();

  function isRepeated({ namespace, name }: PhasedRollout, hold: Hold | undefined): boolean {
    const key = `${namespace}/${name}`;
    const message = hold?.message;
    const isKnown = message !== undefined && holds.get(key) === message;
    if (message === undefined) holds.delete(key);
    else holds.set(key, message);
    return isKnown;
  }

  return {
    narrate: (emitEvents) => (decision, gathered, hold) => {
      const { rollout } = gathered;
      const notices = hold ? [heldBack(hold)] : noticesOfWrite(decision, gathered);
      emitEvents(notices.map((notice) => ({ regarding: rollout, ...notice })));
      if (isRepeated(rollout, hold)) return;
      const text = hold?.message ?? describe(decision, rollout);
      const { namespace, name } = rollout;
      if (text !== undefined)
        log.info(text, { namespace, phasedRollout: name, action: hold ? "hold" : decision.action });
    },
    endTick(living) {
      const keys = new Set(living.map(({ namespace, name }) => `${namespace}/${name}`));
      for (const key of holds.keys()) if (!keys.has(key)) holds.delete(key);
    },
  };
}

const heldBack = ({ message }: Hold): Notice => ({ type: "Normal", reason: "StepHeld", message });

function noticesOfWrite(decision: Write, { rollout }: GatheredRollout): Notice[] {
  if (decision.action === "report") return noticesOf(rollout, decision.status);
  if (decision.action === "releaseTarget") return [describeRelease(decision, rollout.targetRef)];
  if (decision.action === "replacePod")
    return [{ type: "Normal", reason: "BrokenPodReplaced", message: decision.message }];
  if (decision.action !== "setPartition") return [];
  if (decision.reason === "Contain") return [{ type: "Warning", reason: "PartitionRaised", message: decision.message }];
  return decision.reason === "Suspend" ? [{ type: "Normal", reason: "Released", message: decision.message }] : [];
}

function describeRelease(
  { partition, pods, frozen }: Extract<Write, { action: "releaseTarget" }>,
  target: string,
): Notice {
  if (frozen)
    return {
      type: "Warning",
      reason: "Frozen",
      message: `StatefulSet ${target} keeps its partition: nobody rolls it out any more`,
    };
  const released = pods === 0 ? "" : `; ${pods} pods are released without checks`;
  return {
    type: "Normal",
    reason: "Released",
    message: `StatefulSet ${target} has partition ${partition ?? "unset"} again${released}`,
  };
}

/** The log line of a decision; none for a status that stays. */
function describe(decision: Write, rollout: PhasedRollout): string | undefined {
  switch (decision.action) {
    case "report":
      return describeStatus(decision, rollout);
    case "setPartition":
      return `partition ${decision.partition}: ${decision.message}`;
    case "releasePod":
      return `all checks have passed: partition ${decision.partition}${decision.pod ? ` releases ${decision.pod.name}` : ""}`;
    case "replacePod":
      return decision.message;
    case "releaseTarget":
      return describeRelease(decision, rollout.targetRef).message;
    case "claim":
      return `StatefulSet ${rollout.targetRef} is claimed`;
    case "addFinalizer":
    case "dropFinalizer":
      return undefined;
    default:
      return decision satisfies never;
  }
}

/** Counters change with every check: only phase, step and reason are worth a line. */
function describeStatus({ status }: Extract<Write, { action: "report" }>, rollout: PhasedRollout): string | undefined {
  const { status: before } = rollout;
  if (isSameJson(before, status)) return undefined;
  const outline = ({ phase, rollingPodStatus: step, conditions }: typeof status): string =>
    [
      phase,
      step && `${step.status} at partition ${step.partition}`,
      conditions.find(({ type }) => type === "Updated")?.message,
    ]
      .filter((part) => part !== undefined)
      .join(": ");
  return outline(before) === outline(status) ? undefined : outline(status);
}
