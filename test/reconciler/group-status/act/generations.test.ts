/** Which generation of a RolloutGroup its status states: never one that was not read before the StatefulSets. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { hold } from "../../../../reconciler/model/decision.ts";
import { deploy, type Stage } from "../../stage.ts";
import { conditionsOf, groupOf, GROUPS, startGroup, type Session } from "./status-stage.ts";

const READY = "Ready=True AllZonesUpdated, Reconciling=False AllZonesUpdated, Stalled=False AllZonesUpdated";

describe("a RolloutGroup", () => {
  let stage: Stage;
  let session: Session;
  let end: () => Promise<void>;
  before(async () => {
    ({ stage, session, end } = await startGroup());
    await session.tick();
  });
  after(() => end());

  it("that asks for a checkpoint is ready by it only after a tick that has read it before the StatefulSets", async () => {
    const { cluster } = stage.connect();
    await cluster.change(
      { group: "zonewise.dev", version: "v1", plural: "rolloutgroups" },
      {
        namespace: "default",
        name: "ingester",
        type: "merge",
        body: { spec: { checkpoint: "build-7" } },
      },
    );
    assert.deepEqual([groupOf(stage)?.metadata.generation, groupOf(stage)?.status?.observedGeneration], [2, 1]);
    await stage.time.advance(1000);
    await session.tick();
    await stage.time.advance(1000);
    await session.settled();
    const { status } = groupOf(stage) ?? {};
    assert.deepEqual(
      [status?.observedGeneration, status?.conditions.map((one) => one.observedGeneration)],
      [2, [2, 2, 2]],
    );
    assert.equal(conditionsOf(stage), READY);
  });

  it("that is changed while its status is written keeps the older generation until the next tick", async () => {
    deploy(stage, "x:2");
    await stage.time.advance(1000);
    const earlier = groupOf(stage) ?? assert.fail("no RolloutGroup");
    let isChanged = false;
    const result = await session.tick({
      mayDisrupt: async () => {
        if (!isChanged) stage.emulator.store.update(GROUPS, { ...earlier, spec: { checkpoint: "build-8" } } as never);
        isChanged = true;
        return undefined;
      },
    });
    assert.equal(result.outcomes[0]?.state, "acted");
    await stage.time.advance(1000);
    await session.settled();
    assert.deepEqual([groupOf(stage)?.metadata.generation, groupOf(stage)?.status?.observedGeneration], [3, 2]);
    await stage.time.advance(1000);
    await session.tick();
    await stage.time.advance(1000);
    await session.settled();
    assert.equal(groupOf(stage)?.status?.observedGeneration, 3);
  });

  it("whose group has a step under way from before keeps the older generation, and confirms the newer one with the next step", async () => {
    const { outcomes } = await session.tick();
    const [outcome = assert.fail("no outcome")] = outcomes;
    const confirmed = groupOf(stage)?.status?.observedGeneration ?? 0;
    const before = groupOf(stage) ?? assert.fail("no RolloutGroup");
    stage.emulator.store.update(GROUPS, { ...before, spec: { checkpoint: "build-8b" } } as never);
    await stage.time.advance(1000);
    // A tick that leaves the group out: its step has read the zones before the change.
    await session.statuses.beginTick(["default"], new Set(["default/ingester"]));
    session.statuses.report(
      { ...outcome, scalingHolds: [hold("LeaderNotFound", "waits", [])] },
      { tookMs: 2000, passes: 9 },
    );
    await stage.time.advance(1000);
    await session.settled();
    assert.deepEqual(
      [groupOf(stage)?.metadata.generation, groupOf(stage)?.status?.observedGeneration],
      [confirmed + 1, confirmed],
    );
    await stage.time.advance(1000);
    await session.tick();
    await stage.time.advance(1000);
    await session.settled();
    assert.equal(groupOf(stage)?.status?.observedGeneration, confirmed + 1);
  });
});
