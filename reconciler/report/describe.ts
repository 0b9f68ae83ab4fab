/** The state of a group in one line, for the log. */
import type { LogFields, LogLevel } from "../../infra/log.ts";
import { isFailure, type Outcome } from "../model/outcome.ts";

export interface LogLine {
  readonly level: LogLevel;
  readonly text: string;
  readonly fields?: LogFields;
}

/** Describes the state of the group; equal texts mean equal states. */
export function describeOutcome(outcome: Outcome): LogLine {
  switch (outcome.state) {
    case "settled":
      return { level: "debug", text: "all zones are updated and ready" };
    case "held":
      return {
        level: isFailure(outcome) ? "error" : "info",
        text: outcome.hold.message,
        fields: { reason: outcome.hold.reason },
      };
    case "acted":
      return describeAction(outcome);
    case "superseded":
      return {
        level: "warn",
        text: "the group changed meanwhile; the next tick decides again",
        fields: { error: outcome.error },
      };
    case "failed":
      return { level: "error", text: "the group could not be reconciled", fields: { error: outcome.error } };
    default:
      return outcome satisfies never;
  }
}

function describeAction({ decision, effect }: Extract<Outcome, { state: "acted" }>): LogLine {
  const pods = effect.replaced.map((pod) => pod.name);
  const { stopped } = effect;
  return {
    level: "info",
    text: decision.message,
    fields: {
      action: decision.action,
      zone: decision.zone.name,
      ...(pods.length > 0 && { pods }),
      ...(stopped !== undefined && { stopped }),
    },
  };
}
