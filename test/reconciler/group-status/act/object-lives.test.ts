/** When a RolloutGroup comes and goes, and whose it is. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { deploy, type Stage } from "../../stage.ts";
import { conditionsOf, groupOf, GROUPS, startGroup, startSession, type Session } from "./status-stage.ts";
import { amend } from "../../../builders.ts";

describe("a RolloutGroup", () => {
  let stage: Stage;
  let session: Session;
  let end: () => Promise<void>;
  before(async () => {
    ({ stage, session, end } = await startGroup());
    await session.tick();
  });
  after(() => end());

  it("gets another owner with another zone, and is deleted with the last", async () => {
    deploy(stage, "x:2", { zones: ["d"] });
    await stage.time.advance(3000);
    await session.tick();
    await stage.time.advance(1000);
    await session.settled();
    assert.equal(groupOf(stage)?.metadata.ownerReferences?.length, 4);
    for (const zone of ["a", "b", "c", "d"])
      stage.emulator.store.remove("statefulsets.apps", "default", `ingester-zone-${zone}`);
    await stage.time.advance(1000);
    assert.equal(groupOf(stage), undefined);
    await session.tick();
    assert.equal(groupOf(stage), undefined);
  });

  it("of a group that comes again knows nothing of the earlier one", async () => {
    deploy(stage, "x:1");
    await stage.time.advance(3000);
    await session.tick();
    const { status } = groupOf(stage) ?? {};
    assert.deepEqual([status?.totals?.reconciles, status?.totals?.podsReplaced, status?.progress], [1, 0, undefined]);
  });

  it("of a group whose zones are all made anew between two ticks knows nothing of the earlier one", async () => {
    await session.settled();
    for (const zone of ["a", "b", "c"])
      stage.emulator.store.remove("statefulsets.apps", "default", `ingester-zone-${zone}`);
    await stage.time.advance(1000);
    assert.equal(groupOf(stage), undefined);
    deploy(stage, "x:1");
    await stage.time.advance(3000);
    await session.tick();
    await stage.time.advance(1000);
    await session.settled();
    const { status } = groupOf(stage) ?? {};
    assert.deepEqual([status?.totals?.reconciles, status?.progress], [1, undefined]);
  });

  it("that a user deletes comes back, and begins anew", async () => {
    stage.emulator.store.remove(GROUPS, "default", "ingester");
    await stage.time.advance(2000);
    await session.tick();
    await stage.time.advance(1000);
    await session.settled();
    assert.equal(groupOf(stage)?.status?.phase, "Ready");
    assert.equal(groupOf(stage)?.status?.totals?.reconciles, 1);
  });

  it("is not written over by a process that could not list it", async () => {
    const stored = stage.emulator.store.get(GROUPS, "default", "ingester") ?? assert.fail("no RolloutGroup");
    const status = groupOf(stage)?.status ?? assert.fail("no status");
    const before = { ...(status.totals ?? assert.fail("no totals")), podsReplaced: 50 };
    stage.emulator.store.update(GROUPS, { ...stored, status: { ...status, totals: before } });
    const effect = { kind: "error", code: 500, message: "etcd" } as const;
    const next = startSession(stage);
    stage.emulator.faults.inject({ effect, verb: "list", resource: GROUPS, times: 1 });
    deploy(stage, "x:2");
    await stage.time.advance(1000);
    await next.tick();
    assert.deepEqual(groupOf(stage)?.status?.totals, before);
    await stage.time.advance(1000);
    await next.tick();
    await next.end();
    const after = groupOf(stage)?.status?.totals ?? assert.fail("no totals");
    assert.ok(after.reconciles > before.reconciles && after.podsReplaced >= 50, JSON.stringify(after));
  });

  it("is removed when its zones are in another group from now on", async () => {
    deploy(stage, "x:1", { group: "store", zones: ["a"] });
    await stage.time.advance(2000);
    await session.tick();
    assert.ok(groupOf(stage, "store"));
    const { store } = stage.emulator;
    amend(store, "StatefulSet", "store-zone-a", { labels: { "rollout-group": "Store_2" } });
    await stage.time.advance(1000);
    await session.tick();
    assert.equal(groupOf(stage, "store"), undefined);
    const [left] = store.list(GROUPS, "default");
    assert.match(left?.metadata.name ?? "", /^group-store-2-[0-9a-f]{8}$/);
  });

  it("of a user without zones says that it is empty, and stays", async () => {
    const metadata = { name: "planned", namespace: "default" };
    stage.emulator.store.create(GROUPS, {
      apiVersion: "zonewise.dev/v1",
      kind: "RolloutGroup",
      metadata,
      spec: { checkpoint: "1" },
    });
    await session.tick();
    assert.equal(
      conditionsOf(stage, "planned"),
      "Ready=False NoZones, Reconciling=True NoZones, Stalled=False NoZones",
    );
    assert.equal(groupOf(stage, "planned")?.metadata.ownerReferences, undefined);
  });
});
