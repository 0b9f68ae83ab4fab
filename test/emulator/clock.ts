/** The emulator's only source of time: real for `npm start`, moved by hand in tests. */
import { setImmediate } from "node:timers/promises";

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs `run` once, `ms` milliseconds from now (at the earliest in a later turn); the answer cancels it. */
  after(ms: number, run: () => void): () => void;
}

export interface ManualClock extends Clock {
  /** Moves the time on by `ms`, running what falls due in order of time; work that they start may fall due within the same advance. */
  advance(ms: number): Promise<void>;
  /** Timers that wait. */
  pending(): number;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** Timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** Starts at `startMs`; stands still but for `advance`. */
export function manualClock(startMs = Date.UTC(2026, 0, 1)): ManualClock {
  let time = startMs;
  const timers = new Set<Timer>();
  const nextDue = (end: number): Timer | undefined => {
    let next: Timer | undefined;
    for (const timer of timers) if (timer.at <= end && (!next || timer.at < next.at)) next = timer;
    return next;
  };
  return {
    now: () => time,
    after: (ms, run) => {
      const timer = { at: time + Math.max(0, ms), run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance: async (ms) => {
      const end = time + ms;
      await settle();
      for (let due = nextDue(end); due; due = nextDue(end)) {
        time = Math.max(time, due.at);
        // All that fall due at one moment run in one go, as they would in one turn of the event loop.
        for (const timer of timers) {
          if (timer.at > time) continue;
          timers.delete(timer);
          timer.run();
        }
        await settle();
      }
      time = end;
    },
    pending: () => timers.size,
  };
}

/** Lets promises and I/O that is already there be dealt with: a few turns of the event loop. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await setImmediate();
}
