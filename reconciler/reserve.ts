/**
 * Asks a budget for a disruption and reserves it, for the eviction webhook and the rollout alike: nothing is disrupted twice on one budget,
 * however many processes ask [13.1]. Those that wait in one process share an attempt.
 *
 *   ask --next attempt of its namespace--> decided
 *                                      --outrun--> a random pause --> ask again, until the deadline: then "not now"
 */
import type { Clock } from "../infra/clock.ts";
import type { Call } from "../infra/cluster.ts";
import { hasCode, RolloutError } from "../infra/errors.ts";
import type { Ask, Attempt, Desk, Held } from "./ask.ts";
import { attempt } from "./attempt.ts";
import { verdict, type Verdict } from "./budget/verdict.ts";
import { withdraw } from "./withdraw.ts";

/** An ask that has to be answered in time. */
export interface TimedAsk extends Ask {
  /** By `clock.monotonic`, milliseconds. */
  readonly deadlineAt: number;
  readonly signal?: AbortSignal;
}

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

export interface ReserverOptions extends Omit<Desk, "freshness" | "hints" | "leased"> {
  /** From 0 to 1. */
  readonly random: () => number;
}

export const NOT_NOW = "no decision could be made in time, try again";

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;
const LINGER_MS = 2;

interface Waiting {
  readonly ask: TimedAsk;
  readonly settle: (result: Attempt) => void;
}

export function createReserver(options: ReserverOptions): Reserver {
  const { clock, random } = options;
  const desk: Desk = { ...options, freshness: new Map(), hints: new Map(), leased: new Set() };
  const queues = new Map<string, Waiting[]>();

  /** The ask's part in the next attempt of its namespace. */
  function enqueue(ask: TimedAsk): Promise<Attempt> {
    return new Promise((settle) => {
      const queue = queues.get(ask.namespace);
      if (queue) queue.push({ ask, settle });
      else void workOff(ask.namespace, [{ ask, settle }]);
    });
  }

  async function workOff(namespace: string, queue: Waiting[]): Promise<void> {
    queues.set(namespace, queue);
    // Those that come in the same moment share the first attempt.
    await Promise.resolve();
    while (queue.length > 0) {
      const batch = queue.splice(0).filter((one) => {
        if (!isOver(one.ask, clock)) return true;
        one.settle({ state: "outrun" });
        return false;
      });
      if (batch.length > 0) await serve(namespace, batch);
      // Who asks together is answered together, and asks for the next pods together: otherwise the first of them would go ahead alone.
      if (batch.length > 1) await clock.sleep(LINGER_MS);
    }
    queues.delete(namespace);
  }

  async function serve(namespace: string, batch: readonly Waiting[]): Promise<void> {
    // The most patient one's: a single impatient ask must not fail the others'. Each is answered for by its own deadline.
    const deadlineMs = Math.max(...batch.map(({ ask }) => ask.deadlineAt)) - clock.monotonic();
    const asks = batch.map(({ ask }) => ask);
    const results = await attempt(namespace, asks, desk, { deadlineMs }).catch((error: unknown) => error);
    for (const { ask, settle } of batch) {
      const result: Attempt | undefined = results instanceof Map ? results.get(ask) : undefined;
      settle(result ?? { state: "outrun", error: results });
    }
  }

  return {
    async reserve(ask) {
      for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
        const result = await enqueue(ask);
        if (result.state === "decided") return result;
        const error = result.state === "outrun" ? result.error : undefined;
        if (error !== undefined && !isPassing(error)) return notNow(error);
        if (result.state === "outrun") await clock.sleep(Math.min(random() * pause, remaining(ask, clock)), ask.signal);
        if (isOver(ask, clock)) return notNow(error ?? new RolloutError("Conflict", "others were always first"));
      }
    },
    withdraw: (held, call) => withdraw(desk, held, call),
  };
}

const remaining = ({ deadlineAt }: TimedAsk, clock: Clock): number => Math.max(0, deadlineAt - clock.monotonic());

const isOver = (ask: TimedAsk, clock: Clock): boolean => ask.signal?.aborted === true || remaining(ask, clock) <= 0;

/** A lease of our own that is gone, or a budget: gathered anew, all may be different. */
function isPassing(error: unknown): boolean {
  return error instanceof RolloutError && (error.retryable || hasCode(error, "NotFound"));
}

function notNow(cause: unknown): Decided {
  return { verdict: verdict("NotNow", NOT_NOW), cause };
}
