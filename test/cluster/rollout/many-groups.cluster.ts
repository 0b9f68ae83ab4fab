import assert from "node:assert/strict";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { scenario } from "../stage/stage.ts";

const GROUPS = 40;

scenario(
  "forty groups roll out at once, each by its own rules",
  async ({ create, start, setImage, done, timeline }) => {
    const names = Array.from({ length: GROUPS }, (_, number) => `group-${number}`);
    const zones = names.flatMap((group) =>
      ["a", "b", "c"].map((zone) => ({ group, name: `${group}-${zone}`, replicas: 1 })),
    );
    await create(zones);
    // All of them before the first tick, so that it finds them together.
    await setImage("app:2", zones);
    const reconciler = start();
    await done("app:2", zones);
    assert.equal(await reconciler.end(), 0);

    assertNoViolations(timeline.entries);
    const deleted = deletions(timeline.entries);
    assert.equal(deleted.length, zones.length);
    assert.equal(new Set(deleted.map(({ pod }) => pod)).size, zones.length);
    const first = deleted.slice(0, GROUPS).map(({ group }) => group);
    assert.equal(new Set(first).size, GROUPS, "no group waits for another");
  },
);
