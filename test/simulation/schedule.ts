/**
 * Virtual time: every step of the world is an event with a time, and one event runs at a time.
 *
 *   the earliest event (of those at one time the one set first) -> set the time -> run it -> all promises settle -> ...
 */

export interface Schedule {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs `run` in `ms`; returns a function that cancels it. */
  after(ms: number, run: () => void): () => void;
  /** No event runs before this promise has settled, which the machine settles: no time passes for it. */
  waitFor(work: Promise<unknown>): void;
  /** Runs the events until this time; resolves with the number of events. */
  runUntil(time: number): Promise<number>;
}

interface Event {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

const START = Date.UTC(2026, 0, 1);

/** `start` in milliseconds since the epoch. */
export function createSchedule(start = START): Schedule {
  const heap: Event[] = [];
  let time = start;
  let order = 0;
  const working = new Set<Promise<unknown>>();

  /** Every promise that can settle has settled once the event loop comes round. */
  async function settle(): Promise<void> {
    await comeRound();
    while (working.size > 0) {
      await Promise.allSettled(working);
      await comeRound();
    }
  }

  return {
    waitFor(work) {
      working.add(work);
      const forget = (): void => void working.delete(work);
      work.then(forget, forget);
    },
    now: () => time,
    after(ms, run) {
      const event: Event = { at: time + Math.max(0, Math.ceil(ms)), order: order++, run };
      push(heap, event);
      return () => void (event.run = undefined);
    },
    async runUntil(end) {
      let events = 0;
      await settle();
      for (let next = heap[0]; next && next.at <= end; next = heap[0]) {
        pop(heap);
        if (!next.run) continue;
        time = next.at;
        next.run();
        events++;
        await comeRound();
        if (working.size > 0) await settle();
      }
      time = end;
      return events;
    },
  };
}

const comeRound = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

function push(heap: Event[], event: Event): void {
  let i = heap.push(event) - 1;
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (isBefore(heap[parent] as Event, event)) break;
    heap[i] = heap[parent] as Event;
    i = parent;
  }
  heap[i] = event;
}

function pop(heap: Event[]): void {
  const last = heap.pop();
  if (!last || heap.length === 0) return;
  let i = 0;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
    if (isBefore(last, heap[child] as Event)) break;
    heap[i] = heap[child] as Event;
    i = child;
  }
  heap[i] = last;
}
