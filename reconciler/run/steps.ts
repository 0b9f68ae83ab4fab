/**
 * The steps of groups that are under way, over all ticks of a session: a tick does not wait for its slowest group.
 *
 *   free --a tick starts its step--> under way --done--> its result belongs to the next tick that ends
 *                                       |
 *                                       +-- for longer than a second: slow. Its place goes to the next group, the tick ends without it, and the
 *                                           ticks that follow leave the group out until it is done
 */
import type { Clock } from "../../infra/clock.ts";
import type { Outcome, PhasedList } from "../model/outcome.ts";

/** The result of a step. */
export interface StepResult {
  /** Undefined for a step that belongs to no group. */
  readonly outcome?: Outcome;
  /** Something was written that the cluster will react to: the next tick follows at once. */
  readonly acted: boolean;
  /** When its next check is due, milliseconds since the epoch. */
  readonly dueAt?: number | undefined;
  readonly failed?: boolean;
  /** The lists of PhasedRollouts, of the step that reads them. */
  readonly lists?: readonly PhasedList[];
}

export interface Steps {
  /**
   * The keys of the steps under way. Call it before reading the facts for new steps: a step that ends during the read
   * has changed them, so its group is left to the next tick.
   */
  readonly underWay: () => ReadonlySet<string>;
  /** True if another group, of the namespace if one is given, may be begun: the limit of slow ones is not reached. */
  readonly hasRoom: (namespace?: string) => boolean;
  /** True if a tick that began then, by `clock.monotonic`, may begin further groups. */
  readonly hasTime: (tickBeganAt: number) => boolean;
  /**
   * Starts a step, unless one of that key is under way. Resolves once it is done or slow; rejects with its error if it
   * is not slow: a slow one has failed then.
   */
  readonly start: (key: string, work: () => Promise<StepResult>) => Promise<void>;
  /** The results since the last call. */
  readonly take: () => readonly StepResult[];
  /** Resolves once no step is under way; never rejects. */
  readonly idle: () => Promise<void>;
}

export interface StepsOptions {
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  /** Called with the result of each slow step, and with its error if it rejected. */
  readonly onLate: (result: StepResult, late: { readonly key: string; readonly error?: unknown }) => void;
}

/** Milliseconds after which a step is slow, and in which a tick begins groups. */
const SLOW_MS = 1000;
const BEGIN_FOR_MS = 5000;
/**
 * No step is begun beside this many slow ones: one limit per namespace, so that its users cannot delay others, and one
 * for all. The others that a tick has begun meanwhile, 7 at most, may become slow as well.
 */
export const MAX_SLOW_OF_NAMESPACE = 8;
export const MAX_SLOW = 64;

interface Step {
  readonly done: Promise<void>;
  isSlow: boolean;
}

export const namespaceOf = (key: string): string => key.slice(0, key.indexOf("/"));

/** For ticks that follow each other under one Lease. */
export function createSteps({ clock, onLate }: StepsOptions): Steps {
  const running = new Map<string, Step>();
  let results: { result: StepResult }[] = [];
  /** The last result by key. */
  const latest = new Map<string, { result: StepResult }>();
  const push = (key: string, result: StepResult): void => {
    const entry = { result };
    results.push(entry);
    latest.set(key, entry);
  };

  /** Resolves with true if the step is done in time. */
  async function isDoneSoon(done: Promise<void>): Promise<boolean> {
    const ended = new AbortController();
    const late = clock.sleep(SLOW_MS, ended.signal).then(() => false);
    return await Promise.race([done.then(() => true), late]).finally(() => ended.abort("done"));
  }

  return {
    underWay: () => new Set(running.keys()),
    hasRoom(namespace) {
      const slow = [...running].filter(([, { isSlow }]) => isSlow);
      const own = slow.filter(([key]) => namespaceOf(key) === namespace);
      return slow.length < MAX_SLOW && own.length < MAX_SLOW_OF_NAMESPACE;
    },
    hasTime: (tickBeganAt) => clock.monotonic() - tickBeganAt < BEGIN_FOR_MS,
    async start(key, work) {
      if (running.has(key)) return;
      // The new step asks its check: the tick that takes the earlier result over need not wait for it.
      const earlier = latest.get(key);
      if (earlier) earlier.result = { ...earlier.result, dueAt: undefined };
      const done = work()
        .then((result) => {
          push(key, result);
          if (step.isSlow) onLate(result, { key });
        })
        .catch((error: unknown) => {
          if (!step.isSlow) throw error;
          const result = { acted: false, failed: true };
          push(key, result);
          onLate(result, { key, error });
        })
        .finally(() => running.delete(key));
      const step: Step = { done, isSlow: false };
      running.set(key, step);
      step.isSlow = !(await isDoneSoon(done));
    },
    take() {
      const taken = results.map(({ result }) => result);
      results = [];
      latest.clear();
      return taken;
    },
    idle: async () => void (await Promise.allSettled([...running.values()].map(({ done }) => done))),
  };
}

/** For a single tick, which waits for all of its steps. */
export function createPatientSteps(): Steps {
  const results: StepResult[] = [];
  return {
    underWay: () => new Set(),
    hasRoom: () => true,
    hasTime: () => true,
    start: async (_key, work) => void results.push(await work()),
    take: () => results,
    idle: async () => {},
  };
}
