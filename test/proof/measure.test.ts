import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PodState } from "../cluster/stage/invariants.ts";
import { countWithin, gapsBySecond, longestGap, mostZonesDown } from "./measure.ts";

const STREAMS = [
  [100, 200, 3200, 3300],
  [150, 1150, 3250],
];

describe("the figures of the proof", () => {
  it("the longest gap is that of the worst stream, and counts whole if some of it lies within the scene", () => {
    assert.equal(longestGap(STREAMS, { from: 0, to: 4000 }), 3000);
    assert.equal(longestGap(STREAMS, { from: 3000, to: 4000 }), 3000);
    assert.equal(longestGap(STREAMS, { from: 0, to: 190 }), 1000);
  });

  it("what is acknowledged counts once", () => {
    const counts = [0, 200, 4000].map((from) => countWithin(STREAMS, { from, to: from === 0 ? 200 : 4000 }));
    assert.deepEqual(counts, [3, 4, 0]);
  });

  it("each second has the longest gap that it saw", () =>
    assert.deepEqual(gapsBySecond(STREAMS, { from: 0, to: 4000 }), [3000, 3000, 3000, 3000]));

  const entries = (...lines: readonly (readonly [string, PodState])[]) =>
    lines.map(([pod, state]) => ({
      pod,
      state,
      zone: pod.slice(0, pod.lastIndexOf("-")),
      group: "nats",
      uid: "",
      revision: "",
      at: 0,
    }));
  const READY = entries(["zone-a-0", "ready"], ["zone-a-1", "ready"], ["zone-b-0", "ready"], ["zone-c-0", "ready"]);

  it("servers of one zone that are away are one zone", () => {
    const timeline = [...READY, ...entries(["zone-a-0", "terminating"], ["zone-a-1", "terminating"])];
    assert.equal(mostZonesDown(timeline, READY.length, 2), 1);
  });

  it("a zone is down until its server is ready again", () => {
    const away = entries(["zone-a-0", "terminating"], ["zone-a-0", "gone"], ["zone-a-0", "notReady"]);
    const timeline = [...READY, ...away, ...entries(["zone-b-0", "terminating"], ["zone-a-0", "ready"])];
    assert.equal(mostZonesDown(timeline, READY.length, 2), 2);
    assert.equal(mostZonesDown(timeline, timeline.length - 1, 2), 1);
  });

  it("a server whose probe fails is not away: nobody took it", () =>
    assert.equal(mostZonesDown([...READY, ...entries(["zone-a-0", "notReady"])], 0, 2), 0));

  it("servers that start for the first time, or were scaled away, are not away", () => {
    const grown = entries(["zone-a-2", "notReady"], ["zone-a-2", "ready"], ["zone-a-2", "terminating"]);
    assert.equal(mostZonesDown(grown.slice(0, 2), 0, 2), 0);
    assert.equal(mostZonesDown([...grown, ...entries(["zone-a-2", "gone"], ["zone-b-0", "ready"])], 4, 2), 0);
  });
});
