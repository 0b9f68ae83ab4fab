/** Turns a disruption budget's decision about an eviction or a deletion of a pod into an answer. */
import type { BudgetMetrics } from "../../infra/metrics/metrics.ts";
import { hasCode } from "../../infra/errors.ts";
import { type DisruptionResult, VERDICTS, type Verdict } from "../../reconciler/budget/verdict.ts";
import type { Answer } from "../http/webhook.ts";

/** Counts the decision, and answers it. Throws the cause of a fault, which `onFault` answers as "not now". */
export function answerResult(result: DisruptionResult, metrics: Pick<BudgetMetrics, "decided">): Answer {
  const { code, metric } = VERDICTS[result.verdict.reason];
  metrics.decided({ reason: metric, status: code });
  switch (result.outcome) {
    case "allowed":
      return allow(result.verdict);
    case "denied":
      return denyEviction(result.verdict);
    case "undecided":
      // A lost race is ordinary; any other cause is a fault.
      if (!hasCode(result.cause, "Conflict")) throw result.cause;
      return denyEviction(result.verdict);
    default:
      return result satisfies never;
  }
}

/** 429 for "not now", 400 for an error that a retry does not fix. */
export function denyEviction(denied: Verdict): Answer {
  const { reason, message } = denied;
  return { allowed: false, code: VERDICTS[reason].code, message, reason, log: logFields(denied) };
}

function allow(allowed: Verdict): Answer {
  const { reason, message } = allowed;
  const fields = logFields(allowed);
  const answer = { allowed: true, reason, log: reason === "Allowed" ? { ...fields, reason: message } : fields };
  return ["PodNotReady", "OtherPod"].includes(reason) ? { ...answer, warnings: [message] } : answer;
}

function logFields({ reason, objects }: Verdict): NonNullable<Answer["log"]> {
  const budget = objects.find(({ kind }) => kind === "ZoneAwarePodDisruptionBudget")?.name;
  return { reason: VERDICTS[reason].log, ...(budget !== undefined && { budget }) };
}
