/** `kubectl drain` of two nodes in different zones at once, with three processes of the eviction webhook. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { assertNoViolations, deletions } from "./invariants.ts";
import { scenario, type Stage } from "./stage.ts";
import { createBudget, serveWebhooks, type Webhooks } from "./eviction-stage.ts";

const run = promisify(execFile);
const KUBECTL = process.env["KUBECTL"] ?? "kubectl";
const NODES = ["node-1", "node-2"];

interface Drained extends Stage {
  readonly group: string;
  readonly zones: readonly { group: string; name: string; sim: Record<string, string> }[];
  readonly webhooks: Webhooks;
}

/** Three zones, each on a node of its own, under a budget of 1. */
async function withDrain(stage: Stage, play: (drained: Drained) => Promise<void>): Promise<void> {
  const group = `cache-${stage.namespace}`;
  const zones = ["a", "b", "c"].map((letter, i) => ({ group, name: `zone-${letter}`, sim: { "sim/node": `node-${i + 1}` } }));
  await stage.create(zones);
  const webhooks = await serveWebhooks(stage, 3);
  try {
    await createBudget(stage, group);
    await play({ ...stage, group, zones, webhooks });
  } catch (error) {
    throw new Error(webhooks.processes.map((one) => one.output()).join("\n"), { cause: error });
  } finally {
    for (const node of NODES) await run(KUBECTL, ["uncordon", node]);
    await webhooks.close();
  }
}

/** As an operator does: again, if the webhook was out of reach for a moment. */
async function drain(node: string, group: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await run(KUBECTL, ["drain", node, `--pod-selector=rollout-group=${group}`, "--timeout=150s"]);
      return;
    } catch (error) {
      if (tries === 4) throw error;
    }
  }
}

scenario("two nodes in different zones are drained at once", (stage) =>
  withDrain(stage, async ({ group, timeline }) => {
    const { entries } = timeline;
    await Promise.all(NODES.map((node) => drain(node, group)));
    assertNoViolations(entries);
    assert.equal(deletions(entries).length, 6);
  }),
);

scenario("one of three processes is killed in the middle", (stage) =>
  withDrain(stage, async ({ group, timeline, webhooks }) => {
    const { entries } = timeline;
    const drained = Promise.all(NODES.map((node) => drain(node, group)));
    await timeline.until("the first eviction", () => deletions(entries).length > 0);
    await webhooks.processes[0]?.kill();
    await drained;
    assertNoViolations(entries);
  }),
);

scenario("a drain and a rollout race on one budget", (stage) =>
  withDrain(stage, async ({ group, timeline, start, setImage, done, zones }) => {
    const { entries } = timeline;
    const reconciler = start();
    await setImage("app:2", zones);
    await Promise.all([drain("node-2", group), done("app:2", zones, 150_000)]);
    assert.equal(await reconciler.end(), 0);
    assertNoViolations(entries);
  }),
);
