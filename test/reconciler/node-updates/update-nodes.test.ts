import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import {
  changePolicy,
  createPolicy,
  label,
  NAMESPACE,
  type NodeStage,
  report,
  setNode,
  setNodeStage,
  shadowOf,
  statusOf,
  stepAgent,
} from "./stage.ts";

const NODES = ["node-1", "node-2", "node-3"];
let stage: NodeStage | undefined;
afterEach(async () => {
  await stage?.close();
  stage = undefined;
});

async function setUp(...options: Parameters<typeof setNodeStage>): Promise<NodeStage> {
  stage = await setNodeStage(...options);
  for (const node of NODES) {
    label(stage, node);
    setNode(stage, node, {});
  }
  return stage;
}

const states = (on: NodeStage): string[] => NODES.map((node) => shadowOf(on, node)?.spec.state ?? "none");
const events = (on: NodeStage): string[] =>
  on.emulator.store.list("events").map((event) => {
    const { reason, involvedObject } = event as unknown as { reason: string; involvedObject: { kind: string; name: string } };
    return `${involvedObject.kind} ${involvedObject.name} ${reason}`;
  });

/** Ticks and lets the agents go on, until nothing changes any more. */
async function play(on: NodeStage, each: () => void = () => {}): Promise<void> {
  for (let round = 0; round < 60; round++) {
    const acted = await on.tick();
    for (const node of NODES) stepAgent(on, node);
    each();
    await on.time.advance(70_000);
    if (!acted && statusOf(on).active.length === 0 && round > 3) return;
  }
}

describe("a campaign on the embedded cluster", () => {
  it("creates shadows and the default policy, and updates the nodes one after the other (R1, R12, R13, R18, R29)", async () => {
    const on = await setUp();
    const most: number[] = [];
    await play(on, () => most.push(states(on).filter((state) => state !== "Idle").length));
    assert.equal(Math.max(...most), 1);
    assert.deepEqual(
      NODES.map((node) => shadowOf(on, node)?.status?.current_version),
      ["1.1.0", "1.1.0", "1.1.0"],
    );
    assert.deepEqual(states(on), ["Idle", "Idle", "Idle"]);
    assert.deepEqual(statusOf(on).nodes, { total: 3, upToDate: 3, waiting: 0, active: 0, failed: 0 });
  });

  it("gives each shadow an owner reference to its Node (R37)", async () => {
    const on = await setUp();
    await on.tick();
    const uid = on.emulator.store.get("nodes", undefined, "node-1")?.metadata.uid;
    assert.deepEqual(shadowOf(on, "node-1")?.metadata.ownerReferences, [{ apiVersion: "v1", kind: "Node", name: "node-1", uid }]);
  });

  it("writes nothing once it is settled (silence)", async () => {
    const on = await setUp();
    await play(on);
    on.calls.length = 0;
    assert.equal(await on.tick(), false);
    assert.deepEqual(
      on.calls.filter((call) => !call.startsWith("GET")),
      [],
    );
  });

  it("takes the slot in the policy's status before it writes the shadow", async () => {
    const on = await setUp();
    await on.tick();
    for (const node of NODES) stepAgent(on, node);
    on.calls.length = 0;
    await on.tick();
    const writes = on.calls.filter((call) => !call.startsWith("GET") && !call.includes("events"));
    assert.match(writes[0] ?? "", /PUT .*nodeupdatepolicies/);
    assert.match(writes[1] ?? "", /PATCH .*bottlerocketshadows/);
  });

  it("goes on where another process has died (R20)", async () => {
    const on = await setUp();
    await play(on, () => on.restart());
    assert.equal(statusOf(on).nodes.upToDate, 3);
  });

  it("decides the same from the stored objects alone, whether one process ticks or a new one each time (R3)", async () => {
    const histories: string[][] = [];
    for (const isNew of [false, true]) {
      const on = await setUp();
      const history: string[] = [];
      await play(on, () => {
        history.push(states(on).join());
        if (isNew) on.restart();
      });
      histories.push(history);
      await on.close();
      stage = undefined;
    }
    assert.ok((histories[0]?.length ?? 0) > 10);
    assert.deepEqual(histories[1], histories[0]);
  });

  it("counts each transition once, with the version before and after (R22)", async () => {
    const on = await setUp();
    await play(on);
    const counted = statusOf(on).transitions.map(
      ({ from, to, fromVersion, toVersion, count }) => `${from} ${to} ${fromVersion} ${toVersion} ${count}`,
    );
    assert.deepEqual(counted, [
      "Idle StagedAndPerformedUpdate 1.0.0 1.1.0 3",
      "StagedAndPerformedUpdate RebootedIntoUpdate 1.0.0 1.1.0 3",
      "RebootedIntoUpdate MonitoringUpdate 1.1.0 1.1.0 3",
      "MonitoringUpdate Idle 1.1.0 1.1.0 3",
    ]);
    const text = await on.metrics.render();
    assert.match(
      text,
      /zonewise_node_update_transitions_total\{policy="default",from="Idle",to="StagedAndPerformedUpdate",from_version="1.0.0",to_version="1.1.0"\} 3/,
    );
    assert.match(text, /brupop_hosts_version\{bottlerocket_version="1.1.0"\} 3/);
    assert.match(text, /brupop_hosts_version\{bottlerocket_version="1.0.0"\} 0/);
    assert.match(text, /brupop_hosts_state\{state="Idle"\} 3/);
  });

  it("tells what happens on Events of the Node and of its shadow", async () => {
    const on = await setUp();
    await play(on);
    for (const event of ["Node node-1 UpdateStarted", "Node node-1 NodeUpdated", "BottlerocketShadow brs-node-1 StateWanted"])
      assert.ok(events(on).includes(event), event);
  });

  it("obeys the policy at the next tick (R19), and freezes until a person clears it (R27, R35)", async () => {
    const on = await setUp();
    createPolicy(on, "default", { enabled: false });
    await on.tick();
    for (const node of NODES) stepAgent(on, node);
    await on.tick();
    assert.deepEqual(states(on), ["Idle", "Idle", "Idle"]);
    assert.equal(statusOf(on).skipped["Disabled"], 3);
    changePolicy(on, "default", { maxConcurrent: 1 });
    await on.tick();
    stepAgent(on, "node-1");
    await on.tick();
    setNode(on, "node-1", { bootId: "boot-2" });
    report(on, "node-1", { current_state: "ErrorReset", crash_count: 1, boot_id: "boot-2", failure_reason: "boot-2 runs 1.0.0" });
    await on.tick();
    const { frozen } = statusOf(on);
    assert.match(frozen?.message ?? "", /node-1: boot-2 runs 1.0.0/);
    assert.ok(events(on).includes("NodeUpdatePolicy default Frozen"));
    stepAgent(on, "node-1");
    for (let i = 0; i < 5; i++) await on.tick();
    assert.deepEqual(states(on), ["Idle", "Idle", "Idle"]);
    assert.match(await on.metrics.render(), /zonewise_node_updates_frozen\{policy="default"\} 1/);
    changePolicy(on, "default", { unfreeze: frozen?.id });
    await on.tick();
    assert.equal(states(on).filter((state) => state !== "Idle").length, 1);
  });

  it("deletes the shadow of a node that loses its label (R36), and leaves nothing on it (W13)", async () => {
    const on = await setUp();
    await on.tick();
    for (const node of NODES) stepAgent(on, node);
    await on.tick();
    assert.equal(states(on)[0], "StagedAndPerformedUpdate");
    label(on, "node-1", null);
    for (let i = 0; i < 10; i++) {
      await on.tick();
      await on.time.advance(60_000);
    }
    assert.equal(shadowOf(on, "node-1"), undefined);
    assert.ok(statusOf(on).active.every(({ node }) => node !== "node-1"));
  });

  it("loses the shadow with its Node (R38)", async () => {
    const on = await setUp();
    await on.tick();
    on.emulator.store.remove("nodes", undefined, "node-1");
    await on.time.advance(5000);
    assert.equal(shadowOf(on, "node-1"), undefined);
  });

  it("undoes a cordon of ours whose shadow is gone", async () => {
    const on = await setUp();
    const node = on.emulator.store.get("nodes", undefined, "node-1");
    if (!node) throw new Error("no node");
    const annotations = { "zonewise.dev/cordoned-by": "gone" };
    on.emulator.store.update("nodes", { ...node, metadata: { ...node.metadata, annotations }, spec: { unschedulable: true } });
    await on.tick();
    const after = on.emulator.store.get("nodes", undefined, "node-1") as unknown as { spec: object; metadata: { annotations?: object } };
    assert.deepEqual([after.spec, after.metadata.annotations ?? {}], [{}, {}]);
  });

  it("skips a node that two policies select, and says which", async () => {
    const on = await setUp();
    createPolicy(on, "one", {});
    createPolicy(on, "two", { nodeSelector: { "topology.kubernetes.io/zone": "zone-1" } });
    await on.tick();
    for (const node of NODES) stepAgent(on, node);
    await on.tick();
    assert.equal(statusOf(on, "two").skipped["SeveralPolicies"], 1);
    assert.equal(states(on)[0], "Idle");
  });

  it("survives a policy that is not valid, and says so on it", async () => {
    const on = await setUp();
    createPolicy(on, "bad", { window: { cron: "61 * * * * *", timeZone: "UTC" } });
    await on.tick();
    assert.ok(events(on).includes("NodeUpdatePolicy bad PolicyInvalid"));
    assert.ok(shadowOf(on, "node-1"));
  });

  it("is off where the definitions are missing, and says so once", async () => {
    const on = await setUp({ definitions: false });
    for (let i = 0; i < 3; i++) {
      assert.equal(await on.tick(), false);
      await on.time.advance(120_000);
    }
    assert.equal(on.logged.filter((line) => line.includes("node updates are off")).length, 1);
  });

  it("writes shadows into its namespace only", async () => {
    const on = await setUp();
    await on.tick();
    assert.deepEqual(
      on.emulator.store.list("bottlerocketshadows.brupop.bottlerocket.aws").map(({ metadata }) => metadata.namespace),
      [NAMESPACE, NAMESPACE, NAMESPACE],
    );
  });
});
