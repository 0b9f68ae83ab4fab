import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "../clock.ts";
import { createQueue } from "./queue.ts";

test("a key that is added often is handled once, at the earliest moment asked for", async () => {
  const clock = manualClock(0);
  const handled: [string, number][] = [];
  const queue = createQueue(clock, 3, (key) => void handled.push([key, clock.now()]));
  queue.add("a", 100);
  queue.add("a");
  queue.add("a");
  queue.add("b", 50);
  queue.add("b", 80);
  await clock.advance(1000);
  assert.deepEqual(handled, [
    ["a", 3],
    ["b", 50],
  ]);
});

test("a key is handled again after the time that its handling asked for; a stopped queue handles nothing", async () => {
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
