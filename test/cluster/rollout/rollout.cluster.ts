import assert from "node:assert/strict";
import { assertNoViolations, deletions, type Entry } from "../stage/invariants.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

/** Long enough for a pod not to be ready again before the next one of its batch is deleted. */
const SLOW = { "sim/ready-after-ms": "2000" };

const CASES = [
  { name: "three zones of three pods roll out one pod at a time", replicas: 3, annotations: {}, sim: {}, limit: 1 },
  {
    name: "with max-unavailable 2, two pods of one zone are replaced at a time",
    replicas: 4,
    annotations: atMost("2"),
    sim: SLOW,
    limit: 2,
  },
  {
    name: "with max-unavailable 50 %, half of a zone's pods are replaced at a time",
    replicas: 4,
    annotations: atMost("50%"),
    sim: SLOW,
    limit: 2,
  },
];

for (const { name, replicas, annotations, sim, limit } of CASES) {
  scenario(name, async ({ create, start, setImage, done, events, timeline: { entries } }) => {
    const zones = ["zone-a", "zone-b", "zone-c"].map((name) => ({
      group: "cache",
      name,
      replicas,
      annotations,
      sim,
    }));
    await create(zones);
    const reconciler = start();
    await setImage("app:2", zones);
    await done("app:2", zones);
    // Whoever records it: the StatefulSet controller of 1.37 does, too.
    await until("each zone has its Event", async () => (await events("ZoneUpdated")).length === zones.length);
    assert.equal(await reconciler.end(), 0);

    assertNoViolations(entries, () => limit);
    const deleted = deletions(entries).map(({ pod }) => pod);
    assert.equal(deleted.length, 3 * replicas, "each pod is replaced exactly once");
    assert.equal(new Set(deleted).size, 3 * replicas, "each pod is replaced exactly once");
    assert.equal(mostDown(entries), limit, "the limit is used");
  });
}

function atMost(maxUnavailable: string): Record<string, string> {
  return { "rollout-max-unavailable": maxUnavailable };
}

/** The maximum number of pods that were not ready at once, from the first deletion on. */
function mostDown(entries: readonly Entry[]): number {
  const [first] = deletions(entries);
  const down = new Set<string>();
  let most = 0;
  for (const { pod, state } of entries.slice(first && entries.indexOf(first))) {
    if (state === "ready") down.delete(pod);
    else down.add(pod);
    most = Math.max(most, down.size);
  }
  return most;
}
