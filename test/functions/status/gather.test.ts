/** What the page reads of the embedded cluster, and what it costs. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createReader } from "../../../functions/status/gather.ts";
import { isUnread, keyOf, listPart, UNREAD } from "../../../functions/status/view/records.ts";
import { formatTotals, TOTALS } from "../../../infra/metrics/totals.ts";
import type { RolloutGroupStatus } from "../../../reconciler/group-status/status.ts";
import { define } from "../../demo/definitions.ts";
import type { Draft } from "../../emulator/objects.ts";
import { writeLease } from "../../cli/stage.ts";
import { createZone, setStage } from "../stage.ts";
import { stored, NOW, zone } from "./samples.ts";
import { add, make, pod } from "../../builders/objects.ts";

const LEASE = { namespace: "default", name: "zonewise-reconciler" };
const GROUPS = "rolloutgroups.zonewise.dev";

/** A reader with a clock that the test sets. */
async function setReader(t: TestContext, ...definitions: readonly string[]) {
  return await setReaderOf(t, ["default"], definitions);
}

async function setReaderOf(t: TestContext, namespaces: readonly string[], definitions: readonly string[]) {
  const stage = await setStage(t);
  await define(stage.emulator.store, definitions);
  writeLease({ emulator: stage.emulator, clock: { now: () => NOW } }, { tickedMs: 2000, holder: "zonewise-1" });
  const clock = { at: 0, monotonic: () => clock.at };
  const { cluster } = stage;
  const options = { cluster, now: () => NOW, namespaces, lease: LEASE, cronJob: "zonewise-reconciler" };
  return { stage, store: stage.emulator.store, clock, read: createReader(options, clock) };
}

const groupOf = (name: string, status: Partial<RolloutGroupStatus>, namespace = "default"): Draft =>
  make("RolloutGroup", name, { namespace, status: { group: name, ...status } });

const both = ["rolloutgroups", "zoneawarepoddisruptionbudgets"] as const;

describe("the status page", { timeout: 300_000 }, () => {
  it("reads a settled cluster with five calls, whoever looks, and with none for 2 s", async (t) => {
    const { stage, store, clock, read } = await setReader(t, ...both);
    store.create(GROUPS, groupOf("store", { phase: "Ready" }));
    await Promise.all([read(undefined), read(undefined)]);
    clock.at = 1999;
    await read(undefined);
    assert.equal(stage.calls.length, 5, stage.calls.join("\n"));
    clock.at = 2000;
    await read(undefined);
    assert.equal(stage.calls.length, 10, stage.calls.join("\n"));
    assert.ok(stage.calls.every((call) => call.startsWith("GET ")));
  });

  it("reads the pods of groups that are not done, by their owners, and of a done one that is shown alone", async (t) => {
    const { store, stage, read } = await setReader(t, ...both);
    for (const name of ["store", "other"]) {
      const { metadata } = createZone(stage, `${name}-zone-a`, { group: name, ready: 2 });
      const owner = { name: `${name}-zone-a`, uid: metadata?.uid ?? "" };
      // As a runtime names it that writes the default registry out.
      const container = { name: "c", ready: false, image: "docker.io/library/nginx:1.28", state: { running: {} } };
      const status = { phase: "Running", containerStatuses: [container] };
      store.create("pods", pod(`${name}-zone-a-3`, { labels: { name: owner.name }, owner, status }));
      store.create(
        GROUPS,
        groupOf(name, { phase: name === "store" ? "Waiting" : "Ready", zones: [zone(`${name}-zone-a`)] }),
      );
    }
    store.create("pods", pod("stranger", { labels: { name: "store-zone-a" } }));
    const { zones, problems } = await read(undefined);
    assert.deepEqual(problems, []);
    assert.deepEqual([...zones.keys()], ["default/store"]);
    const [found] = zones.get("default/store") ?? [];
    assert.deepEqual([found?.name, found?.images.length], ["store-zone-a", 1]);
    assert.deepEqual(found?.pods[3]?.images, ["nginx:1.28"]);
    const shown = found?.pods.map(({ name, health }) => [name, health.state === "ready"]);
    assert.deepEqual(shown, [
      ["store-zone-a-0", true],
      ["store-zone-a-1", true],
      ["store-zone-a-2", false],
      ["store-zone-a-3", false],
    ]);
    assert.deepEqual([...(await read("default/other")).zones.keys()], ["default/other"]);
  });

  it("does not read pods one by one where there are thousands", async (t) => {
    const { store, read } = await setReader(t, ...both);
    const sizes = { huge: 2900, large: 200, small: 50 };
    for (const [name, pods] of Object.entries(sizes))
      store.create(
        GROUPS,
        groupOf(name, {
          phase: "RollingOut",
          holds: [stored({ since: `2026-11-22T02:0${name === "huge" ? 0 : 1}:00Z` })],
          zones: [zone("a", { pods })],
        }),
      );
    assert.deepEqual([...(await read(undefined)).zones.keys()], ["default/huge", "default/small"]);
  });

  it("reads the tick, the certificate, reservations and our Events alone", async (t) => {
    const { store, read } = await setReader(t, ...both);
    const series = new Map([
      ["zonewise_certificate_expiry_timestamp_seconds", [{ labels: { namespace: "default" }, value: NOW / 1000 }]],
    ]);
    const totals = formatTotals({ passes: 7, lastTick: "2026-11-22T02:59:58Z", series });
    const lease = store.get("leases.coordination.k8s.io", "default", LEASE.name) ?? assert.fail();
    const metadata = { ...lease.metadata, annotations: { [TOTALS]: totals } };
    store.update("leases.coordination.k8s.io", { ...lease, metadata });
    const uid = "3d3b5b0a-0000-4000-8000-000000000000";
    const time = "2026-11-22T02:59:00Z";
    const disruptedPods = { "a-0": { kind: "eviction", uid, pinned: true, time, by: "x" } };
    add(store, "ZoneAwarePodDisruptionBudget", "b", { spec: {}, status: { disruptedPods } });
    for (const [name, reportingComponent, lastTimestamp] of [
      ["a", "zonewise", "2026-11-22T02:00:00Z"],
      ["b", "zonewise", "2026-11-22T02:30:00Z"],
      ["of-the-same-second", "zonewise", "2026-11-22T02:30:00Z"],
      ["c", "kubelet", "2026-11-22T02:59:00Z"],
    ] as const)
      add(store, "Event", name, {
        involvedObject: { kind: "Pod", name },
        reason: name,
        type: "Normal",
        reportingComponent,
        lastTimestamp,
      });
    const { reconciler, budgets, decisions } = await read(undefined);
    assert.deepEqual(reconciler, { holder: "zonewise-1", lastTick: "2026-11-22T02:59:58Z", certificateExpiry: NOW });
    assert.deepEqual(
      listPart(budgets).map(({ reservations }) => reservations),
      [disruptedPods],
    );
    assert.deepEqual(
      listPart(decisions).map(({ object }) => object),
      ["Pod default/of-the-same-second", "Pod default/b", "Pod default/a"],
    );
  });

  it("says that the reconciler does not tick, and why", async (t) => {
    const { stage, store, clock, read } = await setReader(t, ...both);
    const clockOfLease = { emulator: stage.emulator, clock: { now: () => NOW } };
    writeLease(clockOfLease, { holder: "", tickedMs: 250_000, renewedMs: 250_000 });
    add(store, "CronJob", "zonewise-reconciler", {
      spec: { suspend: true },
      status: { lastScheduleTime: "2026-11-22T02:00:00Z" },
    });
    const { reconciler } = await read(undefined);
    assert.ok(reconciler !== UNREAD);
    assert.equal(
      reconciler.noTick?.message,
      "the reconciler has not run since 2026-11-22T02:55:50Z (4m10s ago): CronJob default/zonewise-reconciler is suspended",
    );
    writeLease(clockOfLease, { tickedMs: 5000 });
    clock.at = 2000;
    const later = (await read(undefined)).reconciler;
    assert.equal(later !== UNREAD && later.noTick, undefined);
  });

  it("shows a cluster without our definitions as one without groups and budgets", async (t) => {
    const { read } = await setReader(t);
    const { groups, budgets, problems } = await read(undefined);
    assert.deepEqual([groups, budgets, problems], [undefined, undefined, []]);
  });

  it("reports what cannot be read, and reads the rest", async (t) => {
    const { stage, store, read } = await setReader(t, ...both);
    add(store, "ZoneAwarePodDisruptionBudget", "b", { spec: {} });
    stage.emulator.faults.inject({ resource: GROUPS, verb: "list", effect: { kind: "error" } });
    const { groups, budgets, problems } = await read(undefined);
    assert.deepEqual([groups, listPart(budgets).length], [UNREAD, 1]);
    assert.match(problems.join("\n"), /^the rollout groups could not be read: .+$/);
  });

  it("does not take what cannot be read for nothing", async (t) => {
    const { stage, read } = await setReader(t, ...both);
    stage.emulator.faults.inject({ verb: "list", effect: { kind: "error" } });
    stage.emulator.faults.inject({ verb: "get", effect: { kind: "error" } });
    const { groups, budgets, decisions, reconciler, problems } = await read("default/store");
    assert.deepEqual([groups, budgets, decisions, reconciler], [UNREAD, UNREAD, UNREAD, UNREAD]);
    assert.equal(problems.length, 4);
    for (const problem of problems) assert.match(problem, / could not be read: /);
  });

  it("reads the namespaces beside one that forbids it", async (t) => {
    const { stage, store, read } = await setReaderOf(t, ["gone", "default"], both);
    createZone(stage, "zone-a", { group: "store", ready: 0 });
    for (const namespace of ["gone", "default"])
      store.create(GROUPS, groupOf("store", { phase: "Waiting", zones: [zone("zone-a")] }, namespace));
    add(store, "Event", "e", { involvedObject: { kind: "Pod", name: "e" }, reportingComponent: "zonewise" });
    stage.emulator.faults.inject({ verb: "list", namespace: "gone", effect: { kind: "forbidden" } });
    const { groups, decisions, zones, problems } = await read(undefined);
    assert.deepEqual(listPart(groups).map(keyOf), ["default/store"]);
    assert.deepEqual(
      listPart(decisions).map(({ object }) => object),
      ["Pod default/e"],
    );
    assert.deepEqual(
      [...zones].map(([key, [found]]) => [key, found?.pods.length]),
      [["default/store", 3]],
    );
    assert.match(problems.join("\n"), /^the rollout groups of namespace gone could not be read: .+$/m);
    assert.equal(problems.length, 3);
  });

  it("takes a namespace that cannot be read for no empty one", async (t) => {
    const { stage, store, read } = await setReaderOf(t, ["gone", "default"], both);
    store.create(GROUPS, groupOf("store", { phase: "Ready" }));
    stage.emulator.faults.inject({ verb: "list", namespace: "gone", effect: { kind: "forbidden" } });
    const found = await read("gone/store");
    assert.deepEqual(listPart(found.groups).map(keyOf), ["default/store"]);
    assert.deepEqual(
      ["gone/store", "default/other", undefined].map((focus) => isUnread(found, focus)),
      [true, false, false],
    );
    assert.match(found.problems.join("\n"), /^the rollout groups of namespace gone could not be read: /m);
  });
});
