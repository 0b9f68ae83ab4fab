import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ZoneWithPods } from "../../reconciler/model/zone.ts";
import type { KubeObject, StoreEvent } from "../emulator/store.ts";
import { LAST, podObject, PREVIOUS, zone } from "../reconciler/builders.ts";
import { advance, summarise, type Progress } from "./progress.ts";

const settled = ["zone-a", "zone-b"].map((name) => zone({ name }));
const rolling = ["zone-a", "zone-b"].map((name) =>
  zone({ name, at: PREVIOUS, currentRevision: PREVIOUS, updateRevision: LAST }),
);

const removed = (set: string, revision: string): StoreEvent => ({
  type: "DELETED",
  resource: "pods",
  object: podObject(set, 0, { revision }) as KubeObject,
});
const changed: StoreEvent = { ...removed("zone-a", LAST), type: "MODIFIED" };

/** Applies the events, one second apart, each with the zones after it. */
function advanceThrough(...steps: readonly (readonly [StoreEvent, readonly ZoneWithPods[]])[]): Progress | undefined {
  let progress: Progress | undefined;
  for (const [index, [event, zones]] of steps.entries())
    progress = advance(progress, event, { zones, now: index * 1000 });
  return progress;
}

describe("the progress of a rollout", () => {
  it("begins when the group is no longer settled, and ends when it is again", () => {
    assert.equal(advanceThrough([changed, settled]), undefined);
    assert.deepEqual(
      advanceThrough(
        [changed, settled],
        [changed, rolling],
        [changed, rolling],
        [changed, settled],
        [changed, settled],
      ),
      {
        startedAt: 1000,
        endedAt: 3000,
        order: [],
        replaced: 0,
      },
    );
  });

  it("counts the outdated pods that were removed, and lists their zones in order", () => {
    const progress = advanceThrough(
      [changed, rolling],
      [removed("zone-b", PREVIOUS), rolling],
      [removed("zone-b", PREVIOUS), rolling],
      [removed("zone-b", LAST), rolling],
      [removed("stranger", PREVIOUS), rolling],
      [removed("zone-a", PREVIOUS), rolling],
    );
    assert.deepEqual(progress, { startedAt: 0, order: ["zone-b", "zone-a"], replaced: 3 });
  });

  it("starts again with the next rollout", () => {
    assert.deepEqual(advanceThrough([removed("zone-a", PREVIOUS), rolling], [changed, settled], [changed, rolling]), {
      startedAt: 2000,
      order: [],
      replaced: 0,
    });
  });
});

describe("the summary of a rollout", () => {
  const SUMMARIES: readonly [string, Progress, string | undefined][] = [
    ["is missing until the rollout is complete", { startedAt: 0, order: ["a"], replaced: 1 }, undefined],
    ["is missing when no pod was replaced", { startedAt: 0, endedAt: 100, order: [], replaced: 0 }, undefined],
    [
      "has zones, pods and seconds",
      { startedAt: 500, endedAt: 9600, order: ["a", "b"], replaced: 6 },
      "Rolled out 2 zones (a, b): 6 pods replaced in 9.1 s",
    ],
    [
      "counts to one",
      { startedAt: 0, endedAt: 1000, order: ["a"], replaced: 1 },
      "Rolled out 1 zone (a): 1 pod replaced in 1.0 s",
    ],
  ];
  for (const [name, progress, line] of SUMMARIES) it(name, () => assert.equal(summarise(progress), line));
});
