import assert from "node:assert/strict";
import { test } from "node:test";
import { refusal } from "../api-error.ts";
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

test("an API error has the key tried again, later each time; a stopped queue handles nothing", async () => {
  const clock = manualClock(0);
  const times: number[] = [];
  const queue = createQueue(clock, 1, () => {
    times.push(clock.now());
    if (times.length < 4) throw refusal("Conflict", "try again");
  });
  queue.add("a");
  await clock.advance(1000);
  assert.deepEqual(times, [1, 6, 16, 36]);
  queue.add("a");
  queue.stop();
  await clock.advance(1000);
  assert.equal(times.length, 4);
  assert.equal(clock.pending(), 0);
});
