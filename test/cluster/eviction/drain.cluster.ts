/** `kubectl drain` of two nodes in different zones at once, with three processes of the eviction webhook. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type EvictionAnswer, evictPatiently } from "../stage/evict.ts";
import { createBudget, serveWebhooks } from "../stage/eviction-stage.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { runKubectl } from "../stage/kubectl.ts";
import { type Stage, scenario } from "../stage/stage.ts";

interface Drainer {
  readonly name: string;
  readonly deleteOptions: (uid: string) => object;
  /** Response codes after which it stops; it retries after all others. */
  readonly finalCodes: readonly number[];
  /** Milliseconds until the next attempt: fewer than in reality, as pods start faster here. */
  readonly retryMs: number;
}

const DRAINERS: readonly Drainer[] = [
  // https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/core/scaledown/actuation/drain.go:
  // after 10 s, for 2 minutes.
  {
    name: "cluster-autoscaler",
    deleteOptions: () => ({ gracePeriodSeconds: 5 }),
    finalCodes: [201, 404],
    retryMs: 1000,
  },
  // https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/node/termination/terminator/eviction.go:
  // a queue that backs off.
  {
    name: "Karpenter",
    deleteOptions: (uid) => ({ preconditions: { uid } }),
    finalCodes: [201, 404, 409],
    retryMs: 300,
  },
];

const TIMEOUT_MS = 300_000;

/**
 * `kubectl drain` of the group's pods on a node; retries, as an operator does, if the webhook is unreachable
 * for a moment. Resolves with all output; rejects after the tenth failure.
 */
async function drain(node: string, group: string): Promise<string> {
  let text = "";
  for (let tries = 1; tries <= 10; tries++) {
    const result = await runKubectl(["drain", node, `--pod-selector=rollout-group=${group}`, "--timeout=150s"]);
    text += result.text;
    if (result.code === 0) return text;
  }
  throw new Error(text);
}

/**
 * Evicts all current pods of a zone at once. Resolves with all responses once these pods are gone; rejects
 * after 5 minutes.
 */
async function evictZone(
  drainer: Drainer,
  stage: Pick<Stage, "call" | "namespace" | "timeline">,
  zone: string,
): Promise<EvictionAnswer[]> {
  const { timeline } = stage;
  const pods = [...timeline.pods.values()].filter((pod) => pod.zone === zone);
  const answers: EvictionAnswer[] = [];
  const deadline = performance.now() + TIMEOUT_MS;
  const evictions = pods.map(async ({ pod, uid }) => {
    for (;;) {
      const answer = await evictPatiently(stage, pod, { deleteOptions: drainer.deleteOptions(uid) });
      answers.push(answer);
      if (drainer.finalCodes.includes(answer.code)) return;
      if (performance.now() > deadline)
        throw new Error(`${drainer.name} was not allowed to evict ${pod}: ${answer.message}`);
      await sleep(drainer.retryMs);
    }
  });
  await Promise.all(evictions);
  const uids = new Set(pods.map(({ uid }) => uid));
  await timeline.until(`the pods of ${zone} are gone`, () =>
    [...timeline.pods.values()].every(({ uid }) => !uids.has(uid)),
  );
  return answers;
}

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
