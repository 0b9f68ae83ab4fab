/**
 * Asks budgets before the reconciler disrupts: for each pod that the rollout deletes (§1.5.7, §1.5.8), and for a zone
 * that it scales down (§5.11).
 */
import type { BudgetMetrics } from "../../../infra/metrics/metrics.ts";
import type { Clock } from "../../../infra/clock.ts";
import { hasCode, messageOf } from "../../../infra/errors.ts";
import type { ReservationHandle } from "../reservation.ts";
import { holdDownscale, holdPod, VERDICTS } from "../verdict.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import type { Hold } from "../../model/decision.ts";
import type { Pod } from "../../model/pod.ts";
import type { Zone } from "../../model/zone.ts";
import type { Reserver } from "./reserve.ts";

export interface DisruptionGrant {
  readonly action: "grant";
  /** Releases it, unused; never rejects. */
  readonly release: (call: Call) => Promise<void>;
}

/**
 * Called for each pod of a batch right before the batch is deleted, within the bounds of `call`. Resolves with a hold
 * that forbids the deletion, a grant, or undefined if the deletion is allowed without a reservation.
 */
export type MayDisrupt = (pod: Pod, zone: Zone, call: Call) => Promise<Hold | DisruptionGrant | undefined>;

export interface DisruptionContext extends Context {
  readonly mayDisrupt: MayDisrupt;
}

/** Milliseconds that the reconciler waits while other processes write to the same budget; the next tick asks again. */
const MAX_WAIT_MS = 5000;

const boundOf = ({ deadlineMs = MAX_WAIT_MS, signal }: Call, clock: Clock) => ({
  deadlineAt: clock.monotonic() + Math.min(MAX_WAIT_MS, deadlineMs),
  ...(signal && { signal }),
});

/**
 * Resolves with a hold or a grant; a budget that cannot be obeyed holds with `BudgetUnusable`. Rejects if the API
 * server could not be read or written.
 */
export function createMayDisrupt(reserver: Reserver, clock: Clock, metrics: BudgetMetrics): MayDisrupt {
  return async (pod, zone, call) => {
    const { namespace, name, uid } = pod;
    const rollout = { maxUnavailable: zone.maxUnavailable };
    const request = { namespace, name, uid, rollout, dryRun: false, ...boundOf(call, clock) };
    const result = await metrics.deciding(reserver.reserve(request));
    const { verdict } = result;
    const { code, metric } = VERDICTS[verdict.reason];
    metrics.decided({ reason: metric, status: code });
    if (result.outcome === "allowed") return grantOf(result.handles, reserver);
    if (result.outcome === "undecided" && !hasCode(result.cause, "Conflict")) throw result.cause;
    // The deletion will find the pod missing, too.
    return verdict.reason === "PodNotFound" ? undefined : holdPod(verdict, pod, zone);
  };
}

function grantOf(
  handles: readonly ReservationHandle[],
  reserver: Pick<Reserver, "release">,
): DisruptionGrant | undefined {
  if (handles.length === 0) return undefined;
  return {
    action: "grant",
    release: async (bounds) => void (await Promise.all(handles.map((handle) => reserver.release(handle, bounds)))),
  };
}

/**
 * Called right before the zone is given `to` replicas, within the bounds of `call`; `forced` reserves even if budgets
 * deny it. Resolves with a hold that forbids it, a grant, or undefined if no budget selects the zone.
 */
export type MayDownscale = (
  zone: Zone,
  { to, forced, call }: { readonly to: number; readonly forced: boolean; readonly call: Call },
) => Promise<Hold | DisruptionGrant | undefined>;

/** Never rejects: budgets that could not be asked hold with `BudgetSpent`. */
export function createMayDownscale(
  reserver: Pick<Reserver, "reserveDownscale" | "release">,
  clock: Clock,
): MayDownscale {
  return async (zone, { to, forced, call }) => {
    const result = await reserver.reserveDownscale({ zone, to, forced, ...boundOf(call, clock) });
    const { verdict } = result;
    if (result.outcome === "allowed") return grantOf(result.handles, reserver);
    if (result.outcome === "denied") return holdDownscale(verdict, zone);
    // A hold, not an error: the group's rollout continues (§1.3.2), and no replicas were written.
    return holdDownscale({ ...verdict, message: `${verdict.message}: ${messageOf(result.cause)}` }, zone);
  };
}
