/** The emulator's only source of time: real for `npm start`, moved by hand in tests. */
import { setImmediate } from "node:timers/promises";

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs `run` once, `ms` milliseconds from now (at the earliest in a later turn); the answer cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** Timers do not keep the process alive, nor do they end it when they fail. Longer than 24 days Node cannot wait. */
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

/** Starts at `startMs`; stands still but for `advance`. */
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
    /** Moves the time on by `ms`, running what falls due in order of time; work that they start may fall due within the same advance. */
    advance: async (ms: number): Promise<void> => {
      const end = time + ms;
      await settle();
      for (let due = nextDue(); due <= end; due = nextDue()) {
        time = Math.max(time, due);
        // All that fall due at one moment run in one go, as they would in one turn of the event loop.
        for (const timer of timers) if (timer.at <= time && timers.delete(timer)) timer.run();
        await settle();
      }
      time = end;
    },
    /** Timers that wait. */
    pending: (): number => timers.size,
  };
}

/** Lets promises and I/O that is already there be dealt with: a few turns of the event loop. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await setImmediate();
}
