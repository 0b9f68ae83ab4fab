/**
 * One attempt at several evictions under one budget: gather -> decide -> compare and set, each once for all.
 *
 *   list budgets -> list StatefulSets and pods -> decide one after the other -> write the reservations, if there are new ones
 */
import type { Deadline } from "../../infra/deadline.ts";
import type { Call } from "../../infra/kubernetes/cluster.ts";
import { type Attempt, budgetKey, decided, type Desk, remaining, type TimedAsk } from "./ask.ts";
import { decideEviction } from "../budget/decide.ts";
import { type LastLook, rememberLook } from "../budget/last-look.ts";
import type { Member } from "../budget/member.ts";
import { ageOf, isForEviction, livingReservations, type Reservation } from "../budget/reservation.ts";
import { findBudget } from "../budget/scope.ts";
import type { Budget } from "../budget/zpdb.ts";
import { hintKey, learn, lookUp } from "./find-budget.ts";
import { gatherUnderBudget, listBudgets, type ListedBudget, type UnderBudget } from "./gather-budget.ts";
import { type Ledger, openLedger } from "./ledger.ts";

/** A budget of a namespace, and those who ask about pods under it. */
export interface Batch {
  readonly namespace: string;
  readonly budget: string;
  readonly asks: readonly TimedAsk[];
  /** All budgets of the namespace, if they have just been read. */
  readonly budgets?: readonly ListedBudget[] | undefined;
}

type Answers = ReadonlyMap<TimedAsk, Attempt>;

/** With less time left the write could take effect after its ask was refused. Milliseconds. */
const LEAST_FOR_WRITE_MS = 50;

/** Resolves with what became of each; rejects with what the cluster says. All of it ends with `deadline`. */
export async function attempt(batch: Batch, desk: Desk, deadline: Deadline): Promise<Answers> {
  const { namespace, asks } = batch;
  const call = callWithin(deadline);
  const budgets = batch.budgets ?? (await readBudgets(namespace, desk, deadline));
  const listed = budgets.find(({ ref }) => ref.name === batch.budget);
  if (!listed || "problem" in listed.content) {
    desk.looks.delete(budgetKey(namespace, batch.budget));
    return forget(asks, desk);
  }
  const budget = listed.content;
  const ledger = await openLedger(desk.cluster, listed.object, desk.leased.has(listed.ref.uid), call);
  const seen = await gatherUnderBudget(desk.cluster, budget, desk.freshness, call);
  const round = openRound(seen, ledger, budgets, desk);

  const answers = new Map<TimedAsk, Attempt>();
  for (const ask of asks) answers.set(ask, judge(ask, round, listed, desk));
  const view = { now: round.now, budget, reservations: round.reservations };
  remember(desk, budget, rememberLook(seen.zones, view, desk.clock.monotonic()));
  const elsewhere = asks.filter((ask) => !seen.pods.has(ask.name));
  await Promise.all(elsewhere.map(async (ask) => answers.set(ask, await seekElsewhere(ask, listed, { budgets, desk, call }))));

  if (round.reservers.length === 0) return answers;
  const writeMs = Math.min(deadline.remainingMs(), ...round.reservers.map((ask) => remaining(ask, desk.clock)));
  const written = await ledger.write(round.reservations, { deadlineMs: writeMs, signal: deadline.signal });
  if (written === "kept") return answers;
  desk.leased.add(listed.ref.uid);
  return new Map(asks.map((ask) => [ask, { state: "learned" }]));
}

/** What is left of the deadline, for one call. */
export function callWithin(deadline: Deadline): Call {
  return { deadlineMs: deadline.remainingMs(), signal: deadline.signal };
}

/** All budgets of the namespace, none if the cluster does not know the kind. */
export async function readBudgets(namespace: string, desk: Desk, deadline: Deadline): Promise<readonly ListedBudget[]> {
  const budgets = await listBudgets(desk.cluster, namespace, desk.freshness, callWithin(deadline));
  desk.onBudgets(namespace, budgets);
  return budgets ?? [];
}

/** What the asks of one attempt have in common: each is judged as if those before it had been disrupted. */
interface Round {
  readonly now: number;
  readonly seen: UnderBudget;
  readonly budgets: readonly ListedBudget[];
  readonly reservations: Record<string, Reservation>;
  /** Those whose reservations have to be written. */
  readonly reservers: TimedAsk[];
}

function openRound(seen: UnderBudget, ledger: Ledger, budgets: readonly ListedBudget[], { clock }: Desk): Round {
  const uids = new Map([...seen.pods.values(), ...seen.zones.flatMap((zone) => zone.pods)].map((pod) => [pod.name, pod.uid]));
  const now = clock.now();
  const reservations = { ...livingReservations(ledger.reservations, (pod) => uids.get(pod), now) };
  return { now, seen, budgets, reservations, reservers: [] };
}

function judge(ask: TimedAsk, round: Round, listed: ListedBudget, desk: Desk): Attempt {
  const { now, seen, reservations } = round;
  const pod = seen.pods.get(ask.name);
  if (!pod || remaining(ask, desk.clock) < LEAST_FOR_WRITE_MS) return { state: "outrun" };
  const found = findBudget(pod, round.budgets, ask);
  learn(ask, found, desk);
  if ("reason" in found) return decided(found);
  const { rollout, unpinned } = ask;
  const said = decideEviction({ now, pod, budget: found, zones: seen.zones, reservations, rollout, unpinned, by: desk.by });
  if (said.reason !== "Allowed" || ask.dryRun) return decided(said);
  // An eviction that was allowed may still take effect: its reservation, or what the rollout wrote in its place, is never taken back.
  const earlier = reservations[pod.name];
  const isEvicted = rollout !== undefined && isFor(pod, earlier) && isForEviction(earlier);
  const reservation = reserve(pod, ask, round, desk);
  if (isEvicted) return decided(said);
  return { state: "decided", verdict: said, held: { ...reservation, namespace: ask.namespace, budget: listed.ref.name, pod: pod.name } };
}

function isFor(pod: Member, found: Reservation | undefined): found is Reservation {
  return found?.uid === pod.uid;
}

/** Longer than any webhook may take, and far from the end of a reservation. */
const RENEWED_AFTER_MS = 40_000;

/**
 * A young reservation does for the same pod again: everybody has counted it since, and will. Drainers ask every 5 seconds while a core
 * PodDisruptionBudget says no after us. It has to be our own or an eviction's: the rollout's may be taken back. A yes that goes by the pod's name
 * alone is always written: for 15 s from then on nobody else gets one.
 */
function reserve(pod: Member, ask: TimedAsk, round: Round, { by }: Desk): Reservation {
  const { reservations, now } = round;
  const found = reservations[pod.name];
  const next = { uid: pod.uid, time: new Date(now).toISOString(), by };
  const isShared = isFor(pod, found) && !ask.unpinned && (found.by === by || isForEviction(found));
  if (isShared && ageOf(found, now) < RENEWED_AFTER_MS) return found;
  round.reservers.push(ask);
  reservations[pod.name] = next;
  return next;
}

/** The pod is not among those of the budget, or has only just come. */
async function seekElsewhere(ask: TimedAsk, listed: ListedBudget, around: Parameters<typeof lookUp>[1]): Promise<Attempt> {
  const found = await lookUp(ask, around);
  return "state" in found ? found : { state: found === listed ? "outrun" : "learned" };
}

const MOST_LOOKS = 1000;

/** For the next denial, which then needs no list; and the StatefulSets that the budget selects, whose pods are most likely under it. */
function remember({ looks, hints }: Desk, { namespace, name }: Budget, look: LastLook): void {
  if (looks.size >= MOST_LOOKS) looks.clear();
  looks.set(budgetKey(namespace, name), look);
  for (const zone of look.zones) if (!hints.has(`${namespace}/${zone.name}`)) hints.set(`${namespace}/${zone.name}`, name);
}

/** The budget that was hinted at is none any more. */
function forget(asks: readonly TimedAsk[], { hints }: Desk): Answers {
  for (const ask of asks) hints.delete(hintKey(ask) ?? "");
  return new Map(asks.map((ask) => [ask, { state: "learned" }]));
}
