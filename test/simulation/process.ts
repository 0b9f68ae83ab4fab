/** A process of the world: its clock, its life, and its events, which end with it and wait while it is frozen. */
import type { Clock } from "../../infra/clock.ts";
import type { Schedule } from "./schedule.ts";

export interface Process {
  readonly name: string;
  readonly clock: Required<Omit<Clock, "wall">>;
  readonly isAlive: () => boolean;
  /** Drops all that it would still do. */
  readonly kill: () => void;
  /** Nothing of it happens for `ms`. */
  readonly freeze: (ms: number) => void;
  /** For how long it has been frozen since then, at most. */
  readonly stoodStillMs: (since: number) => number;
  /** Runs `run` in the process in `ms`, unless it has died; later if it is frozen then. */
  readonly after: (ms: number, run: () => void) => () => void;
  readonly onDeath: (run: () => void) => void;
}

/** Its wall clock is ahead of the world's by `skewMs`; if it `suspends`, its monotonic one stops while it is frozen. */
export function createProcess(schedule: Schedule, name: string, skewMs: number, suspends = false): Process {
  const born = schedule.now();
  const deaths: (() => void)[] = [];
  let alive = true;
  let [frozenSince, frozenUntil, stoodMs] = [0, 0, 0];
  const monotonic = (): number => {
    const now = schedule.now();
    return now - born - (suspends ? stoodMs + Math.max(0, Math.min(now, frozenUntil) - frozenSince) : 0);
  };
  const after = (ms: number, run: () => void): (() => void) => {
    let cancel = schedule.after(ms, attempt);
    function attempt(): void {
      if (!alive) return;
      const left = frozenUntil - schedule.now();
      if (left > 0) cancel = schedule.after(left, attempt);
      else run();
    }
    return () => cancel();
  };
  const sleep: Clock["sleep"] = (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const cancel = after(ms, done);
      signal?.addEventListener("abort", done, { once: true });
      function done(): void {
        cancel();
        signal?.removeEventListener("abort", done);
        resolve();
      }
    });
  return {
    name,
    clock: { now: () => schedule.now() + skewMs, monotonic, sleep, after },
    isAlive: () => alive,
    kill() {
      alive = false;
      for (const run of deaths.splice(0)) run();
    },
    freeze(ms) {
      const now = schedule.now();
      if (now >= frozenUntil) [frozenSince, stoodMs] = [now, stoodMs + frozenUntil - frozenSince];
      frozenUntil = Math.max(frozenUntil, now + ms);
    },
    stoodStillMs: (since) => Math.max(0, frozenUntil - since),
    after,
    onDeath: (run) => void deaths.push(run),
  };
}
