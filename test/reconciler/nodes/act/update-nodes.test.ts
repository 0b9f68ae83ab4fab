/** A whole campaign, tick by tick. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  changePolicy,
  createPolicy,
  eventsOf,
  NAMESPACE,
  NODES,
  type NodeStage,
  report,
  setFleet,
  setNode,
  shadowOf,
  statesOf,
  statusOf,
  stepAgent,
} from "./stage.ts";

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
  it("gives each shadow an owner reference to its Node, with which it goes, in one namespace", async (t) => {
    const on = await setFleet(t);
    await on.tick();
    const uid = on.emulator.store.get("nodes", undefined, "node-1")?.metadata.uid;
    assert.partialDeepStrictEqual(shadowOf(on, "node-1")?.metadata, {
      namespace: NAMESPACE,
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "node-1", uid }],
    });
    on.emulator.store.remove("nodes", undefined, "node-1");
    await on.time.advance(5000);
    assert.equal(shadowOf(on, "node-1"), undefined);
  });

  it("is off where the definitions are missing, and says so once", async (t) => {
    const on = await setFleet(t, { definitions: false });
    for (let i = 0; i < 3; i++) {
      assert.equal(await on.tick(), false);
      await on.time.advance(120_000);
    }
    assert.equal(on.logged.filter((line) => line.includes("node updates are off")).length, 1);
  });

  it("updates the nodes one after the other, tells of it, and writes nothing once it is settled (silence)", async (t) => {
    const on = await setFleet(t);
    const most: number[] = [];
    await play(on, () => most.push(statesOf(on).filter((state) => state !== "Idle").length));
    assert.equal(Math.max(...most), 1);
    assert.deepEqual(
      NODES.map((node) => shadowOf(on, node)?.status?.current_version),
      ["1.1.0", "1.1.0", "1.1.0"],
    );
    assert.deepEqual(statesOf(on), ["Idle", "Idle", "Idle"]);
    const { nodes, transitions } = statusOf(on);
    assert.deepEqual(nodes, { total: 3, upToDate: 3, waiting: 0, active: 0, failed: 0 });
    assert.deepEqual(
      transitions.map(({ from, to, fromVersion, toVersion, count }) =>
        [from, to, fromVersion, toVersion, count].join(" "),
      ),
      [
        "Idle StagedAndPerformedUpdate 1.0.0 1.1.0 3",
        "StagedAndPerformedUpdate RebootedIntoUpdate 1.0.0 1.1.0 3",
        "RebootedIntoUpdate MonitoringUpdate 1.1.0 1.1.0 3",
        "MonitoringUpdate Idle 1.1.0 1.1.0 3",
      ],
    );
    for (const event of ["Node node-1 UpdateStarted", "Node node-1 NodeUpdated"])
      assert.ok(eventsOf(on).includes(event), event);
    on.calls.length = 0;
    assert.equal(await on.tick(), false);
    assert.deepEqual(
      on.calls.filter((call) => !call.startsWith("GET")),
      [],
    );
  });

  it("takes the slot in the policy's status before it writes the shadow", async (t) => {
    const on = await setFleet(t);
    await on.tick();
    for (const node of NODES) stepAgent(on, node);
    on.calls.length = 0;
    await on.tick();
    const writes = on.calls.filter((call) => !call.startsWith("GET") && !call.includes("events"));
    assert.match(writes[0] ?? "", /PUT .*nodeupdatepolicies/);
    assert.match(writes[1] ?? "", /PATCH .*bottlerocketshadows/);
  });

  it("decides the same from the stored objects alone, whether one process ticks or a new one each time", async (t) => {
    const histories: string[][] = [];
    for (const isNew of [false, true]) {
      const on = await setFleet(t);
      const history: string[] = [];
      await play(on, () => {
        history.push(statesOf(on).join());
        if (isNew) on.restart();
      });
      histories.push(history);
    }
    assert.ok((histories[0]?.length ?? 0) > 10);
    assert.deepEqual(histories[1], histories[0]);
  });

  it("obeys the policy at the next tick, and freezes until a person clears it", async (t) => {
    const on = await setFleet(t);
    createPolicy(on, { enabled: false });
    await on.tick();
    for (const node of NODES) stepAgent(on, node);
    await on.tick();
    assert.deepEqual(statesOf(on), ["Idle", "Idle", "Idle"]);
    assert.equal(statusOf(on).skipped["Disabled"], 3);
    changePolicy(on, { maxConcurrent: 1 });
    await on.tick();
    stepAgent(on, "node-1");
    await on.tick();
    setNode(on, "node-1", { bootId: "boot-2" });
    report(on, "node-1", {
      current_state: "ErrorReset",
      crash_count: 1,
      boot_id: "boot-2",
      failure_reason: "boot-2 runs 1.0.0",
    });
    await on.tick();
    const { frozen } = statusOf(on);
    assert.match(frozen?.message ?? "", /node-1: boot-2 runs 1.0.0/);
    assert.ok(eventsOf(on).includes("NodeUpdatePolicy default Frozen"));
    stepAgent(on, "node-1");
    for (let i = 0; i < 5; i++) await on.tick();
    assert.deepEqual(statesOf(on), ["Idle", "Idle", "Idle"]);
    changePolicy(on, { unfreeze: frozen?.id });
    await on.tick();
    assert.equal(statesOf(on).filter((state) => state !== "Idle").length, 1);
  });
});
