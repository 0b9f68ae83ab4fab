/**
 * One attempt at several evictions of one namespace: gather -> decide -> compare and set, each once for all.
 *
 *   list budgets -> per budget: list StatefulSets and pods -> decide one after the other -> write the reservations, if there are new ones
 */
import type { Clock } from "../infra/clock.ts";
import type { Call, Cluster } from "../infra/cluster.ts";
import { hasCode } from "../infra/errors.ts";
import { pods } from "../infra/resources.ts";
import { decideEviction } from "./budget/decide.ts";
import { readMember, type Member } from "./budget/member.ts";
import { livingReservations, type Reservation } from "./budget/reservation.ts";
import { findBudget } from "./budget/scope.ts";
import { verdict, type Verdict } from "./budget/verdict.ts";
import type { Budget } from "./budget/zpdb.ts";
import { gatherUnderBudget, listBudgets, type ListedBudget } from "./gather-budget.ts";
import type { Freshness } from "./gather.ts";
import { openLedger } from "./ledger.ts";
import { groupBy } from "./model/order.ts";

/** A pod that someone wants to disrupt. */
export interface Ask {
  readonly namespace: string;
  readonly name: string;
  /** Set when the rollout asks [1.5.7]. */
  readonly rollout?: { readonly maxUnavailable: number };
  /** Decides, but reserves nothing. */
  readonly dryRun: boolean;
}

/** A reservation, and where to find it. */
export interface Held extends Reservation {
  readonly namespace: string;
  readonly budget: string;
  readonly pod: string;
}

export type Attempt =
  | { readonly state: "decided"; readonly verdict: Verdict; readonly held?: Held }
  /** Somebody else has written meanwhile: all is to be gathered anew. */
  | { readonly state: "outrun"; readonly error?: unknown }
  /** Only now it is known where to look: again, without a pause. */
  | { readonly state: "learned" };

/** Told of all budgets of a namespace as they were read; undefined if the cluster does not know the kind. */
export type OnBudgets = (namespace: string, budgets: readonly ListedBudget[] | undefined) => void;

export interface Desk {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** Signs the reservations. */
  readonly by: string;
  readonly freshness: Freshness;
  /** By `<namespace>/<StatefulSet>`, the budget that its pods were last under, "" for none. A hint: a wrong one costs calls, nothing else. */
  readonly hints: Map<string, string>;
  /** UIDs of budgets whose status does not keep reservations. */
  readonly leased: Set<string>;
  readonly onBudgets: OnBudgets;
}

/** Resolves with what became of each; rejects only if the budgets could not be listed. */
export async function attempt(namespace: string, asks: readonly Ask[], desk: Desk, call: Call): Promise<Map<Ask, Attempt>> {
  const budgets = await listBudgets(desk.cluster, namespace, desk.freshness, call);
  desk.onBudgets(namespace, budgets);
  const around = { budgets: budgets ?? [], desk, call };
  const results = new Map<Ask, Attempt>();
  const guessed = await Promise.all(asks.map(async (ask) => ({ ask, budget: await chooseBudget(ask, around).catch(asFailure) })));
  for (const { ask, budget } of guessed) if ("state" in budget) results.set(ask, budget);
  const waiting = guessed.filter((one): one is { ask: Ask; budget: ListedBudget } => !("state" in one.budget));
  const byBudget = [...groupBy(waiting, ({ budget }) => budget.ref.name).values()].map(async (members) => {
    const [first] = members;
    if (!first) return;
    const theirs = members.map(({ ask }) => ask);
    const outcome = await attemptUnder(first.budget, theirs, around).catch(asFailure);
    for (const ask of theirs) results.set(ask, "state" in outcome ? outcome : (outcome.get(ask) ?? { state: "outrun" }));
  });
  await Promise.all(byBudget);
  return results;
}

interface Around {
  readonly budgets: readonly ListedBudget[];
  readonly desk: Desk;
  readonly call: Call;
}

const decided = (said: Verdict): Attempt => ({ state: "decided", verdict: said });
const asFailure = (error: unknown): Attempt => ({ state: "outrun", error });

const OF_STATEFULSET = /^(?<set>.+)-\d+$/;

function hintKey({ namespace, name }: Ask): string | undefined {
  const set = OF_STATEFULSET.exec(name)?.groups?.["set"];
  return set === undefined ? undefined : `${namespace}/${set}`;
}

/** The budget that the pod is under, by its name alone where that may do: the pod comes with the budget's list, a call less. */
async function chooseBudget(ask: Ask, around: Around): Promise<ListedBudget | Attempt> {
  const { budgets, desk } = around;
  const key = hintKey(ask);
  const hint = key && desk.hints.get(key);
  const guess = hint === undefined && key !== undefined && budgets.length === 1 ? budgets[0] : budgets.find(({ ref }) => ref.name === hint);
  if (guess && !("problem" in guess.content)) return guess;
  return await lookUp(ask, around);
}

/** Reads the pod itself. */
async function lookUp(ask: Ask, around: Around): Promise<ListedBudget | Attempt> {
  const { budgets, desk, call } = around;
  if (ask.rollout && budgets.length === 0) return decided(verdict("PodNotInScope", "there is no zoned pod disruption budget"));
  let pod: Member;
  try {
    pod = readMember(await desk.cluster.get(pods, ask, call));
  } catch (error) {
    if (!hasCode(error, "NotFound")) throw error;
    return decided(verdict("PodNotFound", `pods "${ask.name}" not found`));
  }
  const found = findBudget(pod, budgets);
  learn(ask, found, desk);
  return "reason" in found ? decided(found) : (budgets.find(({ content }) => content === found) ?? { state: "outrun" });
}

const MOST_HINTS = 10_000;

function learn(ask: Ask, found: Budget | Verdict, { hints }: Desk): void {
  const key = hintKey(ask);
  if (key === undefined || ("reason" in found && found.reason !== "PodNotInScope")) return;
  if (hints.size >= MOST_HINTS) hints.clear();
  hints.set(key, "reason" in found ? "" : found.name);
}

/** Gathers once, decides each in turn as if those before it had been disrupted, and writes once. */
async function attemptUnder(listed: ListedBudget, asks: readonly Ask[], around: Around): Promise<Map<Ask, Attempt> | Attempt> {
  const { desk, call, budgets } = around;
  const { content: budget, object, ref } = listed;
  if ("problem" in budget) return { state: "outrun" };
  const ledger = await openLedger(desk.cluster, object, desk.leased.has(ref.uid), call);
  const seen = await gatherUnderBudget(desk.cluster, budget, desk.freshness, call);
  const uids = new Map([...seen.pods.values(), ...seen.zones.flatMap((zone) => zone.pods)].map((pod) => [pod.name, pod.uid]));
  const now = desk.clock.now();
  const reservations = { ...livingReservations(ledger.reservations, (pod) => uids.get(pod), now) };
  const results = new Map<Ask, Attempt>();

  const judge = (pod: Member, ask: Ask): Attempt => {
    const found = findBudget(pod, budgets);
    learn(ask, found, desk);
    if ("reason" in found) return decided(found);
    const said = decideEviction({ now, pod, budget, zones: seen.zones, reservations, rollout: ask.rollout });
    if (said.reason !== "Allowed" || ask.dryRun) return decided(said);
    const reservation = { uid: pod.uid, time: new Date(now).toISOString(), by: desk.by };
    reservations[pod.name] = reservation;
    return { state: "decided", verdict: said, held: { ...reservation, namespace: ask.namespace, budget: ref.name, pod: pod.name } };
  };
  for (const ask of asks) {
    const pod = seen.pods.get(ask.name);
    results.set(ask, pod ? judge(pod, ask) : await seekElsewhere(ask, listed, around));
  }

  const reserved = [...results.values()].some((result) => result.state === "decided" && result.held);
  if (!reserved || (await ledger.write(reservations, call)) === "kept") return results;
  desk.leased.add(ref.uid);
  return { state: "learned" };
}

/** The pod is not among those of the budget that was guessed, or has only just come. */
async function seekElsewhere(ask: Ask, guess: ListedBudget, around: Around): Promise<Attempt> {
  const found = await lookUp(ask, around);
  return "state" in found ? found : { state: found === guess ? "outrun" : "learned" };
}
