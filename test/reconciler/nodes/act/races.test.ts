/** Writes that meet another writer, a lost answer or a failing server. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { type CustomObject, nodeUpdatePolicies } from "../../../../infra/kubernetes/custom-resources.ts";
import { writeStatus } from "../../../../infra/kubernetes/write-status.ts";
import { readIdentity } from "../../../../infra/kubernetes/identity.ts";
import { NO_STATUS } from "../../../../reconciler/nodes/policy.ts";
import {
  createPolicy,
  label,
  NAMESPACE,
  NODES,
  type NodeStage,
  report,
  setFleet,
  shadowOf,
  statusOf,
  stepAgent,
} from "./stage.ts";

const SHADOWS = "bottlerocketshadows.brupop.bottlerocket.aws";
/** Three nodes with an update, and a policy. */
async function setUp(t: TestContext, spec: object = {}): Promise<NodeStage> {
  const on = await setFleet(t);
  createPolicy(on, { enabled: false, ...spec });
  await on.tick();
  for (const node of NODES) stepAgent(on, node);
  return on;
}

const wanted = (on: NodeStage): string[] => NODES.filter((node) => shadowOf(on, node)?.spec.state !== "Idle");

describe("a write of a shadow", () => {
  it("does not reach a shadow that its agent has changed meanwhile", async (t) => {
    const on = await setUp(t, { enabled: true });
    const unsubscribe = on.emulator.store.subscribe(({ resource }) => {
      if (resource !== "nodeupdatepolicies.zonewise.dev") return;
      unsubscribe();
      report(on, "node-1", { target_version: "1.0.0" });
    });
    await on.tick();
    assert.deepEqual(wanted(on), []);
  });

  for (const [title, kind] of [
    ["its answer was lost", "dropAfter"],
    ["it never took effect", "error"],
  ] as const)
    it(`is repeated if ${title}, and takes no second slot`, async (t) => {
      const on = await setUp(t, { enabled: true });
      on.emulator.faults.inject({ verb: "patch", resource: SHADOWS, times: 1, effect: { kind } });
      for (let i = 0; i < 3; i++) await on.tick();
      assert.deepEqual([wanted(on), statusOf(on).active.length], [["node-1"], 1]);
    });

  it("that undoes a drain and cannot be made keeps no tick busy, and counts once", async (t) => {
    const on = await setUp(t, { enabled: true, drain: { timeoutSeconds: 60 } });
    await on.tick();
    stepAgent(on, "node-1");
    await on.tick();
    assert.equal(shadowOf(on, "node-1")?.spec.state, "RebootedIntoUpdate");
    await on.time.advance(61_000);
    on.emulator.faults.inject({ verb: "patch", resource: SHADOWS, times: 100, effect: { kind: "error" } });
    await on.tick();
    on.calls.length = 0;
    assert.equal(await on.tick(), false);
    const writes = on.calls.filter((call) => /^(PUT|PATCH) /.test(call));
    assert.deepEqual([writes.length, statusOf(on).deferred.map(({ count }) => count)], [1, [1]]);
  });

  it("that fails does not stop the others", async (t) => {
    const on = await setUp(t, { enabled: true, maxConcurrent: 3 });
    on.emulator.faults.inject({
      verb: "patch",
      resource: SHADOWS,
      name: "brs-node-1",
      times: 1,
      effect: { kind: "error" },
    });
    await on.tick();
    assert.ok(wanted(on).includes("node-2") && wanted(on).includes("node-3"));
  });
});

describe("a write of a policy's status", () => {
  it("takes no slot if another process has written since the policy was read", async (t) => {
    const on = await setUp(t, { enabled: true });
    const object = on.emulator.store.get(
      "nodeupdatepolicies.zonewise.dev",
      undefined,
      "default",
    ) as unknown as CustomObject;
    await on.tick();
    const { active } = statusOf(on);
    const after = { ...NO_STATUS, active: active.map((entry) => ({ ...entry, node: "node-2" })) };
    const change = { kind: "NodeUpdatePolicy", object: readIdentity(object.metadata), before: NO_STATUS, after };
    const writing = writeStatus(nodeUpdatePolicies, change, {
      cluster: on.cluster,
      fence: { write: () => ({}) },
    });
    await assert.rejects(writing, { code: "Conflict" });
    assert.deepEqual(statusOf(on).active, active);
  });
});

describe("what is stored", () => {
  it("keeps the slot of a node that has lost its label and its shadow, until it serves again", async (t) => {
    const on = await setUp(t, { enabled: true });
    const { store } = on.emulator;
    const active = (): string[] => statusOf(on).active.map(({ node }) => node);
    const setNode = (status: "True" | "False", more: object): void => {
      const node = store.get("nodes", undefined, "node-1") ?? assert.fail();
      const { labels: _, ...metadata } = node.metadata;
      const conditions = [{ type: "Ready", status, lastTransitionTime: "2026-01-01T00:00:00Z" }];
      store.update("nodes", { ...node, metadata: { ...metadata, ...more }, status: { conditions } });
    };
    await on.tick();
    setNode("False", { annotations: { "zonewise.dev/cordoned-by": "a shadow" } });
    store.remove(SHADOWS, NAMESPACE, "brs-node-1");
    for (let i = 0; i < 3; i++) await on.tick();
    assert.deepEqual(active(), ["node-1"]);
    setNode("True", {});
    for (let i = 0; i < 3; i++) await on.tick();
    assert.deepEqual(active(), ["node-2"]);
  });

  it("leaves nothing of ours on an active Node that loses its label and its shadow", async (t) => {
    const on = await setUp(t, { enabled: true, features: { protectFromScaleDown: true } });
    const marks = (): string[] =>
      Object.keys(on.emulator.store.get("nodes", undefined, "node-1")?.metadata.annotations ?? {}).filter((key) =>
        /zonewise|scale-down|do-not-disrupt/.test(key),
      );
    for (let i = 0; i < 3; i++) await on.tick();
    assert.notDeepEqual(marks(), []);
    label(on, "node-1", null);
    on.emulator.store.remove(SHADOWS, NAMESPACE, "brs-node-1");
    for (let i = 0; i < 5; i++) {
      on.restart();
      await on.tick();
      await on.time.advance(60_000);
    }
    assert.ok(!statusOf(on).active.some(({ node }) => node === "node-1"));
    assert.deepEqual(marks(), []);
  });

  it("leaves nothing of ours on a Node after its update, which only the original's label has selected", async (t) => {
    const on = await setUp(t, { enabled: true, features: { protectFromScaleDown: true } });
    const before = NODES.map((node) => on.emulator.store.get("nodes", undefined, node)?.metadata.annotations ?? {});
    const seen = new Set<string>();
    for (let i = 0; i < 60; i++) {
      await on.tick();
      for (const node of NODES) {
        stepAgent(on, node);
        for (const key of Object.keys(on.emulator.store.get("nodes", undefined, node)?.metadata.annotations ?? {}))
          seen.add(key);
      }
      await on.time.advance(70_000);
    }
    assert.deepEqual(statusOf(on).nodes.upToDate, 3);
    assert.ok(seen.has("zonewise.dev/protected-by"));
    assert.deepEqual(
      NODES.map((node) => on.emulator.store.get("nodes", undefined, node)?.metadata.annotations ?? {}),
      before,
    );
  });
});
