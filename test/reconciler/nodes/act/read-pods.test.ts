/** What a node's pods say, read from the embedded cluster. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createPodReader } from "../../../../reconciler/nodes/act/read-pods.ts";
import type { NodeReading } from "../../../../reconciler/nodes/snapshot.ts";
import { setBudgetStage, writeBudget } from "../../budget-stage.ts";
import { deploy, type Stage } from "../../stage.ts";
import { add } from "../../../builders.ts";

let stage: Stage;
beforeEach(async () => void (stage = await setBudgetStage()));
afterEach(() => stage.close());

interface StoredPod {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly nodeName: string };
}

const podsOn = (node: string): string[] =>
  (stage.emulator.store.list("pods", "default") as unknown as StoredPod[])
    .filter(({ spec }) => spec.nodeName === node)
    .map(({ metadata }) => metadata.name);

async function read(
  node: string,
  drained: NodeReading["workloads"] = [],
): Promise<NodeReading & { readonly calls: readonly string[] }> {
  const { cluster, calls } = stage.connect();
  const found = await createPodReader({
    cluster,
    now: stage.clock.now(),
    call: {},
  })({
    node,
    drained,
  });
  return { ...found, calls };
}

describe("a reading of a node", () => {
  it("finds that it could be drained while all zones are well, and whose pods would go", async () => {
    writeBudget(stage);
    const { obstacle, unfit, rollout, missing, workloads } = await read("node-1");
    assert.deepEqual([obstacle, unfit, rollout, missing], [undefined, undefined, undefined, undefined]);
    assert.ok(podsOn("node-1").length > 0);
    assert.ok(workloads.every(({ kind, ready }) => kind === "StatefulSet" && ready === 3));
  });

  it("finds a PodDisruptionBudget that allows no disruption", async () => {
    const selector = { matchExpressions: [{ key: "rollout-group", operator: "In", values: ["ingester"] }] };
    const budget = { spec: { maxUnavailable: 0, selector }, status: { disruptionsAllowed: 0 } };
    add(stage.emulator.store, "PodDisruptionBudget", "full", budget);
    assert.match((await read("node-1")).obstacle ?? "", /PodDisruptionBudget full/);
  });

  it("finds that another zone has a pod that is gone", async () => {
    writeBudget(stage);
    const elsewhere = podsOn("node-2").concat(podsOn("node-3"));
    const own = new Set(podsOn("node-1").map((name) => name.slice(0, -2)));
    const victim = elsewhere.find((name) => !own.has(name.slice(0, -2))) ?? elsewhere[0] ?? "";
    stage.emulator.store.remove("pods", "default", victim, { gracePeriodSeconds: 0 });
    assert.match((await read("node-1")).obstacle ?? "", /ingester-zone-/);
  });

  it("finds which other nodes take pods, managed or not", async () => {
    const { store } = stage.emulator;
    const change = (name: string, spec: object): void => {
      const node = store.get("nodes", undefined, name);
      if (node) store.update("nodes", { ...node, spec });
    };
    const others = async () => (await read("node-1")).others?.map(({ name }) => name);
    change("node-2", { unschedulable: true });
    assert.deepEqual(await others(), ["node-3"]);
    change("node-3", { taints: [{ key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" }] });
    assert.deepEqual(await others(), ["node-3"]);
    change("node-3", { taints: [{ key: "karpenter.sh/disrupted", effect: "NoSchedule" }] });
    assert.deepEqual(await others(), []);
  });

  it("finds a rollout of another zone", async () => {
    deploy(stage, "x:2", { podLabels: { "rollout-group": "ingester" }, zones: ["a"] });
    await stage.time.advance(1000);
    const helds = await Promise.all(["node-1", "node-2", "node-3"].map(async (node) => (await read(node)).rollout));
    for (const [index, node] of ["node-1", "node-2", "node-3"].entries()) {
      const others = podsOn(node).some((name) => !name.startsWith("ingester-zone-a"));
      assert.equal(helds[index] !== undefined, others, node);
    }
  });

  it("finds it for a node that has only pods which a StatefulSet has left behind", async () => {
    const { store } = stage.emulator;
    for (const pod of store.list("pods", "default")) {
      const nodeName = pod.metadata.name.startsWith("ingester-zone-b") ? "node-1" : "node-2";
      store.update("pods", { ...pod, spec: { ...(pod as unknown as StoredPod).spec, nodeName } });
    }
    store.remove("statefulsets.apps", "default", "ingester-zone-b", { propagationPolicy: "Orphan" });
    await stage.time.advance(1000);
    assert.equal(podsOn("node-1").length, 3);
    assert.equal((await read("node-1")).rollout, undefined);
    deploy(stage, "x:2", { podLabels: { "rollout-group": "ingester" }, zones: ["c"] });
    await stage.time.advance(1000);
    assert.match(
      (await read("node-1")).rollout ?? "",
      /rolling out zone ingester-zone-c, and zone ingester-zone-b has pods here/,
    );
  });

  it("finds that drained work has not come back", async () => {
    const set = stage.emulator.store.get("statefulsets.apps", "default", "ingester-zone-a");
    const before = {
      kind: "StatefulSet",
      namespace: "default",
      name: "ingester-zone-a",
      uid: set?.metadata.uid ?? "",
      ready: 3,
    };
    assert.equal((await read("node-1", [before])).missing, undefined);
    stage.emulator.store.remove("pods", "default", "ingester-zone-a-0", { gracePeriodSeconds: 0 });
    await stage.time.advance(100);
    assert.match((await read("node-1", [before])).missing ?? "", /ingester-zone-a has 2 ready pods, and had 3/);
  });

  it("works where no zone-aware budgets are known", async () => {
    await stage.close();
    stage = await setBudgetStage({ crd: "none" });
    assert.equal((await read("node-1")).obstacle, undefined);
  });
});
