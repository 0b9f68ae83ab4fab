import assert from "node:assert/strict";
import { assertNoViolations, deletions, type Entry } from "../stage/invariants.ts";
import { scenario } from "../stage/stage.ts";

const GROUPS = 40;
const TIMEOUT_MS = 600_000;

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
    // A group waits as long as the StatefulSet controller has not observed one of its zones.
    const areObserved = (): boolean =>
      zones.every(({ name }) => {
        const { metadata, status } = timeline.statefulSets.get(name) ?? {};
        return status?.observedGeneration === metadata?.generation && !status?.updatedReplicas;
      });
    await timeline.until("every change is observed", areObserved, TIMEOUT_MS);
    const reconciler = start();
    await done("app:2", zones, TIMEOUT_MS);
    assert.equal(await reconciler.end(), 0);

    assertNoViolations(timeline.entries);
    const deleted = deletions(timeline.entries);
    assert.equal(deleted.length, zones.length);
    assert.equal(new Set(deleted.map(({ pod }) => pod)).size, zones.length);
    const counts = new Map<string, number>();
    const isLast = ({ group }: Entry): boolean => {
      counts.set(group, (counts.get(group) ?? 0) + 1);
      return counts.get(group) === 3;
    };
    const begun = deleted.slice(0, deleted.findIndex(isLast)).map(({ group }) => group);
    assert.equal(new Set(begun).size, GROUPS, "no group waits until another one is finished");
  },
);
