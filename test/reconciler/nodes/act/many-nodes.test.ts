/** Node updates on a large cluster: its lists, and the pods that a pass reads. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { gatherNodes } from "../../../../reconciler/nodes/act/gather-nodes.ts";
import { planAfterReading, type ReadingMemory } from "../../../../reconciler/nodes/act/plan-after-reading.ts";
import type { NodeReading } from "../../../../reconciler/nodes/snapshot.ts";
import { createPolicy, label, type NodeStage, setNode, setNodeStage, shadowOf, statusOf, stepAgent } from "./stage.ts";
import { add } from "../../../builders/objects.ts";
import { busyNode, entry, FREE, node, NOW, policy, snapshot } from "../fixture.ts";

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

describe("the reads of a pass", () => {
  /** Reads, and how many were under way at once. */
  function watchReads(answer: NodeReading) {
    const read: string[] = [];
    let [running, most] = [0, 0];
    const readPods = async ({ node: name }: { readonly node: string }): Promise<NodeReading> => {
      read.push(name);
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
      return answer;
    };
    return { read, readPods, most: () => most };
  }

  const memory = (): ReadingMemory => ({ intervalMs: 5000, held: new Map(), readAt: new Map() });
  const names = Array.from({ length: 100 }, (_, i) => `n${String(i).padStart(3, "0")}`);
  const monitored = names.map((name) =>
    busyNode(name, "MonitoringUpdate", "MonitoringUpdate", {
      node: { bootId: "boot-2", readySince: 0 },
      status: { current_version: "1.1.0" },
    }),
  );
  const active = names.map((name) => entry(name, { phase: "Monitoring" }));
  const input = (now: number) =>
    snapshot(monitored, { now, policy: policy({ maxConcurrent: "unlimited" }, { active }) });

  it("come round to every active node, however many of them are not well", async () => {
    const { read, readPods, most } = watchReads({ ...FREE, missing: "StatefulSet shop/db has 2 ready pods" });
    const kept = memory();
    for (let pass = 0; pass < 3; pass++) await planAfterReading(input(NOW + pass * 5000), readPods, kept);
    assert.deepEqual(new Set(read), new Set(names));
    assert.ok(read.length <= 120 && most() <= 5, `${read.length} reads, ${most()} at once`);
  });

  it("are no more than the starts need", async () => {
    const { read, readPods } = watchReads(FREE);
    await planAfterReading(snapshot(names.map((name) => node(name))), readPods, memory());
    assert.deepEqual(read, ["n000"]);
  });
});
