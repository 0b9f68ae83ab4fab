/**
 * Decides a disruption request and reserves the pod, for the eviction webhook and the rollout alike: no budget is spent twice, however many
 * processes decide (§13.1).
 *
 *   request --the pods that blocked last still block--> denied, without a list
 *           --otherwise--> next batch of its budget --> decided
 *                                                   --superseded--> random pause --> retry until the deadline: "not now"
 */
import { isTransient, RolloutError } from "../../infra/errors.ts";
import type { Call } from "../../infra/kubernetes/cluster.ts";
import { createPartitionCache } from "../budget/partition.ts";
import { NOT_NOW, verdict, type Verdict } from "../budget/verdict.ts";
import { createBatchQueue } from "./batch-queue.ts";
import { createDenyAgain } from "./deny-again.ts";
import {
  type BatchResult,
  decided,
  remaining,
  type ReservationHandle,
  type ReserverState,
  type TimedDisruptionRequest,
} from "./disruption-request.ts";
import { releaseReservation } from "./release.ts";

export interface ReserveResult {
  readonly verdict: Verdict;
  /** Set if the pod was reserved and the reservation may be released. */
  readonly handle?: ReservationHandle | undefined;
  /** The reason for the verdict `NotNow`. */
  readonly cause?: unknown;
}

export interface Reserver {
  /** Never rejects. */
  readonly reserve: (request: TimedDisruptionRequest) => Promise<ReserveResult>;
  /** Releases a reservation whose pod could not be deleted. Never rejects: a reservation that is not released expires. */
  readonly release: (handle: ReservationHandle, call: Call) => Promise<void>;
}

export interface ReserverOptions extends Omit<ReserverState, "budgetCache" | "lastLooks" | "leaseBudgets" | "compilePartition"> {
  /** From 0 to 1. */
  readonly random: () => number;
}

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;
/** Retries without a pause, each after a batch that found out where to look. */
const MAX_IMMEDIATE_RETRIES = 3;

export function createReserver(options: ReserverOptions): Reserver {
  const { clock, random } = options;
  const state: ReserverState = {
    ...options,
    budgetCache: new Map(),
    lastLooks: new Map(),
    leaseBudgets: new Set(),
    compilePartition: createPartitionCache(),
  };
  const denyAgain = createDenyAgain(state);
  const decideInBatch = createBatchQueue(state);

  async function tryOnce(request: TimedDisruptionRequest): Promise<BatchResult> {
    if (remaining(request, clock) <= 0) return { outcome: "superseded" };
    const denial = request.rollout ? undefined : await denyAgain(request, remaining(request, clock)).catch(() => undefined);
    return denial ? decided(denial) : await decideInBatch(request);
  }

  return {
    async reserve(request) {
      let pause = FIRST_PAUSE_MS;
      for (let retries = 0; ;) {
        const result = await tryOnce(request);
        if (result.outcome === "decided") return result;
        const error = result.outcome === "superseded" ? result.error : undefined;
        if (error !== undefined && !isTransient(error)) return notNow(error);
        if (result.outcome === "superseded" || ++retries > MAX_IMMEDIATE_RETRIES) {
          await clock.sleep(Math.min(random() * pause, remaining(request, clock)), request.signal);
          pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
        }
        if (remaining(request, clock) <= 0) return notNow(error ?? new RolloutError("Conflict", "other processes always wrote first"));
      }
    },
    release: (handle, call) => releaseReservation(state, handle, call),
  };
}

function notNow(cause: unknown): ReserveResult {
  return { verdict: verdict("NotNow", NOT_NOW), cause };
}
