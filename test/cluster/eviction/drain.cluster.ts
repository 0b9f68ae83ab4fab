/** `kubectl drain` of two nodes in different zones at once, with three processes of the eviction webhook. */
import assert from "node:assert/strict";
import { DRAINERS, drain, evictZone } from "./drainers.ts";
import { evictPatiently } from "../stage/evict.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { runKubectl } from "../stage/kubectl.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { createBudget, serveWebhooks, type Webhooks } from "../stage/eviction-stage.ts";

const NODES = ["node-1", "node-2"];

interface Drained extends Stage {
  readonly group: string;
  readonly zones: readonly { group: string; name: string; sim: Record<string, string> }[];
  readonly webhooks: Webhooks;
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
  const webhooks = await serveWebhooks(stage, 3);
  for (const node of NODES) stage.defer(() => runKubectl(["uncordon", node]));
  await createBudget(stage, group);
  await run({ ...stage, group, zones, webhooks });
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

scenario("an eviction of a replaced pod gets 409, and nothing is reserved for it", (stage) =>
  withDrain(stage, async ({ timeline, call, namespace, group }) => {
    const { uid = "" } = timeline.pods.get("zone-a-0") ?? {};
    const isBack = (): boolean =>
      timeline.pods.get("zone-a-0")?.uid !== uid && timeline.pods.get("zone-a-0")?.state === "ready";
    assert.equal((await evictPatiently(stage, "zone-a-0")).code, 201);
    await timeline.until("zone-a-0 is back", isBack);
    const { code, message } = await evictPatiently(stage, "zone-a-0", { deleteOptions: { preconditions: { uid } } });
    assert.equal(code, 409);
    assert.match(message, CONFLICT);
    const path = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets/${group}`;
    const { status } = await call<{ status?: { disruptedPods?: Record<string, { uid: string }> } }>("GET", path);
    assert.notEqual(status?.disruptedPods?.["zone-a-0"]?.uid, timeline.pods.get("zone-a-0")?.uid);
    assert.equal((await evictPatiently(stage, "zone-b-0")).code, 201);
    assertNoViolations(timeline.entries);
  }),
);

scenario("one of three processes is killed in the middle", (stage) =>
  withDrain(stage, async ({ group, timeline, webhooks }) => {
    const { entries } = timeline;
    const drained = Promise.all(NODES.map((node) => drain(node, group)));
    await timeline.until("the first eviction", () => deletions(entries).length > 0);
    await webhooks.killOne();
    await drained;
    await timeline.caughtUp();
    assertNoViolations(entries);
  }),
);

scenario("a drain and a rollout race on one budget", (stage) =>
  withDrain(stage, async ({ group, timeline, start, setImage, done, zones }) => {
    const { entries } = timeline;
    const reconciler = start();
    await setImage("app:2", zones);
    await Promise.all([drain("node-2", group), done("app:2", zones)]);
    assert.equal(await reconciler.end(), 0);
    assertNoViolations(entries);
  }),
);
