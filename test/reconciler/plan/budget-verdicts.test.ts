/** Budgets, gates and orphaned zones in a look ahead. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Reservation } from "../../../reconciler/budget/reservation.ts";
import { nextStep } from "../../../reconciler/plan/next-step.ts";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { OUTDATED, withBudget, zonesOf } from "../../cli/decide/worlds.ts";
import { gateOf } from "../../builders/gates.ts";
import { worldOf } from "../../builders/groups.ts";
import { LAST } from "../../builders/zones.ts";
import type { World } from "../../../reconciler/plan/world.ts";

it("a budget of one pod makes batches of one, whatever the rollout may take at once", () => {
  const { steps, end } = planGroup(withBudget([OUTDATED, {}, {}], { maxUnavailable: 1 }), 100);
  assert.deepEqual(
    steps.map(({ pods = [] }) => pods.length),
    [1, 1, 1, 0],
  );
  assert.equal(end, "settled");
});

const reservedBefore = (world: World, uid: string): Reservation => ({
  kind: "eviction",
  uid,
  pinned: true,
  time: new Date(world.now - 60_000).toISOString(),
  by: "x",
});

it("a reservation of an eviction in another zone is waited for, until it expires", () => {
  const world = withBudget([OUTDATED, {}, {}], {});
  const reserved = reservedBefore(world, "uid-ingester-zone-b-0");
  const budgets = world.budgets.map((budget) => ({ ...budget, reservations: { "ingester-zone-b-0": reserved } }));
  const [first] = planGroup({ ...world, budgets }, 1).steps;
  assert.deepEqual([first?.waits, first?.waitMs], [["BudgetSpent"], 60_000]);
});

it("a zone that is to shrink waits for a reservation in another zone, too", () => {
  const follower = { annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-a" } };
  const world = withBudget([{ replicas: 2 }, follower, {}], {});
  const reserved = reservedBefore(world, "uid-ingester-zone-c-0");
  const budgets = world.budgets.map((budget) => ({ ...budget, reservations: { "ingester-zone-c-0": reserved } }));
  const [first] = planGroup({ ...world, budgets }, 1).steps;
  assert.deepEqual([first?.action, first?.waits, first?.waitMs], ["ScaleZone", ["BudgetSpent"], 60_000]);
});

const HOUR = 3_600_000;
const DELAYED = {
  maxUnavailable: 1,
  podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)",
  crossZoneEvictionDelay: "1h",
};

it("a pod that does not tell since when it is ready blocks for good, as it does in a tick", () => {
  const world = withBudget([OUTDATED, {}, {}], DELAYED);
  const silent = world.zones.map((zone) => ({
    ...zone,
    pods: zone.pods.map((pod) => ({ ...pod, readySince: undefined })),
  }));
  const { steps, end, holds } = planGroup({ ...world, zones: silent }, 100);
  assert.deepEqual([steps, end, holds.map(({ reason }) => reason)], [[], "blocked", ["BudgetSpent"]]);
});

it("pods of another group under the budget are waited for until their delay is over", () => {
  const world = withBudget([OUTDATED, {}], DELAYED);
  const [other] = withBudget([{ name: "other-zone-b" }], {}).zones;
  const pods = other?.pods.map((pod) => ({ ...pod, readySince: world.now - HOUR / 2 })) ?? [];
  const old = world.zones.map((zone) => ({
    ...zone,
    pods: zone.pods.map((pod) => ({ ...pod, readySince: world.now - 2 * HOUR })),
  }));
  const budgets = world.budgets.map((budget) => ({ ...budget, others: other ? [{ ...other, pods }] : [] }));
  const { steps, end } = planGroup({ ...world, zones: old, budgets }, 100);
  assert.deepEqual([steps[0]?.waits, steps[0]?.waitMs, end], [["BudgetSpent"], HOUR / 2 + 1, "settled"]);
});

it("a long wait under a budget is one wait, whether a pod can come up or not", () => {
  const at = (hours: number): string => new Date(Date.parse("2026-01-01T12:00:00Z") - hours * HOUR).toISOString();
  const leader = { replicas: 2, annotations: { "grafana.com/last-downscale": at(1) } };
  const follower = {
    labels: { "grafana.com/min-time-between-zones-downscale": "12h" },
    annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-a" },
  };
  const [step] = planGroup(withBudget([leader, follower], {}), 1).steps;
  assert.deepEqual([step?.action, step?.waits, step?.waitMs], ["ScaleZone", ["MinTimeBetweenZones"], 11 * HOUR + 1]);
  const broken = {
    ...OUTDATED,
    updateRevision: OUTDATED.at ?? "",
    pods: { 0: { ready: false, broken: "CrashLoopBackOff" } },
  };
  const { end, endsAt } = planGroup(withBudget([broken, OUTDATED], {}), 100);
  assert.deepEqual([end, endsAt], ["blocked", Date.parse("2026-01-01T12:00:00Z")]);
});

it("a budget that is spent by a broken pod is held by that pod", () => {
  const annotations = { "rollout-max-unavailable": "2" };
  const begun = { ...OUTDATED, annotations, pods: { 0: { ready: false, broken: "CrashLoopBackOff", revision: LAST } } };
  const { hold } = nextStep(withBudget([begun, { ...OUTDATED, annotations }], { maxUnavailable: 1 }));
  assert.equal(hold?.reason, "BudgetSpent");
  assert.match(hold?.message ?? "", /^ingester-zone-a-0: CrashLoopBackOff; ingester-zone-a-1 stays: 1 pod not ready/);
  assert.deepEqual([hold?.culprit?.name, hold?.culprit?.isBroken], ["ingester-zone-a-0", true]);
  assert.match(hold?.dedupKey ?? "", /^ingester-zone-a-1 stays/);
});

const CRASHING = { ready: false, broken: "CrashLoopBackOff" };

it("a check that compares is taken to pass too, and a plan that is blocked has the steps that are left", () => {
  const within = { successWhen: "WithinBaseline", baseline: { expr: "up", maxRatio: "2" } };
  const planned = planGroup(worldOf(zonesOf(OUTDATED, OUTDATED), { gates: [gateOf({ check: within })] }), 100);
  assert.deepEqual([planned.end, planned.remaining], ["settled", []]);
  const paused = {
    ...OUTDATED,
    annotations: { "grafana.com/rollout-paused": "true" },
    statusReady: 2,
    pods: { 0: CRASHING },
  };
  const { end, steps, remaining } = planGroup(worldOf(zonesOf(paused, OUTDATED)), 100);
  assert.deepEqual([end, steps.length], ["blocked", 0]);
  assert.deepEqual(
    remaining.map(({ action, zone, count }) => [action, zone, count]),
    [
      ["ReplacePods", "ingester-zone-b", 3],
      ["FinishZone", "ingester-zone-b", undefined],
    ],
  );
});

it("a gate between zones adds the time of its checks, which are taken to pass", () => {
  const zones = zonesOf(OUTDATED, OUTDATED);
  const { steps, end } = planGroup(worldOf(zones, { gates: [gateOf()] }), 100);
  assert.equal(end, "settled");
  const next = steps.find(({ zone, action }) => zone === "ingester-zone-b" && action === "ReplacePods");
  assert.deepEqual(next?.waits, ["GateWaiting"]);
  // Two successes in a row, ten seconds apart.
  assert.equal(next?.waitMs, 10_000);
});

it("a group that has pods and no StatefulSet any more waits for them", () => {
  const { end, holds } = planGroup(worldOf([], { orphans: zonesOf({}) }), 1);
  assert.deepEqual([end, holds.map(({ reason }) => reason)], ["blocked", ["ZoneOrphaned"]]);
});
