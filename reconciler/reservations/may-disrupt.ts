/** Asks the budget of a pod before the rollout deletes the pod (§1.5.7, §1.5.8). */
import type { BudgetMetrics } from "../../infra/metrics/budget-metrics.ts";
import type { Clock } from "../../infra/clock.ts";
import { hasCode } from "../../infra/errors.ts";
import { holdPod, isAllowed, VERDICTS } from "../budget/verdict.ts";
import type { Call } from "../../infra/kubernetes/cluster.ts";
import type { Hold } from "../model/decision.ts";
import type { Pod } from "../model/pod.ts";
import type { Zone } from "../model/zone.ts";
import type { Reserver } from "./reserve.ts";

/** A grant to delete a pod. */
export interface DisruptionGrant {
  readonly action: "grant";
  /** Releases it, unused; never rejects. */
  readonly release: (call: Call) => Promise<void>;
}

/**
 * Called for each pod of a batch right before the batch is deleted, within the bounds of `call`. Resolves with a hold that forbids the deletion, a
 * grant, or undefined if the deletion is allowed without a reservation.
 */
export type MayDisrupt = (pod: Pod, zone: Zone, call: Call) => Promise<Hold | DisruptionGrant | undefined>;

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
    return holdPod(verdict, pod, zone);
  };
}
