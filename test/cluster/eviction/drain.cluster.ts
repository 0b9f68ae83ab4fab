/** `kubectl drain` of two nodes in different zones at once, with three processes of the eviction webhook. */
import assert from "node:assert/strict";
import { DRAINERS, drain, evictZone } from "./drainers.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { runKubectl } from "../stage/kubectl.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { createBudget, serveWebhooks } from "../stage/eviction-stage.ts";

const NODES = ["node-1", "node-2"];

interface Drained extends Stage {
  readonly group: string;
}

/** Three zones, each on a node of its own, under a budget of 1. */
async function withDrain(stage: Stage, run: (drained: Drained) => Promise<void>): Promise<void> {
  const group = `cache-${stage.namespace}`;
  // Evicted pods are away long enough for other evictions to meet that.
  const sim = { "sim/ready-after-ms": "2000" };
  const zones = ["a", "b", "c"].map((letter, i) => ({
    group,
    name: `zone-${letter}`,
    sim: { ...sim, "sim/node": `node-${i + 1}` },
  }));
  await stage.create(zones);
  await serveWebhooks(stage, 3);
  for (const node of NODES) stage.defer(() => runKubectl(["uncordon", node]));
  await createBudget(stage, group);
  await run({ ...stage, group });
}

/** The API server's error if the pod is not the one that was judged. */
const CONFLICT = /Conflict|the UID in the precondition/;

scenario("two nodes in different zones are drained at once", (stage) =>
  withDrain(stage, async ({ group, timeline }) => {
    const { entries } = timeline;
    const before = [...timeline.pods.values()].filter(({ zone }) => zone !== "zone-c");
    const texts = await Promise.all(NODES.map((node) => drain(node, group)));
    await timeline.caughtUp();
    assertNoViolations(entries);
    // A drain that is repeated, as the webhook was unreachable for a moment, evicts the replacements too.
    const deleted = deletions(entries);
    for (const { pod, uid } of before) assert.equal(deleted.filter((one) => one.uid === uid).length, 1, pod);
    // kubectl retries only after 429.
    assert.match(
      texts.join(),
      /will retry after 5s\): admission webhook "[^"]+" denied the request: \d pods? (?:not ready|unknown)/,
    );
    for (const text of texts) assert.doesNotMatch(text, CONFLICT);
  }),
);

for (const drainer of DRAINERS) {
  scenario(`${drainer.name} drains two zones at once`, (stage) =>
    withDrain(stage, async ({ timeline }) => {
      const answers = (await Promise.all(["zone-a", "zone-b"].map((zone) => evictZone(drainer, stage, zone)))).flat();
      assertNoViolations(timeline.entries);
      assert.equal(deletions(timeline.entries).length, 6);
      assert.deepEqual([...new Set(answers.map(({ code }) => code))].toSorted(), [201, 429]);
      for (const { code, message } of answers)
        if (code === 429) assert.match(message, /denied the request: \d pods? (?:not ready|unknown) in zone-/);
    }),
  );
}
