/**
 * Asks a budget for a disruption and reserves it, for the eviction webhook and the rollout alike: nothing is disrupted twice on one budget,
 * however many processes ask (§13.1). Those that wait in one process for the same budget share an attempt; budgets do not wait for each other.
 *
 *   ask --what blocked last blocks still--> denied, without a list
 *       --budget not known yet: list of budgets--> next attempt of its budget --> decided
 *                                                                             --outrun--> a random pause --> ask again, until the deadline: "not now"
 */
import { type Deadline, startDeadline } from "../../infra/deadline.ts";
import { isTransient, RolloutError } from "../../infra/errors.ts";
import type { Call } from "../../infra/kubernetes/cluster.ts";
import { type Attempt, budgetKey, decided, type Desk, type Held, remaining, type TimedAsk } from "./ask.ts";
import { attempt, callWithin, readBudgets } from "./attempt.ts";
import { verdict, type Verdict } from "../budget/verdict.ts";
import { createDenyAgain } from "./deny-again.ts";
import { chooseBudget, hintKey } from "./find-budget.ts";
import type { ListedBudget } from "./gather-budget.ts";
import { groupBy } from "../model/order.ts";
import { withdraw } from "./withdraw.ts";

export interface Decided {
  readonly verdict: Verdict;
  /** Set if something was reserved. */
  readonly held?: Held | undefined;
  /** Why there is no better verdict than `NotNow`. */
  readonly cause?: unknown;
}

export interface Reserver {
  /** Never rejects. */
  readonly reserve: (ask: TimedAsk) => Promise<Decided>;
  /** Takes a reservation back after its pod could not be deleted; what goes wrong is left to its expiry. */
  readonly withdraw: (held: Held, call: Call) => Promise<void>;
}

export interface ReserverOptions extends Omit<Desk, "hints" | "looks" | "leased"> {
  /** From 0 to 1. */
  readonly random: () => number;
}

export const NOT_NOW = "no decision could be made in time, try again";

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;
/** An attempt lasts no longer, however patient those are who ask. */
const LONGEST_ATTEMPT_MS = 60_000;
/** Rounds without a pause: each has learned where to look. */
const MOST_LESSONS = 3;

interface Waiting {
  readonly ask: TimedAsk;
  readonly settle: (result: Attempt) => void;
}

/** Where asks wait: for an attempt at one budget, or for somebody to find out which budget it is. */
interface Place {
  readonly namespace: string;
  /** "" if it is not known yet. */
  readonly budget: string;
}

export function createReserver(options: ReserverOptions): Reserver {
  const { clock, random } = options;
  const desk: Desk = { ...options, hints: new Map(), looks: new Map(), leased: new Set() };
  const denyAgain = createDenyAgain(desk);
  const queues = new Map<string, Waiting[]>();

  async function tryOnce(ask: TimedAsk): Promise<Attempt> {
    if (remaining(ask, clock) <= 0) return { state: "outrun" };
    const again = ask.rollout ? undefined : await denyAgain(ask, remaining(ask, clock)).catch(() => undefined);
    if (again) return decided(again);
    const place = { namespace: ask.namespace, budget: desk.hints.get(hintKey(ask) ?? "") ?? "" };
    return new Promise((settle) => enqueue(place, [{ ask, settle }]));
  }

  function enqueue(place: Place, waiting: readonly Waiting[], budgets?: readonly ListedBudget[]): void {
    const queue = queues.get(budgetKey(place.namespace, place.budget));
    if (queue) queue.push(...waiting);
    else void workOff(place, [...waiting], budgets);
  }

  async function workOff(place: Place, queue: Waiting[], known: readonly ListedBudget[] | undefined): Promise<void> {
    const key = budgetKey(place.namespace, place.budget);
    queues.set(key, queue);
    let budgets = known;
    // Those that come in the same moment share the first attempt.
    await Promise.resolve();
    while (queue.length > 0) {
      const batch = queue.splice(0);
      const from = clock.monotonic();
      await serve(place, batch, budgets);
      budgets = undefined;
      if (batch.length > 1) await clock.sleep(lingerMs(clock.monotonic() - from));
    }
    queues.delete(key);
  }

  /** The most patient one's deadline: a single impatient ask must not fail the others'. Each is answered for by its own. */
  async function serve(place: Place, batch: readonly Waiting[], budgets: readonly ListedBudget[] | undefined): Promise<void> {
    const patience = Math.max(...batch.map(({ ask }) => remaining(ask, clock)));
    using deadline = startDeadline(Math.min(patience, LONGEST_ATTEMPT_MS));
    try {
      if (place.budget === "") return await direct(place, batch, deadline);
      const answers = await attempt({ ...place, asks: batch.map(({ ask }) => ask), budgets }, desk, deadline);
      for (const { ask, settle } of batch) settle(answers.get(ask) ?? { state: "outrun" });
    } catch (error) {
      for (const { settle } of batch) settle({ state: "outrun", error });
    }
  }

  /** Sends each ask on to the budget that its pod is under. */
  async function direct({ namespace }: Place, batch: readonly Waiting[], deadline: Deadline): Promise<void> {
    const budgets = await readBudgets(namespace, desk, deadline);
    const around = { budgets, desk, call: callWithin(deadline) };
    const chosen = batch.map(async (one) => {
      const budget = await chooseBudget(one.ask, around).catch((error: unknown): Attempt => ({ state: "outrun", error }));
      if ("state" in budget) one.settle(budget);
      return { one, name: "state" in budget ? "" : budget.ref.name };
    });
    const found = (await Promise.all(chosen)).filter(({ name }) => name !== "");
    for (const [budget, members] of groupBy(found, ({ name }) => name))
      enqueue(
        { namespace, budget },
        members.map(({ one }) => one),
        budgets,
      );
  }

  return {
    async reserve(ask) {
      let pause = FIRST_PAUSE_MS;
      for (let lessons = 0; ;) {
        const result = await tryOnce(ask);
        if (result.state === "decided") return result;
        const error = result.state === "outrun" ? result.error : undefined;
        if (error !== undefined && !isTransient(error)) return notNow(error);
        if (result.state === "outrun" || ++lessons > MOST_LESSONS) {
          await clock.sleep(Math.min(random() * pause, remaining(ask, clock)), ask.signal);
          pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
        }
        if (remaining(ask, clock) <= 0) return notNow(error ?? new RolloutError("Conflict", "others were always first"));
      }
    },
    withdraw: (held, call) => withdraw(desk, held, call),
  };
}

const SHORTEST_LINGER_MS = 2;
const LONGEST_LINGER_MS = 25;

/** Who asks together is answered together, and asks for the next pods together: otherwise the first of them would go ahead alone, and the others wait for two attempts. */
function lingerMs(attemptMs: number): number {
  return Math.min(Math.max(SHORTEST_LINGER_MS, attemptMs / 10), LONGEST_LINGER_MS);
}

function notNow(cause: unknown): Decided {
  return { verdict: verdict("NotNow", NOT_NOW), cause };
}
