import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "./clock.ts";

test("a manual clock runs due timers in order of time, also those that a timer sets", async () => {
  const clock = manualClock(0);
  const ran: [string, number][] = [];
  clock.after(20, () => ran.push(["b", clock.now()]));
  clock.after(10, () => {
    ran.push(["a", clock.now()]);
    clock.after(15, () => ran.push(["c", clock.now()]));
  });
  const cancel = clock.after(12, () => ran.push(["never", clock.now()]));
  clock.after(31, () => ran.push(["later", clock.now()]));
  cancel();
  await clock.advance(30);
  assert.deepEqual(ran, [
    ["a", 10],
    ["b", 20],
    ["c", 25],
  ]);
  assert.equal(clock.now(), 30);
  assert.equal(clock.pending(), 1);
});

test("promises settle before the next timer runs", async () => {
  const clock = manualClock(0);
  const ran: string[] = [];
  clock.after(1, () => void Promise.resolve().then(() => clock.after(1, () => ran.push("chained"))));
  clock.after(3, () => ran.push("last"));
  await clock.advance(3);
  assert.deepEqual(ran, ["chained", "last"]);
});
