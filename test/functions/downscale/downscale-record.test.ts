/** The stored time of a downscale. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  A,
  B,
  HOUR,
  inAnnotation,
  inTracker,
  isRecent,
  LAST,
  MIN_TIME,
  play,
  recorded,
  track,
  tracked,
} from "../prepare-stage.ts";
import { callWebhook, createZone, reviewOf } from "../stage.ts";

describe("the annotation", () => {
  it("is in the answer for a StatefulSet, also if the object has none yet", async (t) => {
    const stage = await play(t, inAnnotation);
    const zone = createZone(stage, A);
    const bare = structuredClone(reviewOf(zone, 1).object) as { metadata: { annotations?: object } };
    delete bare.metadata.annotations;
    const [patch] = (await callWebhook(stage.webhook, reviewOf(zone, 1, { object: bare }))).patch as {
      path: string;
      value: Record<string, string>;
    }[];
    assert.equal(patch?.path, "/metadata/annotations");
    isRecent(patch?.value[LAST]);
    assert.equal(stage.calls.filter((call) => call.startsWith("PATCH apps")).length, 0);
  });
});

describe("the zone tracker", () => {
  it("begins with every zone of the group scaled down now, so that the first one may have to wait", async (t) => {
    const stage = await play(t, inTracker);
    const zone = createZone(stage, A);
    createZone(stage, B, { labels: { [MIN_TIME]: "2h" } });
    const answer = await callWebhook(stage.webhook, reviewOf(zone, 1));
    assert.match(
      answer.message ?? "",
      /statefulset ingester-zone-b was downscaled at .* and is labelled to wait 2h0m0s between zone downscales$/,
    );
    for (const name of [A, B]) isRecent(recorded(stage, name));
  });

  it("keeps the other entries, of other groups and unreadable ones too", async (t) => {
    const stage = await play(t, inTracker);
    const before = { [A]: Date.now() - HOUR, "store-zone-a": "not ours", "ingester-zone-c": Date.now() - HOUR };
    track(stage, before);
    const earlier = { ...tracked(stage) };
    assert.equal((await callWebhook(stage.webhook, reviewOf(createZone(stage, A), 1))).allowed, true);
    isRecent(recorded(stage, A));
    assert.deepEqual({ ...tracked(stage), [A]: undefined }, { ...earlier, [A]: undefined });
  });

  it("is also created for a zone without a group, and not replaced", async (t) => {
    const stage = await play(t, inTracker);
    assert.equal(
      (await callWebhook(stage.webhook, reviewOf(createZone(stage, "lonely", { group: "" }), 1))).allowed,
      true,
    );
    assert.equal(
      (await callWebhook(stage.webhook, reviewOf(createZone(stage, "lonelier", { group: "" }), 1))).allowed,
      true,
    );
    assert.deepEqual(Object.keys(tracked(stage)).toSorted(), ["lonelier", "lonely"]);
  });

  it("stores two zones of different groups that are written at once", async (t) => {
    const stage = await play(t, inTracker);
    track(stage, {});
    const zones = ["a", "b", "c", "d"].map((group) => createZone(stage, `${group}-zone-a`, { group }));
    const answers = await Promise.all(zones.map((zone) => callWebhook(stage.webhook, reviewOf(zone, 1))));
    assert.deepEqual(
      answers.map(({ allowed }) => allowed),
      [true, true, true, true],
    );
    assert.equal(Object.keys(tracked(stage)).length, 4);
  });
});
