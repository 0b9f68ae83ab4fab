/**
 * From a request to disrupt pods to its verdict, for the eviction webhook and the reconciler alike: no budget is spent
 * twice, however many processes decide (§13.1).
 *
 *   read the pod and the budgets -> the budget that selects it -> its queue -> a turn -> allowed or denied
 *   another process wrote first, or the API server fails for now -> random pause -> again, until the deadline: "not now"
 *
 *   a turn: list the budgets -> list StatefulSets and pods -> decide request after request -> write the reservations, if any is new
 *
 * The write carries the version of the budget that was read first, which proves that nobody else has reserved since.
 * Each budget has a queue: requests that arrive meanwhile share the next turn, and no budget waits for another.
 */
import type { Clock } from "../../../infra/clock.ts";
import { startDeadline } from "../../../infra/deadline.ts";
import { absent, isTransient } from "../../../infra/errors.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import { pods } from "../../../infra/kubernetes/resources.ts";
import { retryOnConflict } from "../../../infra/kubernetes/retry-on-conflict.ts";
import { createBatches } from "../../../infra/batches.ts";
import type { ObjectRef } from "../../model/decision.ts";
import { readPod } from "../../model/pod.ts";
import type { Zone } from "../../model/zone.ts";
import { decideDownscale } from "../decide-downscale.ts";
import { decideEviction } from "../decide-eviction.ts";
import {
  ageOf,
  downscaleKey,
  livingReservations,
  presentIn,
  type Reservation,
  type ReservationHandle,
  reservationOf,
  type Reservations,
} from "../reservation.ts";
import { type Budget, type DisruptionTarget, findBudget, findBudgetsOfZone } from "../zpdb.ts";
import { type DisruptionResult, judged, NOT_NOW, undecided, verdict, type Verdict } from "../verdict.ts";
import {
  type BudgetSource,
  gatherUnderBudget,
  listBudgets,
  type ListedBudget,
  openReservationStore,
  releaseReservation,
  type UnderBudget,
} from "./budget-store.ts";

export interface Reserver {
  /** Never rejects. */
  readonly reserve: (request: DisruptionRequest) => Promise<DisruptionResult>;
  /** Reserves a downscale on each budget that selects the StatefulSet (§5.11), or on none. Never rejects. */
  readonly reserveDownscale: (downscale: TimedDownscale) => Promise<DisruptionResult>;
  /**
   * Releases a reservation whose pod could not be deleted, or whose downscale was refused; a later one of the same pod
   * stays. Never rejects: a reservation that is not released expires.
   */
  readonly release: (handle: ReservationHandle, call: Call) => Promise<void>;
}

type TimeLimit = Pick<DisruptionRequest, "deadlineAt" | "signal">;

/** A StatefulSet that is to have `to` replicas. */
interface TimedDownscale extends TimeLimit {
  readonly zone: Pick<Zone, "kind" | "namespace" | "name" | "uid" | "labels" | "textProblem" | "firstOrdinal">;
  readonly to: number;
  /** Reserved even if budgets deny it (§2.3). */
  readonly forced: boolean;
}

interface DisruptionRequest extends DisruptionTarget {
  readonly namespace: string;
  /** Name of the pod; for a downscale, of the StatefulSet. */
  readonly name: string;
  /** Set for a downscale (§5.11): the UID of the StatefulSet, and the ordinal of the first pod that goes. */
  readonly downscale?: { readonly uid: string; readonly from: number; readonly forced: boolean };
  /** Set when the rollout asks (§1.5.7). */
  readonly rollout?: { readonly maxUnavailable: number };
  /** Decides, but reserves nothing. */
  readonly dryRun: boolean;
  /** By `clock.monotonic`, milliseconds. */
  readonly deadlineAt: number;
  readonly signal?: AbortSignal;
}

interface ReserverOptions extends BudgetSource {
  readonly clock: Clock;
  /** Signs the reservations. */
  readonly by: string;
  readonly random: () => number;
}

/** Milliseconds: the upper bound of the first pause, which doubles each time. Random, so that processes part. */
const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 500;
/** Milliseconds to release what was reserved for a downscale that another budget denies. */
const RELEASE_MS = 3000;
const MAX_HINTS = 10_000;

const NO_BUDGETS = judged(verdict("PodNotInScope", "there is no zoned pod disruption budget"));

export function createReserver(tools: ReserverOptions): Reserver {
  const { cluster, clock, random } = tools;
  /** Decides under a budget, by its UID. Never rejects. */
  const decideTogether = createBatches(
    (budget: string, requests: readonly DisruptionRequest[]): Promise<readonly TurnResult[]> =>
      takeTurn(budget, requests, tools).catch((error: unknown) => requests.map(() => undecided(error))),
    clock,
  );
  /**
   * By StatefulSet, the UID of the budget that its pods were last under, or what is being looked for: it saves the reads
   * that find the budget. A wrong hint costs calls and no more, as the budget's own list has to have the pod. Nothing
   * else of a budget is kept, which may be large.
   */
  const hints = new Map<string, Promise<string | DisruptionResult>>();

  const callUntil = (time: TimeLimit): Call => ({
    deadlineMs: remaining(time, clock),
    ...(time.signal && { signal: time.signal }),
  });

  /** The UID of the valid budget that selects the pod, or the result without one. Rejects with the error of the API server. */
  async function search(request: DisruptionRequest): Promise<string | DisruptionResult> {
    const budgets = await listBudgets(request.namespace, tools, callUntil(request));
    if (request.rollout && budgets.length === 0) return NO_BUDGETS;
    const object = await cluster.get(pods, request, callUntil(request)).catch(absent);
    if (!object) return judged(verdict("PodNotFound", `pods "${request.name}" not found`));
    const found = findBudget(readPod(object), budgets, request);
    return "reason" in found ? judged(found) : found.uid;
  }

  async function ask(request: DisruptionRequest): Promise<DisruptionResult> {
    if (remaining(request, clock) <= 0) return undecided();
    const set = statefulSetOf(request);
    // Without a pause where there is none: of requests of the same moment, the first looks for all.
    const hint = hints.has(set) ? await hints.get(set) : undefined;
    if (hint === NO_BUDGETS && request.rollout) return hint;
    const hinted = typeof hint === "string" ? await decideTogether(hint, request) : "elsewhere";
    if (hinted !== "elsewhere") return hinted;
    const searching = search(request).catch(undecided);
    if (hints.size >= MAX_HINTS) hints.clear();
    hints.set(set, searching);
    // Without a budget, only those that ask meanwhile have the answer.
    void searching.then((found) => typeof found !== "string" && hints.get(set) === searching && hints.delete(set));
    const found = await searching;
    if (typeof found !== "string") return found;
    const result = await decideTogether(found, request);
    // The pod was made, or came under another budget, a moment ago.
    return result === "elsewhere" ? undecided() : result;
  }

  /** Asks until there is a verdict, a fault that time does not cure, or no time left. */
  async function untilDecided(time: TimeLimit, attempt: () => Promise<DisruptionResult>): Promise<DisruptionResult> {
    for (let pauseMs = FIRST_RETRY_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS)) {
      const result = await attempt();
      if (result.outcome !== "undecided" || !isTransient(result.cause)) return result;
      await clock.sleep(Math.min(random() * pauseMs, remaining(time, clock)), time.signal);
      if (remaining(time, clock) <= 0) return result;
    }
  }

  async function findBudgets({ zone, forced, ...time }: TimedDownscale): Promise<readonly ObjectRef[] | Verdict> {
    const budgets = await listBudgets(zone.namespace, tools, callUntil(time));
    const found = findBudgetsOfZone(zone, budgets, forced);
    return "reason" in found ? found : found.map(({ ref }) => ref);
  }

  async function reserveDownscale(downscale: TimedDownscale): Promise<DisruptionResult> {
    const found = await findBudgets(downscale).catch(undecided);
    if ("outcome" in found) return found;
    if ("reason" in found) return judged(found);
    const { zone, to, forced, ...time } = downscale;
    const { namespace, name, uid } = zone;
    const request = {
      namespace,
      name,
      downscale: { uid, from: zone.firstOrdinal + to, forced },
      dryRun: false,
      ...time,
    };
    const handles: ReservationHandle[] = [];
    for (const budget of found) {
      const result = await untilDecided(time, async () => {
        const one = await decideTogether(budget.uid, request);
        return one === "elsewhere" ? judged(NOT_NOW) : one;
      });
      if (result.outcome !== "allowed") {
        for (const earlier of handles) await release(earlier, { deadlineMs: RELEASE_MS });
        return result;
      }
      handles.push(...result.handles);
    }
    return judged(verdict("Allowed", `allowed by ${found.length} disruption budgets`, [zone]), handles);
  }

  const release = (handle: ReservationHandle, call: Call): Promise<void> =>
    retryOnConflict(() => releaseReservation(cluster, handle, call), { clock, call }).catch(() => {});

  return { reserve: (request) => untilDecided(request, () => ask(request)), reserveDownscale, release };
}

/** The pod's StatefulSet, by the pod's name; the pod itself if a StatefulSet's pod cannot have the name. */
const statefulSetOf = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace}/${name.replace(/-\d+$/, "")}`;

/** `elsewhere`: the budget is gone, invalid, or its list does not have the pod. */
type TurnResult = DisruptionResult | "elsewhere";

/** Milliseconds: a turn lasts no longer, however late the deadlines of its requests are. */
const MAX_TURN_MS = 60_000;

/**
 * Ends with the latest deadline of the requests, so that one with little time left does not fail the others. Rejects
 * with the error of the API server.
 */
async function takeTurn(
  uid: string,
  requests: readonly DisruptionRequest[],
  tools: ReserverOptions,
): Promise<readonly TurnResult[]> {
  const { cluster, clock, by } = tools;
  const longest = Math.max(...requests.map((request) => remaining(request, clock)));
  using deadline = startDeadline(Math.min(longest, MAX_TURN_MS), undefined, clock);
  const call: Call = { deadlineMs: deadline.remainingMs(), signal: deadline.signal };
  const namespace = requests[0]?.namespace ?? "";
  const budgets = await listBudgets(namespace, tools, call);
  const listed = budgets.find(({ ref }) => ref.uid === uid);
  if (!listed || "problem" in listed.content) return requests.map(() => "elsewhere");
  const budget = listed.content;
  const store = await openReservationStore(cluster, listed.object, call);
  const seen = await gatherUnderBudget(budget, tools, call);
  const now = clock.now();
  const living = livingReservations(store.reservations, presentIn(seen.zones, seen.pods.values()), now);
  const facts: RequestFacts = { now, by, budgets, budget, seen };

  let reservations = living;
  const reserving: DisruptionRequest[] = [];
  const results = requests.map((request): TurnResult => {
    // With less time left, a write could take effect after its request was refused.
    if (remaining(request, clock) < LEAST_FOR_WRITE_MS) return undecided();
    const { name, downscale } = request;
    const decision = downscale
      ? decideShrink({ ...downscale, name }, facts, reservations)
      : decidePod(request, facts, reservations);
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
function remaining(
  { deadlineAt, signal }: Pick<DisruptionRequest, "deadlineAt" | "signal">,
  clock: Pick<Clock, "monotonic">,
): number {
  return signal?.aborted ? 0 : Math.max(0, deadlineAt - clock.monotonic());
}

/** Milliseconds. */
const LEAST_FOR_WRITE_MS = 50;

/** What the requests of a turn are decided by, beside the reservations. */
interface RequestFacts {
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

/** It makes a reservation of its own each time, which lasts as long as this downscale may take. */
function decideShrink(
  { name, uid, from, forced }: NonNullable<DisruptionRequest["downscale"]> & { readonly name: string },
  { now, by, budget, seen }: RequestFacts,
  reservations: Reservations,
): Decision {
  const found = decideDownscale({ now, budget, zones: seen.zones, reservations, uid, from });
  const verdict = forced ? { ...found, reason: "Allowed" as const } : found;
  if (verdict.reason !== "Allowed") return { verdict };
  const reservation = { kind: "downscale", uid, from, pinned: true, time: new Date(now).toISOString(), by } as const;
  return { verdict, reserve: { key: downscaleKey(name, reservations), reservation, isReleasable: true } };
}

function decidePod(
  request: DisruptionRequest,
  facts: RequestFacts,
  reservations: Reservations,
): Decision | "elsewhere" {
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
  { now, by }: Pick<RequestFacts, "now" | "by">,
): boolean {
  const isSafe = earlier.kind === "eviction" || (rollout !== undefined && earlier.by === by);
  return isSafe && !unpinned && ageOf(earlier, now) < RENEWED_AFTER_MS;
}
