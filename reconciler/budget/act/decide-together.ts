/**
 * Decides the requests that wait for one budget together, each after the one before it:
 *
 *   list the budgets -> list StatefulSets and pods -> decide request after request -> write the reservations, if any is new
 *
 * The write carries the version of the budget that was read first, which proves that nobody else has reserved since
 * (§13.1). Each budget has a queue: requests that arrive meanwhile share the next turn, and no budget waits for another.
 */
import type { Clock } from "../../../infra/clock.ts";
import { startDeadline } from "../../../infra/deadline.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import type { ObjectRef } from "../../model/decision.ts";
import { decideDownscale } from "../decide-downscale.ts";
import { decideEviction } from "../decide-eviction.ts";
import {
  ageOf,
  downscaleKey,
  livingReservations,
  presentIn,
  type Reservation,
  reservationOf,
  type Reservations,
} from "../reservation.ts";
import { type DisruptionTarget, findBudget, type Budget } from "../zpdb.ts";
import { type DisruptionResult, judged, undecided, type Verdict } from "../verdict.ts";
import {
  type BudgetSource,
  gatherUnderBudget,
  listBudgets,
  type ListedBudget,
  openReservationStore,
  type UnderBudget,
} from "./budget-store.ts";

export interface DisruptionRequest extends DisruptionTarget {
  readonly namespace: string;
  /** Name of the pod; for a downscale, of the StatefulSet. */
  readonly name: string;
  /** Set for a downscale (§5.11). */
  readonly downscale?: RequestedDownscale;
  /** Set when the rollout asks (§1.5.7). */
  readonly rollout?: { readonly maxUnavailable: number };
  /** Decides, but reserves nothing. */
  readonly dryRun: boolean;
  /** By `clock.monotonic`, milliseconds. */
  readonly deadlineAt: number;
  readonly signal?: AbortSignal;
}

interface RequestedDownscale {
  /** UID of the StatefulSet. */
  readonly uid: string;
  /** The ordinal of the first pod that goes. */
  readonly from: number;
  /** Reserved even if the budget denies it (§2.3). */
  readonly forced: boolean;
}

export interface ReserverTools extends BudgetSource {
  readonly clock: Clock;
  /** Signs the reservations. */
  readonly by: string;
}

/**
 * Resolves with the result of the request under this budget, or with `elsewhere` if the budget is gone, invalid, or its
 * list does not have the pod. Never rejects.
 */
type DecideTogether = (request: DisruptionRequest, budget: ObjectRef) => Promise<TurnResult>;

type TurnResult = DisruptionResult | "elsewhere";

interface Waiting extends Pick<PromiseWithResolvers<TurnResult>, "resolve"> {
  readonly request: DisruptionRequest;
}

/** Bounds of the pause after a turn, in milliseconds. */
const MIN_PAUSE_MS = 2;
const MAX_PAUSE_MS = 25;

export function createDecideTogether(tools: ReserverTools): DecideTogether {
  const { clock } = tools;
  /** By UID of the budget. */
  const queues = new Map<string, Waiting[]>();

  async function takeTurns(budget: ObjectRef, queue: Waiting[]): Promise<void> {
    queues.set(budget.uid, queue);
    // Requests of the same moment share the first turn.
    await Promise.resolve();
    while (queue.length > 0) {
      const taken = queue.splice(0);
      const startedAt = clock.monotonic();
      const requests = taken.map(({ request }) => request);
      const results = await takeTurn(budget, requests, tools).catch((error: unknown) =>
        requests.map(() => undecided(error)),
      );
      for (const [i, { resolve }] of taken.entries()) resolve(results[i] ?? undecided());
      // Clients that were answered together ask again together: without a pause the first would have a turn alone.
      const tookMs = clock.monotonic() - startedAt;
      if (taken.length > 1) await clock.sleep(Math.min(Math.max(MIN_PAUSE_MS, tookMs / 10), MAX_PAUSE_MS));
    }
    queues.delete(budget.uid);
  }

  return (request, budget) => {
    const { promise, resolve } = Promise.withResolvers<TurnResult>();
    const queue = queues.get(budget.uid);
    if (queue) queue.push({ request, resolve });
    else void takeTurns(budget, [{ request, resolve }]);
    return promise;
  };
}

/** Milliseconds: a turn lasts no longer, however late the deadlines of its requests are. */
const MAX_TURN_MS = 60_000;

/**
 * Ends with the latest deadline of the requests, so that one with little time left does not fail the others. Rejects
 * with the error of the API server.
 */
async function takeTurn(
  { namespace, uid }: ObjectRef,
  requests: readonly DisruptionRequest[],
  tools: ReserverTools,
): Promise<readonly TurnResult[]> {
  const { cluster, clock, by } = tools;
  const longest = Math.max(...requests.map((request) => remaining(request, clock)));
  using deadline = startDeadline(Math.min(longest, MAX_TURN_MS), undefined, clock);
  const call: Call = { deadlineMs: deadline.remainingMs(), signal: deadline.signal };
  const budgets = await listBudgets(namespace, tools, call);
  const listed = budgets.find(({ ref }) => ref.uid === uid);
  if (!listed || "problem" in listed.content) return requests.map(() => "elsewhere");
  const budget = listed.content;
  const store = await openReservationStore(cluster, listed.object, call);
  const seen = await gatherUnderBudget(budget, tools, call);
  const now = clock.now();
  const living = livingReservations(store.reservations, presentIn(seen.zones, seen.pods.values()), now);
  const facts: Facts = { now, by, budgets, budget, seen };

  let reservations = living;
  const reserving: DisruptionRequest[] = [];
  const results = requests.map((request): TurnResult => {
    // With less time left, a write could take effect after its request was refused.
    if (remaining(request, clock) < LEAST_FOR_WRITE_MS) return undecided();
    const decision = decide(request, facts, reservations);
    if (decision === "elsewhere") return decision;
    const { verdict, reserve } = decision;
    if (!reserve) return judged(verdict);
    const { key, reservation, isReleasable } = reserve;
    // Those after it count its pods.
    reservations = { ...reservations, [key]: reservation };
    reserving.push(request);
    const place = { namespace, budget: budget.name, key };
    return judged(verdict, isReleasable ? [{ ...reservation, ...place }] : []);
  });
  if (reserving.length === 0) return results;
  const deadlineMs = Math.min(deadline.remainingMs(), ...reserving.map((request) => remaining(request, clock)));
  await store.write(reservations, { deadlineMs, signal: deadline.signal });
  return results;
}

/** Milliseconds until the request must be answered, never negative; 0 once its caller has gone. */
export function remaining(
  { deadlineAt, signal }: Pick<DisruptionRequest, "deadlineAt" | "signal">,
  clock: Pick<Clock, "monotonic">,
): number {
  return signal?.aborted ? 0 : Math.max(0, deadlineAt - clock.monotonic());
}

/** Milliseconds. */
const LEAST_FOR_WRITE_MS = 50;

/** What the requests of a turn are decided by, beside the reservations. */
interface Facts {
  readonly now: number;
  readonly by: string;
  /** All budgets of the namespace: a pod that another one selects as well is refused. */
  readonly budgets: readonly ListedBudget[];
  readonly budget: Budget;
  readonly seen: UnderBudget;
}

interface Decision {
  readonly verdict: Verdict;
  /** To be written under the key. */
  readonly reserve?: { readonly key: string; readonly reservation: Reservation; readonly isReleasable: boolean };
}

function decide(request: DisruptionRequest, facts: Facts, reservations: Reservations): Decision | "elsewhere" {
  const { name, downscale } = request;
  return downscale
    ? decideShrink({ ...downscale, name }, facts, reservations)
    : decidePod(request, facts, reservations);
}

/** It makes a reservation of its own each time, which lasts as long as this downscale may take. */
function decideShrink(
  { name, uid, from, forced }: RequestedDownscale & { readonly name: string },
  { now, by, budget, seen }: Facts,
  reservations: Reservations,
): Decision {
  const found = decideDownscale({ now, budget, zones: seen.zones, reservations, uid, from });
  const verdict = forced ? { ...found, reason: "Allowed" as const } : found;
  if (verdict.reason !== "Allowed") return { verdict };
  const reservation = { kind: "downscale", uid, from, pinned: true, time: new Date(now).toISOString(), by } as const;
  return { verdict, reserve: { key: downscaleKey(name, reservations), reservation, isReleasable: true } };
}

function decidePod(request: DisruptionRequest, facts: Facts, reservations: Reservations): Decision | "elsewhere" {
  const { now, budgets, budget, seen } = facts;
  const pod = seen.pods.get(request.name);
  if (!pod) return "elsewhere";
  const found = findBudget(pod, budgets, request);
  if ("reason" in found) return { verdict: found };
  const { rollout, unpinned, dryRun } = request;
  const verdict = decideEviction({ now, pod, budget, zones: seen.zones, reservations, rollout, unpinned });
  if (verdict.reason !== "Allowed" || dryRun) return { verdict };
  const earlier = reservationOf(pod, reservations);
  if (earlier && isShared(earlier, request, facts)) return { verdict };
  const reservation: Reservation = {
    kind: rollout ? "rollout" : "eviction",
    uid: pod.uid,
    pinned: !unpinned,
    time: new Date(now).toISOString(),
    by: facts.by,
  };
  // An earlier disruption may still take effect: the reservation in its place is not released.
  return { verdict, reserve: { key: pod.name, reservation, isReleasable: !earlier } };
}

/** Longer than any webhook may take, and far from the end of a reservation. */
const RENEWED_AFTER_MS = 40_000;

/**
 * A young reservation is shared: drainers ask again every 5 s while a core PodDisruptionBudget refuses after us. One of
 * the rollout may be released by its process, so nobody else shares it. An unpinned eviction makes its own: for 15 s
 * after it nobody else may take the pod.
 */
function isShared(
  earlier: Reservation,
  { rollout, unpinned }: DisruptionRequest,
  { now, by }: Pick<Facts, "now" | "by">,
): boolean {
  const isSafe = earlier.kind === "eviction" || (rollout !== undefined && earlier.by === by);
  return isSafe && !unpinned && ageOf(earlier, now) < RENEWED_AFTER_MS;
}
