import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createSlots, visitEach } from "../../infra/slots.ts";

/** Visits numbers from 0 up to `count`, as they are asked for; `visit` takes a moment first. */
function play(count: number, atOnce: number, visit: (item: number) => void = () => {}) {
  const stop = new AbortController();
  const begun: number[] = [];
  let inFlight = 0;
  let most = 0;
  function* items(): Generator<number> {
    for (let item = 0; item < count; item++) yield item;
  }
  const done = visitEach(items(), { atOnce, signal: stop.signal }, async (item) => {
    begun.push(item);
    most = Math.max(most, ++inFlight);
    await new Promise(setImmediate);
    inFlight--;
    visit(item);
  });
  return { done, stop, begun, most: () => most };
}

describe("visiting each", () => {
  for (const [count, most] of [
    [0, 0],
    [2, 2],
    [9, 3],
  ] as const)
    it(`takes ${count} items in their order, ${most} at once of at most 3`, async () => {
      const stage = play(count, 3);
      await stage.done;
      assert.deepEqual(stage.begun, [...Array(count).keys()]);
      assert.equal(stage.most(), most);
    });

  it("begins nothing after the first visit that throws, however many there are", async () => {
    const stage = play(2 ** 31, 3, (item) => {
      if (item === 4) throw new Error("no");
    });
    await assert.rejects(stage.done, /no/);
    const begun = stage.begun.length;
    await new Promise(setImmediate);
    assert.equal(stage.begun.length, begun);
    assert.ok(begun <= 7, `${begun} were begun`);
  });

  it("does so for arrays, too, whose iterators know no end but their own", async () => {
    const begun: number[] = [];
    const visits = visitEach([0, 1, 2, 3, 4, 5], { atOnce: 2 }, async (item) => {
      begun.push(item);
      await new Promise(setImmediate);
      if (item === 0) throw new Error("no");
    });
    await assert.rejects(visits, /no/);
    await new Promise(setImmediate);
    assert.deepEqual(begun, [0, 1]);
  });

  it("takes nothing more once the signal fires, and resolves when what was begun is over", async () => {
    const stage = play(2 ** 31, 3);
    stage.stop.abort();
    await stage.done;
    assert.deepEqual(stage.begun, [0, 1, 2]);
  });

  it("takes nothing under a signal that has fired", async () => {
    const begun: number[] = [];
    await visitEach([0, 1], { atOnce: 2, signal: AbortSignal.abort() }, async (item) => void begun.push(item));
    assert.deepEqual(begun, []);
  });
});

describe("slots", () => {
  it("are given to keys in turns, and within a key in the order of the calls", async () => {
    const slots = createSlots(1);
    const first = await slots.take();
    const served: string[] = [];
    const enter = async (key: string, name: string): Promise<void> => {
      using _slot = await slots.take(undefined, key);
      served.push(name);
      await Promise.resolve();
    };
    const all = ["a1", "a2", "a3", "b1", "a4", "c1", "b2"].map((name) => enter(name.charAt(0), name));
    first[Symbol.dispose]();
    await Promise.all(all);
    assert.deepEqual(served, ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
  });

  it("pass over one that gave up, and are free again in the end", async () => {
    const slots = createSlots(1);
    const first = await slots.take();
    const stop = new AbortController();
    const given = assert.rejects(slots.take(stop.signal, "a"), /cancelled/);
    const next = slots.take(undefined, "b");
    stop.abort();
    await given;
    first[Symbol.dispose]();
    (await next)[Symbol.dispose]();
    (await slots.take())[Symbol.dispose]();
  });
});
