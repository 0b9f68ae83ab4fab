import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "../clock.ts";
import { createQueue } from "./queue.ts";

test("a key that is added repeatedly is reconciled once, at the earliest requested time", async () => {
  const clock = manualClock(0);
  const reconciled: [string, number][] = [];
  const queue = createQueue(clock, 3, (key) => void reconciled.push([key, clock.now()]));
  queue.add("a", 100);
  queue.add("a");
  queue.add("a");
  queue.add("b", 50);
  queue.add("b", 80);
  await clock.advance(1000);
  assert.deepEqual(reconciled, [
    ["a", 3],
    ["b", 50],
  ]);
});

test("a key is requeued after the time that its reconciliation returned; a stopped queue reconciles nothing", async () => {
  const clock = manualClock(0);
  const times: number[] = [];
  const queue = createQueue(clock, 1, () => {
    times.push(clock.now());
    return times.length < 3 ? 10 : undefined;
  });
  queue.add("a");
  await clock.advance(1000);
  assert.deepEqual(times, [1, 11, 21]);
  queue.add("a");
  queue.stop();
  await clock.advance(1000);
  assert.equal(times.length, 3);
  assert.equal(clock.pending(), 0);
});
