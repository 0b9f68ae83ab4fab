/** Steps that outlast their tick. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createSteps, MAX_SLOW, MAX_SLOW_OF_NAMESPACE, type StepResult } from "../../../reconciler/run/steps.ts";
import { manualClock } from "../../emulator/clock.ts";
import { clockOf } from "../stage.ts";

function set() {
  const time = manualClock();
  const late: StepResult[] = [];
  const steps = createSteps({ clock: clockOf(time), onLate: (result) => void late.push(result) });
  /** Starts a step; returns how to end it, and whether the tick still waits for it. */
  const begin = (key: string) => {
    const { promise, resolve } = Promise.withResolvers<StepResult>();
    const state = { isWaiting: true, begun: 0, end: () => resolve({ acted: true }) };
    void steps
      .start(key, () => {
        state.begun++;
        return promise;
      })
      .then(() => (state.isWaiting = false));
    return state;
  };
  return { time, late, steps, begin };
}

describe("a step", () => {
  it("that ends within a second belongs to its tick", async () => {
    const { time, late, steps, begin } = set();
    const one = begin("ns/a");
    await time.advance(900);
    assert.deepEqual([one.isWaiting, [...steps.underWay()]], [true, ["ns/a"]]);
    one.end();
    await time.advance(0);
    assert.deepEqual([one.isWaiting, steps.underWay().size, steps.take(), late], [false, 0, [{ acted: true }], []]);
    assert.deepEqual([steps.take(), time.pending()], [[], 0], "a result is taken once, and no timer is left");
  });

  it("that takes longer is left behind, and is told of once it is done", async () => {
    const { time, late, steps, begin } = set();
    const one = begin("ns/a");
    await time.advance(1000);
    assert.deepEqual([one.isWaiting, steps.take(), steps.underWay().size], [false, [], 1]);
    one.end();
    await steps.idle();
    assert.deepEqual([steps.take(), late, steps.underWay().size], [[{ acted: true }], [{ acted: true }], 0]);
  });

  it("is not begun while another of its key is under way", async () => {
    const { time, steps, begin } = set();
    begin("ns/a");
    await time.advance(5000);
    const again = begin("ns/a");
    await time.advance(0);
    assert.deepEqual([again.begun, again.isWaiting, steps.underWay().size], [0, false, 1]);
  });

  it("has no room beside 8 slow ones of its namespace, or 64 of all; those that are not slow do not count", async () => {
    const { time, steps, begin } = set();
    const own = Array.from({ length: MAX_SLOW_OF_NAMESPACE }, (_, i) => begin(`a/${i}`));
    assert.ok(steps.hasRoom("a"));
    await time.advance(1000);
    assert.deepEqual([steps.hasRoom("a"), steps.hasRoom("b")], [false, true]);
    own[0]?.end();
    await time.advance(0);
    assert.ok(steps.hasRoom("a"));
    for (let i = 1; i < MAX_SLOW; i++) begin(`b${i}/x`);
    await time.advance(1000);
    assert.deepEqual([steps.hasRoom("a"), steps.hasRoom("c")], [false, false]);
  });
});

describe("an error of a slow step", () => {
  it("is a failed result, and is told", async () => {
    const time = manualClock();
    const late: unknown[] = [];
    const steps = createSteps({ clock: clockOf(time), onLate: (result, more) => void late.push([result, more]) });
    const { promise, reject } = Promise.withResolvers<StepResult>();
    void steps.start("ns/a", () => promise);
    await time.advance(1000);
    const error = new Error("broken");
    reject(error);
    await steps.idle();
    const failed = { acted: false, failed: true };
    assert.deepEqual([steps.take(), late], [[failed], [[failed, { key: "ns/a", error }]]]);
  });

  it("is the tick's while the step is not slow", async () => {
    const { late, steps } = set();
    await assert.rejects(
      steps.start("ns/a", () => Promise.reject(new Error("broken"))),
      /broken/,
    );
    assert.deepEqual([steps.take(), late], [[], []]);
  });
});
