/**
 * Decides the disruption requests that wait for one budget together: gather -> decide -> compare and set, each once a
 * batch.
 *
 *   list budgets -> list StatefulSets and pods -> decide request after request -> write the reservations, if any is new
 */
import type { Deadline } from "../../../infra/deadline.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import {
  type RequestedDownscale,
  type ReserverTools,
  remaining,
  type TimedDisruptionRequest,
} from "./disruption-request.ts";
import type { BudgetPod } from "../budget-pod.ts";
import { decideEviction } from "../decide-eviction.ts";
import { decideDownscale } from "../decide-downscale.ts";
import { findBlocking } from "../denial-cache.ts";
import { ageOf, downscaleKey, livingReservations, presentIn, type Reservation, reservationOf } from "../reservation.ts";
import { findBudget } from "../scope.ts";
import { type DisruptionResult, judged, NOT_NOW, undecided } from "../verdict.ts";
import { type BatchContext, findBudgetOfPod } from "./find-budget.ts";
import { gatherUnderBudget, listBudgets, type ListedBudget, type UnderBudget } from "./gather-budget.ts";
import { openReservationStore } from "./reservation-store.ts";

/** Requests for pods under one budget. */
export interface Batch {
  readonly namespace: string;
  readonly budget: string;
  readonly requests: readonly TimedDisruptionRequest[];
  /** All budgets of the namespace, if they have just been read. */
  readonly budgets?: readonly ListedBudget[] | undefined;
}

type Results = ReadonlyMap<TimedDisruptionRequest, DisruptionResult>;

/** Milliseconds. With less time left, a write could take effect after its request was refused. */
const LEAST_FOR_WRITE_MS = 50;

/**
 * Resolves with the result of each request; rejects with the error of the API server. Every call ends with `deadline`.
 */
export async function decideBatch(batch: Batch, tools: ReserverTools, deadline: Deadline): Promise<Results> {
  const { namespace, requests } = batch;
  const call = callWithin(deadline);
  const budgets = batch.budgets ?? (await readBudgets(namespace, tools, deadline));
  const listed = budgets.find(({ ref }) => ref.name === batch.budget);
  if (!listed || "problem" in listed.content) {
    tools.memory.forgetBudget({ namespace, name: batch.budget }, requests);
    return askElsewhere(requests);
  }
  const budget = listed.content;
  const store = await openReservationStore(tools.cluster, listed.object, call);
  const seen = await gatherUnderBudget(budget, tools, call);
  const now = tools.clock.now();
  const reservations = { ...livingReservations(store.reservations, presentIn(seen.zones, seen.pods.values()), now) };
  const view: SharedView = { now, seen, budgets, listed, reservations, toReserve: [] };

  const results = new Map<TimedDisruptionRequest, DisruptionResult>();
  for (const request of requests) results.set(request, decideRequest(request, view, tools));
  tools.memory.noteDenial(findBlocking(seen.zones, { now, budget, reservations }, tools.clock.monotonic()));
  const elsewhere = requests.filter((request) => !request.downscale && !seen.pods.has(request.name));
  await Promise.all(
    elsewhere.map(async (request) =>
      results.set(request, await findOtherBudget(request, listed, { budgets, tools, call })),
    ),
  );

  if (view.toReserve.length === 0) return results;
  const deadlineMs = Math.min(
    deadline.remainingMs(),
    ...view.toReserve.map((request) => remaining(request, tools.clock)),
  );
  await store.write(reservations, { deadlineMs, signal: deadline.signal });
  return results;
}

/** A call that ends with the deadline. */
export function callWithin(deadline: Deadline): Call {
  return { deadlineMs: deadline.remainingMs(), signal: deadline.signal };
}

/** All budgets of the namespace; none if the API server does not know the kind. */
export async function readBudgets(
  namespace: string,
  tools: ReserverTools,
  deadline: Deadline,
): Promise<readonly ListedBudget[]> {
  const budgets = await listBudgets(namespace, tools, callWithin(deadline));
  tools.onBudgets(namespace, budgets);
  return budgets ?? [];
}

/**
 * The view that the requests of a batch share. An allowed request reserves its pod here, so that the requests after it
 * count the pod.
 */
interface SharedView {
  readonly now: number;
  readonly seen: UnderBudget;
  readonly budgets: readonly ListedBudget[];
  readonly listed: ListedBudget;
  readonly reservations: Record<string, Reservation>;
  /** Requests with a reservation that has yet to be written. */
  readonly toReserve: TimedDisruptionRequest[];
}

function decideRequest(request: TimedDisruptionRequest, view: SharedView, tools: ReserverTools): DisruptionResult {
  if (remaining(request, tools.clock) < LEAST_FOR_WRITE_MS) return undecided();
  return request.downscale
    ? decideDownscaleRequest(request, request.downscale, { ...view, by: tools.by })
    : decidePodRequest(request, view, tools);
}

/** Each downscale makes a reservation of its own, which lasts as long as this downscale may take. */
function decideDownscaleRequest(
  request: TimedDisruptionRequest,
  { uid, from, forced }: RequestedDownscale,
  { now, seen, listed, reservations, toReserve, by }: SharedView & Pick<ReserverTools, "by">,
): DisruptionResult {
  if ("problem" in listed.content) return undecided();
  const found = decideDownscale({ now, budget: listed.content, zones: seen.zones, reservations, uid, from });
  const verdict = forced ? { ...found, reason: "Allowed" as const } : found;
  if (verdict.reason !== "Allowed") return judged(verdict);
  const key = downscaleKey(request.name, reservations);
  const reservation = { kind: "downscale", uid, from, pinned: true, time: new Date(now).toISOString(), by } as const;
  reservations[key] = reservation;
  toReserve.push(request);
  const place = { namespace: request.namespace, budget: listed.ref.name, key };
  return judged(verdict, [{ ...reservation, ...place }]);
}

function decidePodRequest(request: TimedDisruptionRequest, view: SharedView, tools: ReserverTools): DisruptionResult {
  const { now, seen, reservations, listed } = view;
  const pod = seen.pods.get(request.name);
  if (!pod) return undecided();
  const budget = findBudget(pod, view.budgets, request);
  tools.memory.noteBudget(request, budget);
  if ("reason" in budget) return judged(budget);
  const { rollout, unpinned } = request;
  const verdict = decideEviction({
    now,
    pod,
    budget,
    zones: seen.zones,
    reservations,
    rollout,
    unpinned,
  });
  if (verdict.reason !== "Allowed" || request.dryRun) return judged(verdict);
  // An earlier disruption of the pod may still take effect: neither its reservation nor the one that is written in its
  // place may be released.
  const isAgain = reservationOf(pod, reservations) !== undefined;
  const reservation = reserve(pod, request, { ...view, by: tools.by });
  if (isAgain) return judged(verdict);
  return judged(verdict, [{ ...reservation, namespace: request.namespace, budget: listed.ref.name, key: pod.name }]);
}

/** Longer than any webhook may take, and far from the end of a reservation. */
const RENEWED_AFTER_MS = 40_000;

/**
 * A young reservation of the same pod is reused: every process counts it already. Drainers retry every 5 seconds while
 * a core PodDisruptionBudget refuses after us. Only our own or an eviction's may be reused, as the rollout's may be
 * released. An unpinned eviction always writes: for 15 s after it, no other request for this pod is allowed.
 */
function reserve(
  pod: BudgetPod,
  request: TimedDisruptionRequest,
  { reservations, now, toReserve, by }: SharedView & Pick<ReserverTools, "by">,
): Reservation {
  const found = reservationOf(pod, reservations);
  const kind = request.rollout ? "rollout" : "eviction";
  const next = { kind, uid: pod.uid, pinned: !request.unpinned, time: new Date(now).toISOString(), by } as const;
  const isShared = found && !request.unpinned && (found.by === by || found.kind === "eviction");
  if (isShared && ageOf(found, now) < RENEWED_AFTER_MS) return found;
  toReserve.push(request);
  reservations[pod.name] = next;
  return next;
}

/** For a pod that the budget's list does not have: another budget selects it, or it was created after the list. */
async function findOtherBudget(
  request: TimedDisruptionRequest,
  listed: ListedBudget,
  context: BatchContext,
): Promise<DisruptionResult> {
  const found = await findBudgetOfPod(request, context);
  return "outcome" in found ? found : undecided(undefined, found === listed ? "afterPause" : "atOnce");
}

/** Their budget is gone or invalid. */
function askElsewhere(requests: readonly TimedDisruptionRequest[]): Results {
  // A downscale names its budgets itself.
  return new Map(
    requests.map((request) => [request, request.downscale ? judged(NOT_NOW) : undecided(undefined, "atOnce")]),
  );
}
