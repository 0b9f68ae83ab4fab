import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { hold, type Reason } from "../../../reconciler/model/decision.ts";
import { deploy, type Stage } from "../stage.ts";
import { conditionsOf, groupOf, GROUPS, setStatusStage, startGroup, startTerm, type Term, until } from "./status-stage.ts";

const READY = "Ready=True AllZonesUpdated, Reconciling=False AllZonesUpdated, Stalled=False AllZonesUpdated";

describe("the status of a group", () => {
  let stage: Stage;
  let term: Term;
  let end: () => Promise<void>;
  before(async () => void ({ stage, term, end } = await startGroup()));
  after(() => end());

  it("is created by the first tick, owned by the zones, ready by the generations of the zones", async () => {
    await term.tick();
    const { metadata, status } = groupOf(stage) ?? assert.fail("no RolloutGroup");
    assert.deepEqual(
      metadata.ownerReferences?.map(({ kind, name }) => `${kind}/${name}`),
      ["a", "b", "c"].map((zone) => `StatefulSet/ingester-zone-${zone}`),
    );
    assert.equal(conditionsOf(stage), READY);
    assert.deepEqual(status?.summary, { zones: "3/3", updated: "9/9", ready: "9/9" });
    assert.deepEqual([status?.phase, status?.observedGeneration, status?.plan, status?.blocked], ["Ready", 1, [], []]);
    assert.deepEqual(
      status?.zones.map(({ generation, observedGeneration }) => [generation, observedGeneration]),
      [1, 1, 1].map((generation) => [generation, generation]),
    );
  });

  it("is not written again while the group stays as it is, and the tick costs its one list", async () => {
    const version = groupOf(stage)?.metadata.resourceVersion;
    await stage.time.advance(60_000);
    term.calls.length = 0;
    await term.tick();
    assert.deepEqual(term.calls, ["GET apps/v1/statefulsets collection"]);
    assert.equal(groupOf(stage)?.metadata.resourceVersion, version);
  });

  it("is not written by another process that finds it as it is, after one list of RolloutGroups", async () => {
    const version = groupOf(stage)?.metadata.resourceVersion;
    const next = startTerm(stage);
    await next.tick();
    await next.end();
    const reads = next.calls.filter((call) => call.includes("rolloutgroups"));
    assert.deepEqual(new Set(reads), new Set(["GET zonewise.dev/v1/rolloutgroups collection"]));
    assert.equal(groupOf(stage)?.metadata.resourceVersion, version);
  });

  it("is not ready from the first tick after a new template on, and ready again at the end, with each zone's step between", async () => {
    deploy(stage, "x:2");
    await stage.time.advance(1000);
    await term.tick();
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
      await term.tick();
      seen.add(`${groupOf(stage)?.status?.summary.zone} ${groupOf(stage)?.status?.summary.zones}`);
    }
    assert.equal(conditionsOf(stage), READY);
    for (const step of ["ingester-zone-a 0/3", "ingester-zone-b 1/3", "ingester-zone-c 2/3"]) assert.ok(seen.has(step), step);
    const { progress } = groupOf(stage)?.status ?? {};
    assert.deepEqual([progress?.stepsLeft, progress?.completionTime], [0, progress?.lastStepTime]);
  });

  it("is written at most once a second, and the latest status wins", async () => {
    const written: number[] = [];
    const stop = stage.emulator.store.subscribe(({ resource, type }) => {
      if (resource === GROUPS && type === "MODIFIED") written.push(stage.time.now());
    });
    deploy(stage, "x:3");
    for (let i = 0; i < 30; i++) {
      await stage.time.advance(200);
      await term.tick();
    }
    stop();
    assert.ok(written.length >= 3, `${written.length} writes`);
    const pauses = written.slice(1).map((at, i) => at - (written[i] ?? 0));
    assert.ok(Math.min(...pauses) >= 1000, pauses.join());
  });
});

describe("a RolloutGroup", () => {
  let stage: Stage;
  let term: Term;
  let end: () => Promise<void>;
  before(async () => {
    ({ stage, term, end } = await startGroup());
    await term.tick();
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
    await until(() => term.changes() === 1);
    assert.deepEqual([groupOf(stage)?.metadata.generation, groupOf(stage)?.status?.observedGeneration], [2, 1]);
    await stage.time.advance(1000);
    await term.tick();
    await stage.time.advance(1000);
    await term.settled();
    const { status } = groupOf(stage) ?? {};
    assert.deepEqual([status?.observedGeneration, status?.conditions.map((one) => one.observedGeneration)], [2, [2, 2, 2]]);
    assert.equal(conditionsOf(stage), READY);
  });

  it("that is changed while its status is written keeps the older generation until the next tick", async () => {
    deploy(stage, "x:2");
    await stage.time.advance(1000);
    const earlier = groupOf(stage) ?? assert.fail("no RolloutGroup");
    let isChanged = false;
    const result = await term.tick({
      mayDisrupt: async () => {
        if (!isChanged) stage.emulator.store.update(GROUPS, { ...earlier, spec: { checkpoint: "build-8" } } as never);
        isChanged = true;
        return undefined;
      },
    });
    assert.equal(result.outcomes[0]?.state, "acted");
    await stage.time.advance(1000);
    await term.settled();
    assert.deepEqual([groupOf(stage)?.metadata.generation, groupOf(stage)?.status?.observedGeneration], [3, 2]);
    await stage.time.advance(1000);
    await term.tick();
    await stage.time.advance(1000);
    await term.settled();
    assert.equal(groupOf(stage)?.status?.observedGeneration, 3);
  });

  it("that is read again between the list of a tick and the group's turn keeps the older generation as well", async () => {
    const { outcomes } = await term.tick();
    const [outcome = assert.fail("no outcome")] = outcomes;
    const report = (reason: Reason): void =>
      term.statuses.report({ ...outcome, scalingHolds: [hold(reason, "waits", [])] }, { tookMs: 0, passes: 1 });
    await stage.time.advance(1000);
    await term.statuses.beginTick(["default"]);
    const before = groupOf(stage) ?? assert.fail("no RolloutGroup");
    stage.emulator.store.update(GROUPS, { ...before, spec: { checkpoint: "build-9" } } as never);
    report("LeaderNotFound");
    for (const reason of ["LeaderCycle", "LeaderNotReady"] as const) {
      await term.settled();
      await stage.time.advance(1000);
      await term.settled();
      report(reason);
    }
    await stage.time.advance(1000);
    await term.settled();
    const { metadata, status } = groupOf(stage) ?? {};
    assert.equal(status?.summary.blockedBy, "LeaderNotReady");
    assert.equal(metadata?.generation, (before.metadata.generation ?? 0) + 1);
    assert.equal(status.observedGeneration, before.metadata.generation);
  });

  it("gets another owner with another zone, and is deleted with the last", async () => {
    deploy(stage, "x:2", { zones: ["d"] });
    await stage.time.advance(3000);
    await term.tick();
    await stage.time.advance(1000);
    await term.settled();
    assert.equal(groupOf(stage)?.metadata.ownerReferences?.length, 4);
    for (const zone of ["a", "b", "c", "d"]) stage.emulator.store.remove("statefulsets.apps", "default", `ingester-zone-${zone}`);
    await stage.time.advance(1000);
    assert.equal(groupOf(stage), undefined);
    await term.tick();
    assert.equal(groupOf(stage), undefined);
  });

  it("of a group that comes again knows nothing of the earlier one", async () => {
    deploy(stage, "x:1");
    await stage.time.advance(3000);
    await term.tick();
    const { status } = groupOf(stage) ?? {};
    assert.deepEqual([status?.totals?.reconciles, status?.totals?.podsReplaced, status?.progress], [1, 0, undefined]);
  });

  it("that a user deletes comes back with its totals", async () => {
    const before = groupOf(stage)?.status?.totals ?? assert.fail("no totals");
    stage.emulator.store.remove(GROUPS, "default", "ingester");
    const seen = term.changes();
    await until(() => term.changes() > seen);
    await stage.time.advance(2000);
    await term.tick();
    await stage.time.advance(1000);
    await term.settled();
    assert.equal(groupOf(stage)?.status?.phase, "Ready");
    assert.ok((groupOf(stage)?.status?.totals?.reconciles ?? 0) > before.reconciles);
  });

  it("is removed when its zones are in another group from now on", async () => {
    deploy(stage, "x:1", { group: "store", zones: ["a"] });
    await stage.time.advance(2000);
    await term.tick();
    assert.ok(groupOf(stage, "store"));
    const { store } = stage.emulator;
    const set = store.get("statefulsets.apps", "default", "store-zone-a") ?? assert.fail("no StatefulSet");
    store.update("statefulsets.apps", { ...set, metadata: { ...set.metadata, labels: { "rollout-group": "Store_2" } } });
    await stage.time.advance(1000);
    await term.tick();
    assert.equal(groupOf(stage, "store"), undefined);
    const [left] = store.list(GROUPS, "default");
    assert.match(left?.metadata.name ?? "", /^group-store-2-[0-9a-f]{8}$/);
  });

  it("of a user without zones says that it is empty, and stays", async () => {
    const metadata = { name: "planned", namespace: "default" };
    stage.emulator.store.create(GROUPS, { apiVersion: "zonewise.dev/v1", kind: "RolloutGroup", metadata, spec: { checkpoint: "1" } });
    const seen = term.changes();
    await until(() => term.changes() > seen);
    await term.tick();
    assert.equal(conditionsOf(stage, "planned"), "Ready=False NoZones, Reconciling=False NoZones, Stalled=False NoZones");
    assert.equal(groupOf(stage, "planned")?.metadata.ownerReferences, undefined);
  });
});

describe("without the definition of RolloutGroup", () => {
  it("ticks go on, one line says so, and nothing more is asked", async () => {
    const stage = await setStatusStage({ withDefinition: false });
    deploy(stage, "x:1");
    await stage.time.advance(2000);
    const term = startTerm(stage);
    await term.tick();
    await term.tick();
    assert.deepEqual(term.calls, [
      "GET zonewise.dev/v1/rolloutgroups collection",
      "GET apps/v1/statefulsets collection",
      "GET apps/v1/statefulsets collection",
    ]);
    assert.deepEqual(term.logged, [
      ["info", "statuses of rollout groups are off: the definition rolloutgroups.zonewise.dev is not installed"],
    ]);
    await term.end();
    await stage.close();
  });
});
