/** Node updates on a large cluster, and with two processes. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { gatherNodes } from "../../../../reconciler/nodes/act/gather-nodes.ts";
import { createPolicy, label, type NodeStage, setNode, setNodeStage, shadowOf, statusOf, stepAgent } from "./stage.ts";
import { add } from "../../../builders.ts";

async function setStage(t: TestContext): Promise<NodeStage> {
  const stage = await setNodeStage();
  t.after(() => stage.close());
  return stage;
}

function addNodes(on: NodeStage, count: number): string[] {
  const names = Array.from({ length: count }, (_, i) => `big-${String(i).padStart(4, "0")}`);
  for (const name of names) {
    add(on.emulator.store, "Node", name, { spec: {}, status: {} });
    label(on, name);
    setNode(on, name, {});
  }
  return names;
}

describe("many nodes", () => {
  it("are listed page by page, and all of them get shadows", async (t) => {
    const stage = await setStage(t);
    const names = addNodes(stage, 620);
    createPolicy(stage, { maxConcurrent: "1%" });
    await stage.tick();
    for (const name of names) stepAgent(stage, name);
    stage.calls.length = 0;
    await stage.tick();
    assert.ok(stage.calls.filter((call) => /^GET .*bottlerocketshadows/.test(call)).length >= 2, "pages of shadows");
    const wanted = names.filter((name) => shadowOf(stage, name)?.spec.state === "StagedAndPerformedUpdate");
    assert.equal(wanted.length, 6);
    assert.equal(statusOf(stage).nodes.total, 620);
  });

  it("cost few calls while nothing changes", async (t) => {
    const stage = await setStage(t);
    const names = addNodes(stage, 50);
    createPolicy(stage, { enabled: false });
    await stage.tick();
    for (const name of names) stepAgent(stage, name);
    await stage.tick();
    stage.calls.length = 0;
    await stage.tick();
    assert.deepEqual(
      stage.calls.map((call) => call.split(" ")[0]),
      ["GET", "GET", "GET"],
    );
  });

  it("of others are listed only where pods are read", async (t) => {
    const { cluster } = await setStage(t);
    const selectors: (string | undefined)[] = [];
    const list: Cluster["list"] = (resource, query, call) => {
      if (resource.plural === "nodes") selectors.push(query.labelSelector);
      return cluster.list(resource, query, call);
    };
    await gatherNodes("default", { cluster: { ...cluster, list } });
    assert.deepEqual(selectors, ["bottlerocket.aws/updater-interface-version=2.0.0"]);
  });
});

describe("two processes", () => {
  it("that tick at the same time never take one slot twice", async (t) => {
    for (let round = 0; round < 5; round++) {
      const one = await setStage(t);
      const names = addNodes(one, 6);
      createPolicy(one, { maxConcurrent: 2 });
      await one.tick();
      for (const name of names) stepAgent(one, name);
      const first = one.tick();
      one.restart();
      await Promise.all([first, one.tick()]);
      const wanted = names.filter((name) => shadowOf(one, name)?.spec.state !== "Idle");
      assert.ok(wanted.length <= 2, wanted.join());
      assert.ok(statusOf(one).active.length <= 2);
    }
  });
});
