import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { manualClock } from "./clock.ts";
import { createStore } from "./store.ts";
import type { KubeObject, Store } from "./store.ts";
import { make } from "../builders/objects.ts";

const object = (name: string, data: number) => make("ConfigMap", name, { namespace: "n", data: { data } });

function step(store: Store, name: string, data: number): void {
  const existing = store.get("configmaps", "n", name);
  if (!existing) store.create("configmaps", object(name, data));
  else if (data === 0) store.remove("configmaps", "n", name);
  else store.update("configmaps", object(name, data));
}

test("a list as of an earlier version equals the list at that version, for any history", () => {
  const steps = fc.array(fc.tuple(fc.constantFrom("a", "b", "c", "d"), fc.nat(3)), { maxLength: 40 });
  fc.assert(
    fc.property(steps, (history) => {
      const store = createStore(manualClock());
      const seen = new Map<number, readonly KubeObject[]>([[0, []]]);
      for (const [name, data] of history) {
        step(store, name, data);
        seen.set(store.version(), store.list("configmaps"));
      }
      for (const [version, objects] of seen) assert.deepEqual(store.list("configmaps", undefined, version), objects);
    }),
    { numRuns: 100 },
  );
});

test("the events since a version lead from that version's list to the current one", () => {
  const store = createStore(manualClock());
  for (const name of ["a", "b"]) step(store, name, 1);
  const from = store.version();
  step(store, "a", 2);
  step(store, "b", 0);
  step(store, "c", 3);
  assert.deepEqual(
    store.eventsSince(from).map(({ type, object: { metadata } }) => `${type} ${metadata.name}`),
    ["MODIFIED a", "DELETED b", "ADDED c"],
  );
});

test("a version older than the history has expired", () => {
  const store = createStore(manualClock(), 2);
  for (let i = 1; i <= 10; i++) step(store, "a", i);
  assert.throws(() => store.eventsSince(1), { name: "ApiError", message: /too old resource version/ });
  assert.equal(store.eventsSince(9).length, 1);
});

test("stored objects cannot be mutated", () => {
  const store = createStore(manualClock());
  const stored = store.create("configmaps", object("a", 1));
  assert.throws(() => Object.assign(stored.metadata, { name: "b" }), TypeError);
});
