/** The pods of benchmarks say in all ways whether they are ready: servers differ in which of them they go by. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { podStatus } from "./fleet-objects.ts";

for (const ready of [true, false])
  it(`a pod that is ${ready ? "" : "not "}ready says so by its conditions and by its containers`, () => {
    const { conditions, containerStatuses } = podStatus(1, ready);
    const found = conditions.filter(({ type }) => type === "Ready" || type === "ContainersReady");
    assert.deepEqual(new Set(found.map(({ status }) => status)), new Set([ready ? "True" : "False"]));
    assert.equal(found.length, 2);
    assert.ok(containerStatuses.length > 0 && containerStatuses.every((one) => one.ready === ready));
  });
