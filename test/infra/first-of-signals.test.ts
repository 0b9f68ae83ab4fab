import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { it } from "node:test";
import { firstOfSignals } from "../../infra/clock.ts";

const listenersOf = ({ signal }: AbortController): number => getEventListeners(signal, "abort").length;

it("the first signal that fires gives its reason, and none keeps a listener", () => {
  const [a, b] = [new AbortController(), new AbortController()];
  const first = firstOfSignals(a.signal, b.signal);
  assert.equal(first.aborted, false);
  b.abort("b");
  a.abort("a");
  assert.equal(first.reason, "b");
  assert.deepEqual([listenersOf(a), listenersOf(b)], [0, 0]);
});

it("of signals that have fired already, the first one given counts, and none gets a listener", () => {
  const [a, b, c] = [new AbortController(), new AbortController(), new AbortController()];
  b.abort("b");
  c.abort("c");
  assert.equal(firstOfSignals(a.signal, b.signal, c.signal).reason, "b");
  assert.deepEqual([listenersOf(a), listenersOf(b), listenersOf(c)], [0, 0, 0]);
});
