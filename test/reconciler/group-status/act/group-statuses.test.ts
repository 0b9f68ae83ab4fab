import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { deploy, type Stage } from "../../stage.ts";
import {
  conditionsOf,
  groupOf,
  GROUPS,
  setStatusStage,
  startGroup,
  startSession,
  type Session,
} from "./status-stage.ts";

const READY = "Ready=True AllZonesUpdated, Reconciling=False AllZonesUpdated, Stalled=False AllZonesUpdated";

describe("the status of a group", () => {
  let stage: Stage;
  let session: Session;
  let end: () => Promise<void>;
  before(async () => void ({ stage, session, end } = await startGroup()));
  after(() => end());

  it("is created by the first tick, owned by the zones, ready by the generations of the zones", async () => {
    await session.tick();
    const { metadata, status } = groupOf(stage) ?? assert.fail("no RolloutGroup");
    assert.deepEqual(
      metadata.ownerReferences?.map(({ kind, name }) => `${kind}/${name}`),
      ["a", "b", "c"].map((zone) => `StatefulSet/ingester-zone-${zone}`),
    );
    assert.equal(conditionsOf(stage), READY);
    assert.deepEqual(status?.summary, { zones: "3/3", updated: "9/9", ready: "9/9" });
    assert.deepEqual([status?.phase, status?.observedGeneration, status?.plan, status?.holds], ["Ready", 1, [], []]);
    assert.deepEqual(
      status?.zones.map(({ generation, observedGeneration }) => [generation, observedGeneration]),
      [1, 1, 1].map((generation) => [generation, generation]),
    );
  });

  it("is not written again while the group stays as it is, and the tick costs its two lists", async () => {
    const version = groupOf(stage)?.metadata.resourceVersion;
    await stage.time.advance(60_000);
    session.calls.length = 0;
    await session.tick();
    assert.deepEqual(session.calls, [
      "GET zonewise.dev/v1/rolloutgroups collection",
      "GET apps/v1/statefulsets collection",
    ]);
    assert.equal(groupOf(stage)?.metadata.resourceVersion, version);
  });

  it("follows zones that change while all of them are settled in each tick", async () => {
    for (const replicas of [2, 3]) {
      deploy(stage, "x:1", { replicas });
      await stage.time.advance(20_000);
      await session.tick();
      const { phase, zones } = groupOf(stage)?.status ?? assert.fail("no RolloutGroup");
      assert.deepEqual([phase, ...zones.map(({ pods }) => pods)], ["Ready", replicas, replicas, replicas]);
    }
  });

  it("is not written by another process that finds it as it is, after one list of RolloutGroups", async () => {
    const version = groupOf(stage)?.metadata.resourceVersion;
    const next = startSession(stage);
    await next.tick();
    await next.end();
    const reads = next.calls.filter((call) => call.includes("rolloutgroups"));
    assert.deepEqual(new Set(reads), new Set(["GET zonewise.dev/v1/rolloutgroups collection"]));
    assert.equal(groupOf(stage)?.metadata.resourceVersion, version);
  });

  it("is not ready from the first tick after a new template on, and ready again at the end, with each zone's step between", async () => {
    deploy(stage, "x:2");
    await stage.time.advance(1000);
    await session.tick();
    assert.match(conditionsOf(stage), /^Ready=False RollingOut, Reconciling=True RollingOut, Stalled=False/);
    const first = groupOf(stage)?.status;
    assert.deepEqual(first?.plan[0], {
      action: "ReplacePods",
      zone: "ingester-zone-a",
      count: 3,
      atOnce: 1,
      pods: [0, 1, 2].map((i) => `ingester-zone-a-${i}`),
    });
    assert.equal(first?.progress?.stepsLeft, 12);
    const seen = new Set<string>();
    for (let i = 0; i < 200 && conditionsOf(stage) !== READY; i++) {
      await stage.time.advance(500);
      await session.tick();
      seen.add(`${groupOf(stage)?.status?.summary.zone} ${groupOf(stage)?.status?.summary.zones}`);
    }
    assert.equal(conditionsOf(stage), READY);
    for (const step of ["ingester-zone-a 0/3", "ingester-zone-b 1/3", "ingester-zone-c 2/3"])
      assert.ok(seen.has(step), step);
    const { progress } = groupOf(stage)?.status ?? {};
    assert.deepEqual([progress?.stepsLeft, progress?.completionTime], [0, progress?.lastStepTime]);
  });

  it("has one write under way at a time, and the latest status wins", async () => {
    const written: number[] = [];
    const stop = stage.emulator.store.subscribe(({ resource, type }) => {
      if (resource === GROUPS && type === "MODIFIED") written.push(stage.time.now());
    });
    deploy(stage, "x:3");
    for (let i = 0; i < 30; i++) {
      await stage.time.advance(200);
      await session.tick();
    }
    stop();
    assert.ok(written.length >= 3 && written.length <= 31, `${written.length} writes`);
    const { zones } = groupOf(stage)?.status ?? assert.fail("no RolloutGroup");
    const sets = stage.emulator.store.list("statefulsets.apps", "default");
    assert.deepEqual(
      zones.map(({ updated }) => updated),
      sets.map(({ status }) => (status as { updatedReplicas?: number }).updatedReplicas ?? 0),
    );
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
