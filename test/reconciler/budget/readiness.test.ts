import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readBudgetPod } from "../../../reconciler/budget/budget-pod.ts";
import { livingReservations, readReservations } from "../../../reconciler/budget/reservation.ts";
import { podObject } from "../builders.ts";
import { NOW, PARTITIONS, snapshot } from "./builders.ts";
import { decideEviction } from "../../../reconciler/budget/decide-eviction.ts";

const ago = (minutes: number): string => new Date(NOW - minutes * 60_000).toISOString();

interface Times {
  /** The last change of its Ready condition; null if that tells none. */
  readonly turned?: string | null;
  /** The start of its container. */
  readonly started?: string;
  readonly created?: string;
  readonly ready?: boolean;
  readonly terminating?: boolean;
  /** `grafana.com/ready-time`, as earlier versions wrote it. */
  readonly annotation?: string;
}

/** A pod with these times; it is two hours old by default. */
function budgetPod(times: Times = {}) {
  const { turned = ago(120), started = ago(120), created = ago(120), ready = true, terminating = false } = times;
  const object = podObject("ingester-zone-b", 0, { ready, terminating });
  const { status } = object;
  const { annotation } = times;
  return readBudgetPod({
    metadata: {
      ...object.metadata,
      creationTimestamp: created,
      ...(annotation !== undefined && { annotations: { "grafana.com/ready-time": annotation } }),
    },
    status: {
      ...status,
      conditions: (status?.conditions ?? []).map(({ type, status }) => ({
        type,
        status,
        ...(turned !== null && { lastTransitionTime: turned }),
      })),
      containerStatuses: (status?.containerStatuses ?? []).map((container) => ({
        ...container,
        state: { running: { startedAt: started } },
      })),
    },
  });
}

const unconditional = (): ReturnType<typeof budgetPod> => {
  const object = podObject("ingester-zone-b", 0);
  return readBudgetPod({ ...object, status: { ...object.status, conditions: [] } });
};

const DELAYS: readonly [string, ReturnType<typeof budgetPod>, string, boolean][] = [
  ["delay 0, and a condition that tells no time", budgetPod({ turned: null }), "0s", true],
  ["a condition that tells no time", budgetPod({ turned: null }), "1m", false],
  ["a condition whose time is none", budgetPod({ turned: "yesterday" }), "1m", false],
  ["no condition", unconditional(), "1m", false],
  ["ready for an hour", budgetPod({ turned: ago(60) }), "1m", true],
  ["not running", budgetPod({ ready: false }), "1m", false],
  ["terminating, and Ready for an hour", budgetPod({ terminating: true }), "1m", false],
  ["just ready", budgetPod({ turned: ago(0) }), "1m", false],
  ["ready for exactly the delay", budgetPod({ turned: ago(1) }), "1m", false],
  ["ready at a time to come, by its node's clock", budgetPod({ turned: ago(-60) }), "1m", false],
  ["a time with an offset", budgetPod({ turned: "2026-01-01T12:00:00+01:00" }), "1m", true],
  ["13.4 ready since before a restart", budgetPod({ started: ago(0.5) }), "1m", false],
  ["13.4 ready before it was there, by its node's clock", budgetPod({ created: ago(0.5) }), "1m", false],
  ["an annotation that says just now is ignored", budgetPod({ annotation: ago(0) }), "1m", true],
  ["an annotation that says long ago is ignored", budgetPod({ turned: ago(0.5), annotation: ago(60) }), "1m", false],
  ["an annotation in place of a time is ignored", budgetPod({ turned: null, annotation: ago(60) }), "1m", false],
];

describe("the cross-zone delay (E23, E24, 13.4)", () => {
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
      .map((zone) =>
        zone.name.endsWith("b") ? { ...zone, pods: [budgetPod({ turned: ago(1) }), ...zone.pods.slice(1)] } : zone,
      );
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
      .map((zone) => (zone.name.endsWith("b") ? { ...zone, pods: [budgetPod(), ...zone.pods.slice(1)] } : zone));
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
