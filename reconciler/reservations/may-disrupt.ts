/** The rollout's question to the budget, before each pod (§1.5.7, §1.5.8). */
import type { BudgetMetrics } from "../../infra/metrics/budget-metrics.ts";
import type { Clock } from "../../infra/clock.ts";
import { hasCode } from "../../infra/errors.ts";
import type { MayDisrupt } from "../actor.ts";
import { isAllowed, VERDICTS } from "../budget/verdict.ts";
import { hold } from "../model/decision.ts";
import type { Reserver } from "./reserve.ts";

/** Milliseconds that the rollout waits for others who write to the same budget; the next tick asks again. */
const PATIENCE_MS = 5000;

/** A budget that cannot be obeyed fails the group; rejects if the cluster could not be asked. */
export function askBudget(reserver: Reserver, clock: Clock, metrics: BudgetMetrics): MayDisrupt {
  return async (pod, zone, call) => {
    const asked = reserver.reserve({
      namespace: pod.namespace,
      name: pod.name,
      uid: pod.uid,
      rollout: { maxUnavailable: zone.maxUnavailable },
      dryRun: false,
      deadlineAt: clock.monotonic() + Math.min(PATIENCE_MS, call.deadlineMs ?? PATIENCE_MS),
      ...(call.signal && { signal: call.signal }),
    });
    const { verdict, held, cause } = await metrics.deciding(asked);
    const { code, metric } = VERDICTS[verdict.reason];
    metrics.decided({ reason: metric, status: code });
    if (verdict.reason === "NotNow" && !hasCode(cause, "Conflict")) throw cause;
    // The deletion will find the same.
    if (verdict.reason === "PodNotFound") return undefined;
    if (isAllowed(verdict)) return held && { action: "permit", withdraw: (bounds) => reserver.withdraw(held, bounds) };
    const reason = code === 429 ? "BudgetSpent" : "BudgetUnusable";
    return hold(reason, `${pod.name} stays: ${verdict.message}`, [zone, ...verdict.objects]);
  };
}
