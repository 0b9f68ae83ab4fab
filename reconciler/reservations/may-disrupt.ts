/** Asks the budget of a pod before the rollout deletes the pod (§1.5.7, §1.5.8). */
import type { BudgetMetrics } from "../../infra/metrics/budget-metrics.ts";
import type { Clock } from "../../infra/clock.ts";
import { hasCode } from "../../infra/errors.ts";
import type { MayDisrupt } from "../actor.ts";
import { isAllowed, VERDICTS } from "../budget/verdict.ts";
import { hold } from "../model/decision.ts";
import type { Reserver } from "./reserve.ts";

/** Milliseconds that the rollout waits while other processes write to the same budget; the next tick asks again. */
const LONGEST_WAIT_MS = 5000;

/** Resolves with a hold or a grant; a budget that cannot be obeyed holds with `BudgetUnusable`. Rejects if the API server could not be read or written. */
export function createMayDisrupt(reserver: Reserver, clock: Clock, metrics: BudgetMetrics): MayDisrupt {
  return async (pod, zone, call) => {
    const reserving = reserver.reserve({
      namespace: pod.namespace,
      name: pod.name,
      uid: pod.uid,
      rollout: { maxUnavailable: zone.maxUnavailable },
      dryRun: false,
      deadlineAt: clock.monotonic() + Math.min(LONGEST_WAIT_MS, call.deadlineMs ?? LONGEST_WAIT_MS),
      ...(call.signal && { signal: call.signal }),
    });
    const { verdict, handle, cause } = await metrics.deciding(reserving);
    const { code, metric } = VERDICTS[verdict.reason];
    metrics.decided({ reason: metric, status: code });
    if (verdict.reason === "NotNow" && !hasCode(cause, "Conflict")) throw cause;
    // The deletion will find out as well.
    if (verdict.reason === "PodNotFound") return undefined;
    if (isAllowed(verdict)) return handle && { action: "grant", release: (bounds) => reserver.release(handle, bounds) };
    const reason = code === 429 ? "BudgetSpent" : "BudgetUnusable";
    return hold(reason, `${pod.name} stays: ${verdict.message}`, [zone, ...verdict.objects]);
  };
}
