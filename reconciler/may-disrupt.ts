/** The rollout's question to the budget, before each pod [1.5.7, 1.5.8]. */
import type { Clock } from "../infra/clock.ts";
import { hasCode } from "../infra/errors.ts";
import type { MayDisrupt } from "./act.ts";
import { isAllowed, VERDICTS, type Verdict } from "./budget/verdict.ts";
import { hold } from "./model/decision.ts";
import type { Reserver } from "./reserve.ts";

/** Milliseconds that the rollout waits for others who write to the same budget; the next tick asks again. */
const PATIENCE_MS = 5000;

/** Told of every verdict. */
export type OnVerdict = (verdict: Verdict) => void;

/** A budget that cannot be obeyed fails the group; rejects if the cluster could not be asked. */
export function askBudget(reserver: Reserver, clock: Clock, onVerdict: OnVerdict): MayDisrupt {
  return async (pod, zone, call) => {
    const { verdict, held, cause } = await reserver.reserve({
      namespace: pod.namespace,
      name: pod.name,
      rollout: { maxUnavailable: zone.maxUnavailable },
      dryRun: false,
      deadlineAt: clock.monotonic() + Math.min(PATIENCE_MS, call.deadlineMs ?? PATIENCE_MS),
      ...(call.signal && { signal: call.signal }),
    });
    onVerdict(verdict);
    if (verdict.reason === "NotNow" && !hasCode(cause, "Conflict")) throw cause;
    // The deletion will find the same.
    if (verdict.reason === "PodNotFound") return undefined;
    if (isAllowed(verdict)) return held && { action: "permit", withdraw: (bounds) => reserver.withdraw(held, bounds) };
    const reason = VERDICTS[verdict.reason].code === 429 ? "BudgetSpent" : "BudgetUnusable";
    return hold(reason, `${pod.name} stays: ${verdict.message}`, [zone, ...verdict.objects]);
  };
}
