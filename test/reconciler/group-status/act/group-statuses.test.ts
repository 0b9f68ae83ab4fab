/** RolloutGroups: their statuses, the generations that these state, and their lives. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hold } from "../../../../reconciler/model/decision.ts";
import { deploy } from "../../stage.ts";
import { conditionsOf, groupOf, GROUPS, onGroup, setStatusStage, startSession } from "./status-stage.ts";
import { add, amend } from "../../../builders/objects.ts";

const READY = "Ready=True AllZonesUpdated, Reconciling=False AllZonesUpdated, Stalled=False AllZonesUpdated";

onGroup("the status of a group", (on) => {
  it("is created by the first tick, owned by the zones, ready by the generations of the zones", () => {
    const { metadata, status } = groupOf(on.stage) ?? assert.fail("no RolloutGroup");
    assert.deepEqual(
      metadata.ownerReferences?.map(({ kind, name }) => `${kind}/${name}`),
      ["a", "b", "c"].map((zone) => `StatefulSet/ingester-zone-${zone}`),
    );
    assert.equal(conditionsOf(on.stage), READY);
    assert.deepEqual(status?.summary, { zones: "3/3", updated: "9/9", ready: "9/9" });
    assert.deepEqual([status?.phase, status?.observedGeneration, status?.plan, status?.holds], ["Ready", 1, [], []]);
    assert.deepEqual(
      status?.zones.map(({ generation, observedGeneration }) => [generation, observedGeneration]),
      [1, 1, 1].map((generation) => [generation, generation]),
    );
  });

  it("is not written again while the group stays as it is, and the tick costs its two lists", async () => {
    const version = groupOf(on.stage)?.metadata.resourceVersion;
    await on.stage.time.advance(60_000);
    on.session.calls.length = 0;
    await on.session.tick();
    assert.deepEqual(on.session.calls, [
      "GET zonewise.dev/v1/rolloutgroups collection",
      "GET apps/v1/statefulsets collection",
    ]);
    assert.equal(groupOf(on.stage)?.metadata.resourceVersion, version);
  });

  it("follows zones that change while all of them are settled in each tick", async () => {
    for (const replicas of [2, 3]) {
      deploy(on.stage, "x:1", { replicas });
      await on.stage.time.advance(20_000);
      await on.session.tick();
      const { phase, zones } = groupOf(on.stage)?.status ?? assert.fail("no RolloutGroup");
      assert.deepEqual([phase, ...zones.map(({ pods }) => pods)], ["Ready", replicas, replicas, replicas]);
    }
  });

  it("is not written by another process that finds it as it is, after one list of RolloutGroups", async () => {
    const version = groupOf(on.stage)?.metadata.resourceVersion;
    const next = startSession(on.stage);
    await next.tick();
    await next.end();
    const reads = next.calls.filter((call) => call.includes("rolloutgroups"));
    assert.deepEqual(new Set(reads), new Set(["GET zonewise.dev/v1/rolloutgroups collection"]));
    assert.equal(groupOf(on.stage)?.metadata.resourceVersion, version);
  });

  it("is not ready from the first tick after a new template on, and ready again at the end, with each zone's step between", async () => {
    deploy(on.stage, "x:2");
    await on.session.tickIn(1000);
    assert.match(conditionsOf(on.stage), /^Ready=False RollingOut, Reconciling=True RollingOut, Stalled=False/);
    const first = groupOf(on.stage)?.status;
    assert.deepEqual(first?.plan[0], {
      action: "ReplacePods",
      zone: "ingester-zone-a",
      count: 3,
      atOnce: 1,
      pods: [0, 1, 2].map((i) => `ingester-zone-a-${i}`),
    });
    assert.equal(first?.progress?.stepsLeft, 12);
    const seen = new Set<string>();
    for (let i = 0; i < 200 && conditionsOf(on.stage) !== READY; i++) {
      await on.session.tickIn(500);
      seen.add(`${groupOf(on.stage)?.status?.summary.zone} ${groupOf(on.stage)?.status?.summary.zones}`);
    }
    assert.equal(conditionsOf(on.stage), READY);
    for (const step of ["ingester-zone-a 0/3", "ingester-zone-b 1/3", "ingester-zone-c 2/3"])
      assert.ok(seen.has(step), step);
    const { progress } = groupOf(on.stage)?.status ?? {};
    assert.deepEqual([progress?.stepsLeft, progress?.completionTime], [0, progress?.lastStepTime]);
  });

  it("has one write under way at a time, and the latest status wins", async () => {
    const written: number[] = [];
    const stop = on.stage.emulator.store.subscribe(({ resource, type }) => {
      if (resource === GROUPS && type === "MODIFIED") written.push(on.stage.time.now());
    });
    deploy(on.stage, "x:3");
    for (let i = 0; i < 30; i++) {
      await on.session.tickIn(200);
    }
    stop();
    assert.ok(written.length >= 3 && written.length <= 31, `${written.length} writes`);
    const { zones } = groupOf(on.stage)?.status ?? assert.fail("no RolloutGroup");
    const sets = on.stage.emulator.store.list("statefulsets.apps", "default");
    assert.deepEqual(
      zones.map(({ updated }) => updated),
      sets.map(({ status }) => (status as { updatedReplicas?: number }).updatedReplicas ?? 0),
    );
  });
});

onGroup("the generations of a RolloutGroup: one", (on) => {
  /** That of its object, and the one that its status states. */
  const generations = () => [groupOf(on.stage)?.metadata.generation, groupOf(on.stage)?.status?.observedGeneration];

  it("that asks for a checkpoint is ready by it only after a tick that has read it before the StatefulSets", async () => {
    amend(on.stage.emulator.store, "RolloutGroup", "ingester", { spec: { checkpoint: "build-7" } });
    assert.deepEqual(generations(), [2, 1]);
    await on.session.tickIn(1000);
    const { status } = groupOf(on.stage) ?? {};
    assert.deepEqual(
      [status?.observedGeneration, status?.conditions.map((one) => one.observedGeneration)],
      [2, [2, 2, 2]],
    );
    assert.equal(conditionsOf(on.stage), READY);
  });

  it("that is changed while its status is written keeps the older generation until the next tick", async () => {
    deploy(on.stage, "x:2");
    await on.stage.time.advance(1000);
    let isChanged = false;
    const result = await on.session.tick({
      mayDisrupt: async () => {
        if (!isChanged) amend(on.stage.emulator.store, "RolloutGroup", "ingester", { spec: { checkpoint: "build-8" } });
        isChanged = true;
        return undefined;
      },
    });
    assert.equal(result.outcomes[0]?.state, "acted");
    await on.stage.time.advance(1000);
    await on.session.settled();
    assert.deepEqual(generations(), [3, 2]);
    await on.session.tickIn(1000);
    assert.equal(groupOf(on.stage)?.status?.observedGeneration, 3);
  });

  it("whose group has a step under way from before keeps the older generation, and confirms the newer one with the next step", async () => {
    const { outcomes } = await on.session.tick();
    const [outcome = assert.fail("no outcome")] = outcomes;
    const confirmed = groupOf(on.stage)?.status?.observedGeneration ?? 0;
    amend(on.stage.emulator.store, "RolloutGroup", "ingester", { spec: { checkpoint: "build-8b" } });
    await on.stage.time.advance(1000);
    // A tick that leaves the group out: its step has read the zones before the change.
    await on.session.statuses.beginTick(["default"], new Set(["default/ingester"]));
    on.session.statuses.report(
      { ...outcome, scalingHolds: [hold("LeaderNotFound", "waits", [])] },
      { tookMs: 2000, passes: 9 },
    );
    await on.stage.time.advance(1000);
    await on.session.settled();
    assert.deepEqual(generations(), [confirmed + 1, confirmed]);
    await on.session.tickIn(1000);
    assert.equal(groupOf(on.stage)?.status?.observedGeneration, confirmed + 1);
  });
});

onGroup("a RolloutGroup", (on) => {
  it("gets another owner with another zone, and is deleted with the last", async () => {
    deploy(on.stage, "x:2", { zones: ["d"] });
    await on.session.tickIn(3000);
    assert.equal(groupOf(on.stage)?.metadata.ownerReferences?.length, 4);
    for (const zone of ["a", "b", "c", "d"])
      on.stage.emulator.store.remove("statefulsets.apps", "default", `ingester-zone-${zone}`);
    await on.stage.time.advance(1000);
    assert.equal(groupOf(on.stage), undefined);
    await on.session.tick();
    assert.equal(groupOf(on.stage), undefined);
  });

  it("of a group that comes again knows nothing of the earlier one", async () => {
    deploy(on.stage, "x:1");
    await on.session.tickIn(3000);
    const { status } = groupOf(on.stage) ?? {};
    assert.deepEqual([status?.totals?.reconciles, status?.totals?.podsReplaced, status?.progress], [1, 0, undefined]);
  });

  it("of a group whose zones are all made anew between two ticks knows nothing of the earlier one", async () => {
    await on.session.settled();
    for (const zone of ["a", "b", "c"])
      on.stage.emulator.store.remove("statefulsets.apps", "default", `ingester-zone-${zone}`);
    await on.stage.time.advance(1000);
    assert.equal(groupOf(on.stage), undefined);
    deploy(on.stage, "x:1");
    await on.session.tickIn(3000);
    const { status } = groupOf(on.stage) ?? {};
    assert.deepEqual([status?.totals?.reconciles, status?.progress], [1, undefined]);
  });

  it("that a user deletes comes back, and begins anew", async () => {
    on.stage.emulator.store.remove(GROUPS, "default", "ingester");
    await on.session.tickIn(2000);
    assert.equal(groupOf(on.stage)?.status?.phase, "Ready");
    assert.equal(groupOf(on.stage)?.status?.totals?.reconciles, 1);
  });

  it("is not written over by a process that could not list it", async () => {
    const stored = on.stage.emulator.store.get(GROUPS, "default", "ingester") ?? assert.fail("no RolloutGroup");
    const status = groupOf(on.stage)?.status ?? assert.fail("no status");
    const before = { ...(status.totals ?? assert.fail("no totals")), podsReplaced: 50 };
    on.stage.emulator.store.update(GROUPS, { ...stored, status: { ...status, totals: before } });
    const effect = { kind: "error", code: 500, message: "etcd" } as const;
    const next = startSession(on.stage);
    on.stage.emulator.faults.inject({ effect, verb: "list", resource: GROUPS, times: 1 });
    deploy(on.stage, "x:2");
    await on.stage.time.advance(1000);
    await next.tick();
    assert.deepEqual(groupOf(on.stage)?.status?.totals, before);
    await on.stage.time.advance(1000);
    await next.tick();
    await next.end();
    const after = groupOf(on.stage)?.status?.totals ?? assert.fail("no totals");
    assert.ok(after.reconciles > before.reconciles && after.podsReplaced >= 50, JSON.stringify(after));
  });

  it("is removed when its zones are in another group from now on", async () => {
    deploy(on.stage, "x:1", { group: "store", zones: ["a"] });
    await on.session.tickIn(2000);
    assert.ok(groupOf(on.stage, "store"));
    const { store } = on.stage.emulator;
    amend(store, "StatefulSet", "store-zone-a", { labels: { "rollout-group": "Store_2" } });
    await on.session.tickIn(1000);
    assert.equal(groupOf(on.stage, "store"), undefined);
    const [left] = store.list(GROUPS, "default");
    assert.match(left?.metadata.name ?? "", /^group-store-2-[0-9a-f]{8}$/);
  });

  it("of a user without zones says that it is empty, and stays", async () => {
    add(on.stage.emulator.store, "RolloutGroup", "planned", { spec: { checkpoint: "1" } });
    await on.session.tick();
    assert.equal(
      conditionsOf(on.stage, "planned"),
      "Ready=False NoZones, Reconciling=True NoZones, Stalled=False NoZones",
    );
    assert.equal(groupOf(on.stage, "planned")?.metadata.ownerReferences, undefined);
  });
});

describe("without the definition of RolloutGroup", () => {
  it("ticks go on, one line says so, and nothing more is asked", async () => {
    const stage = await setStatusStage({ withDefinition: false });
    deploy(stage, "x:1");
    await stage.time.advance(2000);
    const session = startSession(stage);
    await session.tick();
    await session.tick();
    assert.deepEqual(session.calls, [
      "GET zonewise.dev/v1/rolloutgroups collection",
      "GET apps/v1/statefulsets collection",
      "GET apps/v1/statefulsets collection",
    ]);
    assert.deepEqual(session.logged, [
      ["info", "statuses of rollout groups are off: the definition rolloutgroups.zonewise.dev is not installed"],
    ]);
    await session.end();
    await stage.close();
  });
});
