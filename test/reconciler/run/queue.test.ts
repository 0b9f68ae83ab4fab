/** The queue of the groups' steps: whose turn it is, and what a pause keeps out. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { Queue, type Work } from "../../../reconciler/run/queue.ts";

/** A queue whose works end only when the test says so. */
function set({ atOnce = 32, ofNamespace = 8 } = {}) {
  const time = { now: 0 };
  const stop = new AbortController();
  const owed: string[] = [];
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const queue = new Queue({
    atOnce,
    ofNamespace,
    monotonic: () => time.now,
    signal: stop.signal,
    onOwed: () => void owed.push("tick"),
  });
  /** A tick whose work for a key is named after both. */
  const works = (keys: readonly string[], name = ""): Map<string, Work> =>
    new Map(
      keys.map((key) => [
        key,
        async () => {
          begun.push(`${name}${key}`);
          await new Promise<void>((resolve) => ends.set(key, resolve));
        },
      ]),
    );
  const tick = (keys: readonly string[], name = "") => {
    const state = { isDone: false };
    queue.pause();
    void queue.resume(works(keys, name)).then(() => (state.isDone = true));
    return state;
  };
  async function end(...keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      ends.get(key)?.();
      ends.delete(key);
    }
    await setImmediate();
  }
  const working = () => [...ends.keys()];
  return { time, stop, owed, begun, queue, works, tick, end, working };
}

const keysOf = (namespace: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${namespace}/${i}`);

describe("the queue", () => {
  it("works on 8 keys of a namespace at once, and on 32 of all; namespaces take turns", async () => {
    const { tick, begun, end, queue } = set();
    tick(["a", "b", "c", "d", "e"].flatMap((namespace) => keysOf(namespace, 10)));
    assert.equal(queue.size, 32);
    assert.deepEqual(begun.slice(0, 6), ["a/0", "b/0", "c/0", "d/0", "e/0", "a/1"]);
    await end("a/0");
    assert.deepEqual(begun.slice(32), ["c/6"], "the namespace whose turn is next, not the one that has a place free");
  });

  it("begins the keys of a namespace first in, first out", async () => {
    const { tick, begun, end } = set({ ofNamespace: 1 });
    tick(["a/2", "a/1", "a/3"]);
    await end("a/2");
    await end("a/1");
    assert.deepEqual(begun, ["a/2", "a/1", "a/3"]);
  });

  it("keeps a namespace that is full out of the others' way", async () => {
    const { tick, begun, queue } = set({ ofNamespace: 2 });
    tick([...keysOf("full", 500), "other/0"]);
    assert.deepEqual(begun, ["full/0", "other/0", "full/1"]);
    assert.deepEqual(queue.inPlaceOf("full"), ["full/0", "full/1"]);
    assert.deepEqual(queue.inPlaceOf("other"), ["full/0", "full/1", "other/0"]);
  });

  it("goes on, as a work ends, with what waits", async () => {
    const { tick, end, begun } = set({ ofNamespace: 1 });
    const first = tick(["a/0", "a/1"]);
    await end("a/0");
    assert.deepEqual([begun, first.isDone], [["a/0", "a/1"], false]);
    await end("a/1");
    assert.ok(first.isDone);
  });

  it("begins nothing while it is paused, and nothing before its first tick", async () => {
    const { tick, end, begun, queue, works } = set({ ofNamespace: 1 });
    tick(["a/0", "a/1"]);
    assert.deepEqual([...queue.pause()], ["a/0"]);
    await end("a/0");
    assert.deepEqual(begun, ["a/0"]);
    void queue.resume(works(["a/1"], "new "));
    assert.deepEqual(begun, ["a/0", "new a/1"]);
  });

  it("gives a key that waits the newest facts, at the place and the time that it had", async () => {
    const { time, tick, end, begun, queue } = set({ ofNamespace: 1 });
    tick(["a/0", "a/1", "a/2"]);
    time.now = 5000;
    tick(["a/2", "a/1", "a/0", "a/3"], "new ");
    assert.deepEqual([queue.waitsSince("a/1"), queue.waitsSince("a/3"), queue.waitsSince("a/0")], [0, 5000, undefined]);
    await end("a/0");
    await end("a/1");
    assert.deepEqual(begun, ["a/0", "new a/1", "new a/2"]);
  });

  it("forgets a key that is gone, and lets the tick go that waits for it", async () => {
    const { tick, end, begun } = set({ ofNamespace: 1 });
    const first = tick(["a/0", "a/1"]);
    tick(["a/0"]);
    await end("a/0");
    assert.deepEqual([begun, first.isDone], [["a/0"], true]);
  });
});

describe("a key that is worked on as a tick pauses the queue", () => {
  it("is left out, and the tick does not wait for it; it is owed another once its work ends", async () => {
    const { tick, end, begun, owed } = set();
    tick(["a/0"]);
    const second = tick(["a/0", "a/1"]);
    await end("a/1");
    assert.deepEqual([second.isDone, begun, owed], [true, ["a/0", "a/1"], []]);
    await end("a/0");
    assert.deepEqual([begun, owed], [["a/0", "a/1"], ["tick"]]);
  });

  it("is left out although its work ends before the tick goes on: the facts may be older than what it wrote", async () => {
    const { tick, end, begun, owed, queue, works } = set();
    tick(["a/0"]);
    queue.pause();
    await end("a/0");
    void queue.resume(works(["a/0", "a/1"]));
    assert.deepEqual([begun, owed], [["a/0", "a/1"], ["tick"]]);
    tick(["a/0"]);
    assert.deepEqual(begun, ["a/0", "a/1", "a/0"], "the next tick begins it");
  });

  it("is owed nothing if no tick came meanwhile", async () => {
    const { tick, end, owed } = set();
    tick(["a/0"]);
    await end("a/0");
    tick(["a/0"]);
    await end("a/0");
    assert.deepEqual(owed, []);
  });
});

describe("the end of the queue's time", () => {
  it("begins nothing more, lets the ticks go that wait for what waits, and is idle once the last work ends", async () => {
    const { tick, end, begun, queue, stop } = set({ ofNamespace: 1 });
    const first = tick(["a/0", "a/1"]);
    stop.abort();
    let isIdle = false;
    void queue.idle().then(() => (isIdle = true));
    await setImmediate();
    assert.ok(!isIdle);
    await end("a/0");
    assert.deepEqual([begun, first.isDone, isIdle, queue.size], [["a/0"], true, true, 0]);
    const late = tick(["b/0"]);
    await setImmediate();
    assert.deepEqual([begun, late.isDone], [["a/0"], true]);
  });
});

describe("a queue that ticks again and again", () => {
  it("never works twice on a key at once, nor above its limits, and lets no key overtake another twice", async () => {
    const limits = fc.record({ atOnce: fc.integer({ min: 1, max: 6 }), ofNamespace: fc.integer({ min: 1, max: 4 }) });
    const sizes = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 5 });
    const acts = fc.array(fc.oneof(fc.constant("tick" as const), fc.nat()), { minLength: 20, maxLength: 120 });
    await fc.assert(
      fc.asyncProperty(limits, sizes, acts, async (of, counts, played) => {
        const { tick, end, begun, working, queue } = set(of);
        const namespaces = counts.map((count, n) => keysOf(`ns-${n}`, count));
        /** How many works had begun as a key began to wait. */
        const waitsFrom = new Map<string, number>();
        for (const act of played) {
          const before = begun.length;
          if (act === "tick") tick(namespaces.flat());
          else if (working().length > 0) await end(working()[act % working().length] ?? "");
          assert.equal(queue.size, working().length, "a key is worked on twice");
          assert.ok(queue.size <= of.atOnce);
          for (const keys of namespaces) {
            assert.ok(keys.filter((key) => working().includes(key)).length <= of.ofNamespace);
            for (const key of keys) {
              if (queue.waitsSince(key) === undefined) waitsFrom.delete(key);
              else if (!waitsFrom.has(key)) waitsFrom.set(key, before);
              const since = begun.slice(waitsFrom.get(key) ?? Infinity).filter((other) => keys.includes(other));
              assert.equal(new Set(since).size, since.length, `${key} is overtaken twice`);
            }
          }
        }
      }),
      { numRuns: 100 },
    );
  });
});
