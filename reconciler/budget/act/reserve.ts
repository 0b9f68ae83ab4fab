/**
 * Decides a disruption request and reserves the pod, for the eviction webhook and the rollout alike: no budget is spent
 * twice, however many processes decide (§13.1).
 *
 *   request --the pods that blocked last still block--> denied, without a list
 *           --otherwise--> next batch of its budget --> allowed or denied
 *                                                   --undecided--> random pause --> retry until the deadline: "not now"
 */
import { startDeadline } from "../../../infra/deadline.ts";
import { isTransient } from "../../../infra/errors.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { retryOnConflict } from "../../../infra/kubernetes/retry-on-conflict.ts";
import { type CompilePartition, createPartitionCache } from "../partition.ts";
import { findBudgetsOfZone } from "../scope.ts";
import { type DisruptionResult, judged, undecided, verdict, type Verdict } from "../verdict.ts";
import type { Zone } from "../../model/zone.ts";
import { createBudgetMemory } from "./budget-memory.ts";
import { createBatchQueue } from "./batch-queue.ts";
import { readBudgets } from "./decide-batch.ts";
import { createDenyAgain } from "./deny-again.ts";
import { remaining, type ReserverTools, type TimedDisruptionRequest } from "./disruption-request.ts";
import type { ListedBudget } from "./gather-budget.ts";
import type { Clock } from "../../../infra/clock.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/custom-resources.ts";
import { isSame, type ReservationHandle } from "../reservation.ts";
import { openReservationStore } from "./reservation-store.ts";

export interface Reserver {
  /** Never rejects. */
  readonly reserve: (request: TimedDisruptionRequest) => Promise<DisruptionResult>;
  /** Reserves a downscale on each budget that selects the StatefulSet (§5.11), or on none. Never rejects. */
  readonly reserveDownscale: (downscale: TimedDownscale) => Promise<DisruptionResult>;
  /**
   * Releases a reservation whose pod could not be deleted, or whose downscale was refused. Never rejects: a reservation
   * that is not released expires.
   */
  readonly release: (handle: ReservationHandle, call: Call) => Promise<void>;
}

/** A StatefulSet that is to have `to` replicas. */
interface TimedDownscale extends Pick<TimedDisruptionRequest, "deadlineAt" | "signal"> {
  readonly zone: Pick<Zone, "kind" | "namespace" | "name" | "uid" | "labels" | "firstOrdinal">;
  readonly to: number;
  /** Reserved even if budgets deny it (§2.3). */
  readonly forced: boolean;
}

/** Milliseconds to release what was reserved for a downscale that another budget denies. */
const RELEASE_MS = 3000;

interface ReserverOptions extends Omit<ReserverTools, "memory" | "compilePartition"> {
  readonly compilePartition?: CompilePartition;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** Retries without a pause, each after a batch that found out which budget to ask. */
const MAX_IMMEDIATE_RETRIES = 3;

export function createReserver(options: ReserverOptions): Reserver {
  const { clock, random } = options;
  const tools: ReserverTools = {
    ...options,
    memory: createBudgetMemory(),
    compilePartition: options.compilePartition ?? createPartitionCache(),
  };
  const denyAgain = createDenyAgain(tools);
  const decideInBatch = createBatchQueue(tools);

  async function tryOnce(request: TimedDisruptionRequest): Promise<DisruptionResult> {
    if (remaining(request, clock) <= 0) return undecided();
    const denial =
      request.rollout || request.downscale
        ? undefined
        : await denyAgain(request, remaining(request, clock)).catch(() => undefined);
    return denial ? judged(denial) : await decideInBatch(request);
  }

  async function reserve(request: TimedDisruptionRequest): Promise<DisruptionResult> {
    let immediateRetries = 0;
    async function attempt(): Promise<DisruptionResult> {
      for (;;) {
        const result = await tryOnce(request);
        if (result.outcome !== "undecided") return result;
        if (result.again === "atOnce" && ++immediateRetries <= MAX_IMMEDIATE_RETRIES) continue;
        throw result.cause;
      }
    }
    const call = { deadlineMs: remaining(request, clock), ...(request.signal && { signal: request.signal }) };
    return await retryOnConflict(attempt, { clock, random, call, attempts: Infinity, when: isTransient }).catch(
      undecided,
    );
  }

  async function findBudgets({ zone, forced, ...time }: TimedDownscale): Promise<Verdict | readonly ListedBudget[]> {
    using deadline = startDeadline(remaining(time, clock), time.signal, clock);
    const budgets = await readBudgets(zone.namespace, tools, deadline);
    // An invalid budget does not stop a forced downscale.
    return findBudgetsOfZone(zone, forced ? budgets.filter(({ content }) => !("problem" in content)) : budgets);
  }

  async function reserveDownscale(downscale: TimedDownscale): Promise<DisruptionResult> {
    const { zone, to, forced, ...time } = downscale;
    const { namespace, name, uid } = zone;
    const handles: ReservationHandle[] = [];
    const found = await findBudgets(downscale).catch(undecided);
    if ("outcome" in found) return found;
    if ("reason" in found) return judged(found);
    for (const { ref } of found) {
      const requested = { uid, from: zone.firstOrdinal + to, forced, budget: ref.name };
      const result = await reserve({ namespace, name, downscale: requested, dryRun: false, ...time });
      if (result.outcome === "allowed") {
        handles.push(...result.handles);
        continue;
      }
      for (const earlier of handles) await release(earlier, { deadlineMs: RELEASE_MS });
      return result;
    }
    return judged(verdict("Allowed", `allowed by ${found.length} disruption budgets`, [zone]), handles);
  }

  const release: Reserver["release"] = (handle, call) => releaseReservation(tools, handle, call);
  return { reserve, reserveDownscale, release };
}

/**
 * Removes exactly this reservation, not a later one of the same pod. Never rejects: a reservation that cannot be
 * removed expires.
 */
async function releaseReservation(
  { cluster, clock }: { readonly cluster: Cluster; readonly clock: Clock },
  handle: ReservationHandle,
  call: Call,
): Promise<void> {
  const { namespace, budget: name, key } = handle;
  const attempt = async (): Promise<void> => {
    const budget = await cluster.get(disruptionBudgets, { namespace, name }, call);
    const store = await openReservationStore(cluster, budget, call);
    const { [key]: found, ...others } = store.reservations;
    if (isSame(found, handle)) await store.write(others, call);
  };
  await retryOnConflict(attempt, { clock, call }).catch(() => {});
}
