/** What a tick keeps right beside the updates. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  createPolicy,
  eventsOf,
  label,
  NAMESPACE,
  NODES,
  setFleet,
  shadowOf,
  statesOf,
  statusOf,
  stepAgent,
} from "./stage.ts";
import { amend } from "../../../builders.ts";

describe("shadows, policies and cordons on the embedded cluster", () => {
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

  it("deletes the shadow of a node that loses its label, and leaves nothing on it", async (t) => {
    const on = await setFleet(t);
    await on.tick();
    for (const node of NODES) stepAgent(on, node);
    await on.tick();
    assert.equal(statesOf(on)[0], "StagedAndPerformedUpdate");
    label(on, "node-1", null);
    for (let i = 0; i < 10; i++) {
      await on.tick();
      await on.time.advance(60_000);
    }
    assert.equal(shadowOf(on, "node-1"), undefined);
    assert.ok(statusOf(on).active.every(({ node }) => node !== "node-1"));
  });

  it("undoes a cordon of ours whose shadow is gone", async (t) => {
    const on = await setFleet(t);
    const annotations = { "zonewise.dev/cordoned-by": "gone" };
    amend(on.emulator.store, "Node", "node-1", { annotations, spec: { unschedulable: true } });
    await on.tick();
    const after = on.emulator.store.get("nodes", undefined, "node-1") as unknown as {
      spec: object;
      metadata: { annotations?: object };
    };
    assert.deepEqual([after.spec, after.metadata.annotations ?? {}], [{}, {}]);
  });

  it("survives a policy that is not valid, and says so on it", async (t) => {
    const on = await setFleet(t);
    createPolicy(on, { window: { cron: "61 * * * * *", timeZone: "UTC" } });
    await on.tick();
    assert.ok(eventsOf(on).includes("NodeUpdatePolicy default PolicyInvalid"));
    assert.ok(shadowOf(on, "node-1"));
  });

  it("is off where the definitions are missing, and says so once", async (t) => {
    const on = await setFleet(t, { definitions: false });
    for (let i = 0; i < 3; i++) {
      assert.equal(await on.tick(), false);
      await on.time.advance(120_000);
    }
    assert.equal(on.logged.filter((line) => line.includes("node updates are off")).length, 1);
  });
});
