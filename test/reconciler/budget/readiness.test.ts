import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readBudgetPod } from "../../../reconciler/budget/budget-pod.ts";
import { livingReservations, readReservations } from "../../../reconciler/budget/reservation.ts";
import { podObject } from "../builders.ts";
import { NOW, PARTITIONS, snapshot } from "./builders.ts";
import { decideEviction } from "../../../reconciler/budget/decide-eviction.ts";

const ago = (minutes: number): string => new Date(NOW - minutes * 60_000).toISOString();

/** A pod with these times: its annotation, the last transition of its Ready condition, the start of its container. */
function budgetPod(annotation: string | undefined, { turned = ago(120), started = ago(120), ready = true } = {}) {
  const object = podObject("ingester-zone-b", 0, { ready });
  const { status } = object;
  return readBudgetPod({
    metadata: {
      ...object.metadata,
      ...(annotation !== undefined && { annotations: { "grafana.com/ready-time": annotation } }),
    },
    status: {
      ...status,
      conditions: (status?.conditions ?? []).map((condition) => ({ ...condition, lastTransitionTime: turned })),
      containerStatuses: (status?.containerStatuses ?? []).map((container) => ({
        ...container,
        state: { running: { startedAt: started } },
      })),
    },
  });
}

const DELAYS: readonly [string, ReturnType<typeof budgetPod>, string, boolean][] = [
  ["delay 0, without the annotation", budgetPod(undefined), "0s", true],
  ["without the annotation", budgetPod(undefined), "1m", false],
  ["ready for an hour", budgetPod(ago(60)), "1m", true],
  ["not running", budgetPod(ago(60), { ready: false }), "1m", false],
  ["just ready", budgetPod(ago(0)), "1m", false],
  ["ready for exactly the delay", budgetPod(ago(1)), "1m", false],
  ["an annotation that is not a time", budgetPod("yesterday"), "1m", false],
  ["an annotation from the future", budgetPod(ago(-60)), "1m", false],
  ["an annotation with an offset", budgetPod("2026-01-01T12:00:00+01:00"), "1m", true],
  ["13.4 an annotation from before the pod was unready", budgetPod(ago(60), { turned: ago(0.5) }), "1m", false],
  ["13.4 an annotation from before a restart", budgetPod(ago(60), { started: ago(0.5) }), "1m", false],
];

describe("the cross-zone delay (E23, 13.4)", () => {
  for (const [name, peer, crossZoneEvictionDelay, ready] of DELAYS) {
    it(`${name}: ${ready ? "ready" : "not ready"}`, () => {
      const whole = snapshot({ pod: "zone-a-0", spec: { ...PARTITIONS, crossZoneEvictionDelay } });
      const zones = whole.zones
        .slice(0, 2)
        .map((zone) => (zone.name.endsWith("b") ? { ...zone, pods: [peer, ...zone.pods.slice(1)] } : zone));
      assert.equal(decideEviction({ ...whole, zones }).reason, ready ? "Allowed" : "BudgetSpent");
    });
  }

  it("ends a moment after it has passed", () => {
    const whole = snapshot({ pod: "zone-a-0", spec: { ...PARTITIONS, crossZoneEvictionDelay: "1m" }, now: NOW + 1 });
    const zones = whole.zones
      .slice(0, 2)
      .map((zone) => (zone.name.endsWith("b") ? { ...zone, pods: [budgetPod(ago(1)), ...zone.pods.slice(1)] } : zone));
    assert.equal(decideEviction({ ...whole, zones }).reason, "Allowed");
  });

  it("a reservation counts as not ready, however long the pod has been ready", () => {
    const whole = snapshot({
      pod: "zone-a-0",
      spec: { ...PARTITIONS, crossZoneEvictionDelay: "1m" },
      reserved: ["zone-b-0"],
    });
    const zones = whole.zones
      .slice(0, 2)
      .map((zone) => (zone.name.endsWith("b") ? { ...zone, pods: [budgetPod(ago(60)), ...zone.pods.slice(1)] } : zone));
    assert.equal(decideEviction({ ...whole, zones }).reason, "BudgetSpent");
  });
});

describe("a reservation (E20, E21, E22)", () => {
  const entry = (time: string, uid = "u") => ({ pod: { uid, time, by: "x" } });
  const CASES: readonly [string, object, string | undefined, boolean][] = [
    ["counts from the start", entry(ago(0)), "u", true],
    ["counts for almost 2 minutes", entry(ago(1.99)), "u", true],
    ["is over after 2 minutes", entry(ago(2)), "u", false],
    ["counts if the other process's clock is ahead", entry(ago(-5)), "u", true],
    ["is over once the pod is gone", entry(ago(0)), undefined, false],
    ["is over once another pod has its name", entry(ago(0)), "v", false],
    ["counts without its author", { pod: { uid: "u", time: ago(0) } }, "u", true],
    ["is none without a time", { pod: { uid: "u", time: "soon" } }, "u", false],
    ["is none without a UID", { pod: { time: ago(0) } }, "u", false],
    ["is none if it is something else", { pod: 5 }, "u", false],
    ["is none if it is nothing", { pod: null }, "u", false],
  ];
  for (const [name, written, uid, counts] of CASES) {
    it(name, () =>
      assert.equal(
        "pod" in livingReservations(readReservations(written), { uidOfPod: () => uid, zone: () => undefined }, NOW),
        counts,
      ),
    );
  }
  for (const written of [undefined, null, "text", 7]) {
    it(`nothing is read from ${JSON.stringify(written)}`, () => assert.deepEqual(readReservations(written), {}));
  }
});
