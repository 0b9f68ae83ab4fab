/** The emulator's only source of time: the real clock for `npm start`, a manual one in tests. */
import { setImmediate } from "node:timers/promises";

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * Runs `run` once, `ms` milliseconds from now, at the earliest in a later turn of the event loop. Returns a
   * function that cancels it.
   */
  after(ms: number, run: () => void): () => void;
}

/** Timers neither keep the process alive nor end it when they throw. Node's timers last at most 24 days. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, run) => {
    const attempt = (): void => {
      try {
        run();
      } catch (error) {
        process.emitWarning(String(error));
      }
    };
    const timer = setTimeout(attempt, Math.min(ms, 2 ** 31 - 1)).unref();
    return () => clearTimeout(timer);
  },
};

export type ManualClock = ReturnType<typeof manualClock>;

/** Starts at `startMs`; only `advance` moves it. */
export function manualClock(startMs = Date.UTC(2026, 0, 1)) {
  let time = startMs;
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  const nextDue = (): number => [...timers].reduce((next, { at }) => Math.min(next, at), Infinity);
  return {
    now: (): number => time,
    after: (ms: number, run: () => void): (() => void) => {
      const timer = { at: time + Math.max(0, ms), run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    /**
     * Moves the time on by `ms` and runs due timers in order of time, also those that are set during the
     * advance.
     */
    advance: async (ms: number): Promise<void> => {
      const end = time + ms;
      await settle();
      for (let due = nextDue(); due <= end; due = nextDue()) {
        time = Math.max(time, due);
        // Timers that are due at the same moment run together, as they would in one turn of the event loop.
        for (const timer of timers) if (timer.at <= time && timers.delete(timer)) timer.run();
        await settle();
      }
      time = end;
    },
  };
}

/** Lets promises settle and pending I/O complete: a few turns of the event loop. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await setImmediate();
}
