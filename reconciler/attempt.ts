/**
 * One attempt at several evictions of one namespace: gather -> decide -> compare and set, each once for all.
 *
 *   list budgets -> per budget: list StatefulSets and pods -> decide one after the other -> write the reservations, if there are new ones
 */
import type { Call } from "../infra/cluster.ts";
import { type Ask, type Attempt, decided, type Desk } from "./ask.ts";
import { decideEviction } from "./budget/decide.ts";
import type { Member } from "./budget/member.ts";
import { livingReservations, type Reservation } from "./budget/reservation.ts";
import { findBudget } from "./budget/scope.ts";
import { type Around, chooseBudget, learn, seekElsewhere } from "./find-budget.ts";
import { gatherUnderBudget, listBudgets, type ListedBudget } from "./gather-budget.ts";
import { openLedger } from "./ledger.ts";
import { groupBy } from "./model/order.ts";

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

const asFailure = (error: unknown): Attempt => ({ state: "outrun", error });

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
  let isNew = false;

  const judge = (pod: Member, ask: Ask): Attempt => {
    const found = findBudget(pod, budgets);
    learn(ask, found, desk);
    if ("reason" in found) return decided(found);
    const said = decideEviction({ now, pod, budget, zones: seen.zones, reservations, rollout: ask.rollout });
    if (said.reason !== "Allowed" || ask.dryRun) return decided(said);
    const reservation = renew(reservations[pod.name], { uid: pod.uid, time: new Date(now).toISOString(), by: desk.by });
    if (reservation !== reservations[pod.name]) isNew = true;
    reservations[pod.name] = reservation;
    return { state: "decided", verdict: said, held: { ...reservation, namespace: ask.namespace, budget: ref.name, pod: pod.name } };
  };
  for (const ask of asks) {
    const pod = seen.pods.get(ask.name);
    results.set(ask, pod ? judge(pod, ask) : await seekElsewhere(ask, listed, around));
  }

  if (!isNew || (await ledger.write(reservations, call)) === "kept") return results;
  desk.leased.add(ref.uid);
  return { state: "learned" };
}

/** Longer than any webhook may take, and far from the end of a reservation. */
const RENEWED_AFTER_MS = 40_000;

/**
 * A reservation of our own that is young does for the same pod again: everybody has counted it since, and will. Drainers ask every
 * 5 seconds while a core PodDisruptionBudget says no after us. One of others' will not do: they might take it back.
 */
function renew(found: Reservation | undefined, next: Reservation): Reservation {
  if (found?.uid !== next.uid || found.by !== next.by) return next;
  return Date.parse(next.time) - Date.parse(found.time) < RENEWED_AFTER_MS ? found : next;
}
