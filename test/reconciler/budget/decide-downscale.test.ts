/** What budgets say to a downscale, and what a downscale means for the evictions beside it (§5.5, §5.11). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BudgetZone } from "../../../reconciler/budget/budget-pod.ts";
import { decideEviction } from "../../../reconciler/budget/decide-eviction.ts";
import { decideDownscale } from "../../../reconciler/budget/decide-downscale.ts";
import {
  downscaleKey,
  firstLeaving,
  livingReservations,
  presentIn,
  readDownscaleKey,
  readReservations,
  type Reservations,
} from "../../../reconciler/budget/reservation.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { statefulSetObject, type ZoneTraits } from "../builders.ts";
import { budget, budgetPods, NOW, PARTITIONS, snapshot } from "./builders.ts";

const UNREADY = { ready: false };
/** Zone b is to have as many pods as zone c. */
const FOLLOWS_C = { annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-c" } };
/** It was Ready for an hour, and is not any more. */
const FELL_ILL = { ready: false, restarts: 1, working: true };

/** Pods of a zone of 3 replicas whose `ordinals.start` is 7. */
const SEVEN_TO_NINE = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [i, i < 7 ? null : {}]));

const zoneOf = (letter: string, traits: ZoneTraits = {}): BudgetZone => {
  const named = { name: `ingester-zone-${letter}`, ...traits };
  return { ...readZone(statefulSetObject(named)), pods: budgetPods(named) };
};

function reservedFrom(letter: string, from: number, ageMs = 0): Reservations {
  const statefulSet = `ingester-zone-${letter}`;
  return {
    [downscaleKey({ statefulSet, from })]: {
      uid: `uid-${statefulSet}`,
      time: new Date(NOW - ageMs).toISOString(),
      by: "r",
    },
  };
}

const reservedPod = (name: string): Reservations => ({
  [name]: { uid: `uid-${name}`, time: new Date(NOW).toISOString(), by: "w" },
});

/** Of zones. */
const LETTERS = Array.from("abcdefghijklmnopqrstuvwxyz", (one) => [one, `${one}0`]).flat();

interface Downscale {
  readonly spec?: object;
  readonly zones?: Readonly<Record<string, ZoneTraits>>;
  /** The zones that the budget selects; three by default. */
  readonly only?: readonly string[];
  /** The first ordinal of zone c that goes. */
  readonly from?: number;
  readonly reservations?: Reservations;
  readonly now?: number;
}

function judge(downscale: Downscale): string {
  const { spec, zones = {}, only = ["a", "b", "c"], from = 2, reservations = {}, now = NOW } = downscale;
  const all = only.map((letter) => zoneOf(letter, zones[letter]));
  const { reason, message } = decideDownscale({
    now,
    budget: budget(spec),
    zones: all,
    reservations,
    uid: "uid-ingester-zone-c",
    from,
  });
  return reason === "Allowed" ? reason : `${reason}: ${message}`;
}

describe("a downscale of zone c under a budget", () => {
  const CASES: readonly [string, Downscale, string][] = [
    ["goes while the other zones are well", {}, "Allowed"],
    [
      "waits for an eviction of another zone",
      { reservations: reservedPod("ingester-zone-b-0") },
      "BudgetSpent: 1 pod not ready in ingester-zone-b",
    ],
    [
      "waits for a pod of another zone that is not ready",
      { zones: { a: { pods: { 1: UNREADY } } } },
      "BudgetSpent: 1 pod not ready in ingester-zone-a",
    ],
    [
      "waits for every other zone that shrinks",
      { zones: { a: { replicas: 1, pods: { 1: {}, 2: {} } } }, reservations: reservedFrom("b", 2) },
      "BudgetSpent: 2 pods to be removed in ingester-zone-a; 1 pod to be removed in ingester-zone-b",
    ],
    [
      "does not count its own zone",
      { zones: { c: { pods: { 0: UNREADY, 1: UNREADY } } }, reservations: reservedPod("ingester-zone-c-1") },
      "Allowed",
    ],
    ["goes as the only zone that the budget selects", { only: ["c"] }, "Allowed"],
    [
      "goes as the only zone, whatever is not ready in it",
      { only: ["c"], zones: { c: { pods: { 0: UNREADY } } } },
      "Allowed",
    ],
    ["goes to no pods beside one other zone", { only: ["b", "c"], from: 0 }, "Allowed"],
    ["goes in a group of 32 zones", { only: LETTERS.slice(0, 32) }, "Allowed"],
    [
      "is refused in a group of more zones",
      { only: LETTERS.slice(0, 33) },
      "TooManyZones: group ingester has 33 zones, more than 32",
    ],
    [
      "waits for the one other zone",
      { only: ["b", "c"], zones: { b: { pods: { 1: UNREADY } } } },
      "BudgetSpent: 1 pod not ready in ingester-zone-b",
    ],
    ["goes beside another zone of no pods", { only: ["b", "c"], zones: { b: { replicas: 0 } } }, "Allowed"],
    [
      "waits for the last pod of another zone of no replicas",
      { only: ["b", "c"], zones: { b: { replicas: 0, pods: { 0: {} } } } },
      "BudgetSpent: 1 pod to be removed in ingester-zone-b",
    ],
    [
      "partition: goes beside another zone of no pods",
      { spec: PARTITIONS, only: ["b", "c"], zones: { b: { replicas: 0 } } },
      "Allowed",
    ],
    ["goes although the budget allows no eviction", { spec: { maxUnavailable: 0 } }, "Allowed"],
    [
      "waits although the budget would allow more in one zone",
      { spec: { maxUnavailable: 9 }, reservations: reservedPod("ingester-zone-b-0") },
      "BudgetSpent: 1 pod not ready in ingester-zone-b",
    ],
    [
      "waits for no zone if its pods never became ready",
      { zones: { b: { pods: { 0: UNREADY } }, c: { pods: { 2: UNREADY } } } },
      "Allowed",
    ],
    [
      "waits if one of its pods serves, though it is not ready now",
      { zones: { b: { pods: { 0: UNREADY } }, c: { pods: { 2: FELL_ILL } } } },
      "BudgetSpent: 1 pod not ready in ingester-zone-b",
    ],
    [
      "waits for no pod that is to go as well and has not been ready for long",
      { zones: { b: { ...FOLLOWS_C, pods: { 2: UNREADY } } } },
      "Allowed",
    ],
    [
      "of a zone that begins at 7 means the same size for such a zone as of one that begins at 0",
      {
        zones: { b: { ...FOLLOWS_C, pods: { 2: UNREADY } }, c: { start: 7, pods: SEVEN_TO_NINE } },
        from: 9,
      },
      "Allowed",
    ],
    [
      "and tells by ordinals which of its pods go: one that never became ready waits for nobody",
      {
        zones: { b: { pods: { 2: UNREADY } }, c: { start: 7, pods: { ...SEVEN_TO_NINE, 9: UNREADY } } },
        from: 9,
      },
      "Allowed",
    ],
    [
      "waits for one that its zone is to keep",
      { zones: { b: { pods: { 2: UNREADY } } } },
      "BudgetSpent: 1 pod not ready in ingester-zone-b",
    ],
    [
      "waits for such a pod as long as it may come up",
      { zones: { b: { ...FOLLOWS_C, pods: { 2: UNREADY } } }, now: Date.parse("2026-01-01T00:04:59Z") },
      "BudgetSpent: 1 pod not ready in ingester-zone-b",
    ],
    [
      "partition: waits for no peer that is to go as well and has not been ready for long",
      { spec: PARTITIONS, zones: { b: { ...FOLLOWS_C, pods: { 2: UNREADY } } } },
      "Allowed",
    ],
    [
      "partition: waits for a peer",
      { spec: PARTITIONS, reservations: reservedPod("ingester-zone-b-2") },
      "BudgetSpent: 1 pod not ready in partition 2",
    ],
    [
      "partition: does not wait for another partition",
      { spec: PARTITIONS, reservations: reservedPod("ingester-zone-b-1") },
      "Allowed",
    ],
    [
      "partition: waits for none that has shrunk before",
      { spec: PARTITIONS, zones: { a: { replicas: 2 } } },
      "Allowed",
    ],
    [
      "partition: waits for one that shrinks",
      { spec: PARTITIONS, reservations: reservedFrom("a", 2) },
      "BudgetSpent: 1 pod to be removed in partition 2",
    ],
    [
      "partition: as many peers as the budget allows less one",
      { spec: { ...PARTITIONS, maxUnavailable: 2 }, reservations: reservedPod("ingester-zone-b-2") },
      "Allowed",
    ],
    ["partition: a budget of 0 counts as 1", { spec: { ...PARTITIONS, maxUnavailable: 0 } }, "Allowed"],
  ];
  for (const [name, downscale, expected] of CASES)
    it(`${name}: ${expected}`, () => assert.equal(judge(downscale), expected));
});

describe("an eviction beside a downscale", () => {
  function evict(
    pod: string,
    zones: Readonly<Record<string, ZoneTraits>>,
    reservations: Reservations = {},
    spec = {},
  ): string {
    const { reason, message } = decideEviction({ ...snapshot({ pod, zones, spec }), reservations });
    return reason === "Allowed" ? reason : message;
  }
  const STORED = { c: { replicas: 1, pods: { 1: {}, 2: {} } } };

  it("E29 is denied while another zone has ready pods beyond its replicas", () =>
    assert.equal(evict("zone-b-0", STORED), "2 pods to be removed in ingester-zone-c"));
  it("E29 is denied while another zone's downscale is reserved and not stored", () =>
    assert.equal(evict("zone-b-0", {}, reservedFrom("c", 1)), "2 pods to be removed in ingester-zone-c"));
  it("does not count them in its own zone, whose limit is about the pods that stay", () =>
    assert.equal(evict("zone-c-0", {}, reservedFrom("c", 2)), "Allowed"));
  it("counts no pod twice", () =>
    assert.equal(
      evict("zone-b-0", STORED, { ...reservedFrom("c", 1), ...reservedPod("ingester-zone-c-2") }),
      "1 pod not ready, 1 pod to be removed in ingester-zone-c",
    ));
  it("is allowed in another partition", () => assert.equal(evict("zone-b-0", STORED, {}, PARTITIONS), "Allowed"));
  it("is denied in the partition of a pod that goes", () =>
    assert.equal(evict("zone-b-2", {}, reservedFrom("c", 2), PARTITIONS), "1 pod to be removed in partition 2"));
});

describe("the reservation of a downscale", () => {
  it("has a key that no pod has as a name", () => {
    assert.equal(downscaleKey({ statefulSet: "ingester-zone-c", from: 2 }), "ingester-zone-c-2+");
    assert.deepEqual(readDownscaleKey("ingester-zone-c-2+"), { statefulSet: "ingester-zone-c", from: 2 });
    assert.equal(readDownscaleKey("ingester-zone-c-2"), undefined);
  });

  const livesOn = (reservations: Reservations, traits: ZoneTraits = {}): boolean =>
    Object.keys(livingReservations(reservations, presentIn([zoneOf("c", traits)]), NOW)).length > 0;
  const CASES: readonly [string, Reservations, ZoneTraits, boolean][] = [
    ["counts before it is stored", reservedFrom("c", 2), {}, true],
    ["counts if only a part of it is stored", reservedFrom("c", 1), { replicas: 2 }, true],
    ["ends once it is stored", reservedFrom("c", 2), { replicas: 2 }, false],
    ["ends once more than that is stored", reservedFrom("c", 2), { replicas: 1 }, false],
    ["counts as long as it may be stored", reservedFrom("c", 2, 89_999), {}, true],
    ["ends when it can no longer be stored", reservedFrom("c", 2, 90_000), {}, false],
    ["is of no other zone", reservedFrom("b", 2), {}, false],
    ["counts from the first ordinal on", reservedFrom("c", 5), { start: 3 }, true],
    ["is stored by ordinals", reservedFrom("c", 5), { start: 3, replicas: 2 }, false],
  ];
  for (const [name, reservations, traits, lives] of CASES)
    it(name, () => assert.equal(livesOn(reservations, traits), lives));

  it("ends with the StatefulSet of its UID", () => {
    const [[key, reservation] = ["", undefined]] = Object.entries(reservedFrom("c", 2));
    assert.ok(reservation);
    assert.equal(livesOn({ [key]: { ...reservation, uid: "earlier" } }), false);
    assert.equal(firstLeaving(zoneOf("c"), { [key]: { ...reservation, uid: "earlier" } }), Number.POSITIVE_INFINITY);
  });

  it("of two downscales of a zone, the one that takes more pods decides", () =>
    assert.equal(firstLeaving(zoneOf("c"), { ...reservedFrom("c", 2), ...reservedFrom("c", 1) }), 1));
});

describe("a reservation that somebody else wrote", () => {
  const present = { uidOfPod: () => "u", zone: () => undefined };

  it("needs no author", () =>
    assert.deepEqual(readReservations({ p: { uid: "u", time: "2026-01-01T12:00:00Z" } })["p"]?.by, ""));

  it("does not deny with an exception without one", () => {
    const reservations = readReservations({
      "ingester-zone-a-0": { uid: "uid-ingester-zone-a-0", time: new Date(NOW).toISOString() },
    });
    assert.equal(decideEviction({ ...snapshot({ pod: "zone-a-0" }), reservations }).reason, "AllowedAlready");
    assert.equal(decideEviction({ ...snapshot({ pod: "zone-b-0" }), reservations }).reason, "BudgetSpent");
  });

  it("counts as made now if its time is further ahead than clocks differ, so that it ends", () => {
    const time = new Date(NOW + 3_600_000).toISOString();
    const living = livingReservations({ p: { uid: "u", time, by: "" } }, present, NOW);
    assert.equal(living["p"]?.time, new Date(NOW).toISOString());
    const near = new Date(NOW + 4000).toISOString();
    assert.equal(livingReservations({ p: { uid: "u", time: near, by: "" } }, present, NOW)["p"]?.time, near);
  });
});
