/** What budgets say to a downscale, and what a downscale means for the evictions beside it (§5.5, §5.11). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ownerNameOf } from "../../../reconciler/model/order.ts";
import { PARTITIONS, reservationOf as reservedPod, storedBudget } from "../../builders/budgets.ts";
import { NOON, traitsOf, type ZoneTraits } from "../../builders/zones.ts";
import { factsOf } from "./scene.ts";
import { startProcess, type Facts } from "./adapter.ts";

const UNREADY = { ready: false };
const unready = (where: string): string => `BudgetSpent: 1 pod not ready in ${where}`;
/** Zone b is to have as many pods as zone c. */
const FOLLOWS_C = { annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-c" } };
/** It was Ready for an hour, and is not any more. */
const FELL_ILL = { ready: false, restarts: 1, working: true };

/** A pod that an eviction has reserved. */
const evicted = (pod: string): object => reservedPod(`ingester-${pod}`);

/** Pods of a zone of 3 replicas whose `ordinals.start` is 7. */
const SEVEN_TO_NINE = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [i, i < 7 ? null : {}]));

/** The reservation of a downscale, as it is stored. */
function reservedFrom(letter: string, from: number, ageMs = 0, uid = `uid-ingester-zone-${letter}`): object {
  const time = new Date(NOON - ageMs).toISOString();
  return { [`ingester-zone-${letter}/${from}`]: { kind: "downscale", uid, from, pinned: true, time, by: "r" } };
}

/** Of zones. */
const LETTERS = Array.from("abcdefghijklmnopqrstuvwxyz", (one) => [one, `${one}0`]).flat();

interface Downscale {
  readonly spec?: object;
  readonly zones?: Readonly<Record<string, ZoneTraits | string>>;
  /** The zones that the budget selects; three by default. */
  readonly only?: readonly string[];
  /** The first ordinal of zone c that goes. */
  readonly from?: number;
  readonly reservations?: object;
  readonly now?: number;
  /** To forced replicas (§2.3). */
  readonly forced?: true;
}

function worldOf({ spec = {}, zones = {}, only = ["a", "b", "c"], reservations, now = NOON }: Downscale): Facts {
  const facts = factsOf({ zones: Object.fromEntries(only.map((letter) => [letter, zones[letter] ?? {}])), now });
  const isThere = (name = ""): boolean => only.some((letter) => name === `ingester-zone-${letter}`);
  return {
    now,
    budgets: [storedBudget(spec, reservations ? [reservations] : [])],
    statefulSets: facts.statefulSets.filter(({ metadata }) => isThere(metadata?.name)),
    pods: facts.pods.filter(({ metadata }) => isThere(ownerNameOf(metadata?.name ?? ""))),
  };
}

async function judge(downscale: Downscale): Promise<string> {
  const { from = 2, zones = {}, forced } = downscale;
  const to = from - (traitsOf(zones["c"] ?? {}).start ?? 0);
  const process = startProcess(worldOf(downscale));
  const { reason, message } = await process.downscale({ statefulSet: "ingester-zone-c", to, forced });
  return reason === "Allowed" ? reason : `${reason}: ${message.replaceAll("ingester-", "")}`;
}

describe("a downscale of zone c under a budget", () => {
  const CASES: readonly [string, Downscale, string][] = [
    ["goes while the other zones are well", {}, "Allowed"],
    ["waits for an eviction of another zone", { reservations: evicted("zone-b-0") }, unready("zone-b")],
    ["waits for a pod of another zone that is not ready", { zones: { a: "nn!n" } }, unready("zone-a")],
    [
      "waits for every other zone that shrinks",
      { zones: { a: "nnn of 1" }, reservations: reservedFrom("b", 2) },
      "BudgetSpent: 2 pods to be removed in zone-a; 1 pod to be removed in zone-b",
    ],
    ["does not count its own zone", { zones: { c: "n!n!n" }, reservations: evicted("zone-c-1") }, "Allowed"],
    ["goes as the only zone that the budget selects", { only: ["c"] }, "Allowed"],
    ["goes as the only zone, whatever is not ready in it", { only: ["c"], zones: { c: "n!nn" } }, "Allowed"],
    ["goes to no pods beside one other zone", { only: ["b", "c"], from: 0 }, "Allowed"],
    ["goes in a group of 32 zones", { only: LETTERS.slice(0, 32) }, "Allowed"],
    [
      "is refused in a group of more zones",
      { only: LETTERS.slice(0, 33) },
      "TooManyZones: group ingester has 33 zones, more than 32",
    ],
    ["waits for the one other zone", { only: ["b", "c"], zones: { b: "nn!n" } }, unready("zone-b")],
    ["goes beside another zone of no pods", { only: ["b", "c"], zones: { b: { replicas: 0 } } }, "Allowed"],
    [
      "waits for the last pod of another zone of no replicas",
      { only: ["b", "c"], zones: { b: "n of 0" } },
      "BudgetSpent: 1 pod to be removed in zone-b",
    ],
    [
      "partition: goes beside another zone of no pods",
      { spec: PARTITIONS, only: ["b", "c"], zones: { b: { replicas: 0 } } },
      "Allowed",
    ],
    [
      "waits for a budget that is not valid",
      { spec: { maxUnavailable: -1 } },
      "BudgetInvalid: zoned pod disruption budget ingester is not valid: invalid value: max unavailable must be 0 <= val, got -1",
    ],
    ["to forced replicas does not wait for one", { spec: { maxUnavailable: -1 }, forced: true }, "Allowed"],
    ["nor for an eviction of another zone", { reservations: evicted("zone-b-0"), forced: true }, "Allowed"],
    ["goes although the budget allows no eviction", { spec: { maxUnavailable: 0 } }, "Allowed"],
    [
      "waits although the budget would allow more in one zone",
      { spec: { maxUnavailable: 9 }, reservations: evicted("zone-b-0") },
      unready("zone-b"),
    ],
    ["waits for no zone if its pods never became ready", { zones: { b: "n!nn", c: "nnn!" } }, "Allowed"],
    [
      "waits if one of its pods serves, though it is not ready now",
      { zones: { b: "n!nn", c: { pods: { 2: FELL_ILL } } } },
      unready("zone-b"),
    ],
    [
      "waits for no pod that is to go as well and has not been ready for long",
      { zones: { b: { ...FOLLOWS_C, pods: { 2: UNREADY } } } },
      "Allowed",
    ],
    [
      "of a zone that begins at 7 means the same size for such a zone as of one that begins at 0",
      { zones: { b: { ...FOLLOWS_C, pods: { 2: UNREADY } }, c: { start: 7, pods: SEVEN_TO_NINE } }, from: 9 },
      "Allowed",
    ],
    [
      "and tells by ordinals which of its pods go: one that never became ready waits for nobody",
      { zones: { b: "nnn!", c: { start: 7, pods: { ...SEVEN_TO_NINE, 9: UNREADY } } }, from: 9 },
      "Allowed",
    ],
    ["waits for one that its zone is to keep", { zones: { b: "nnn!" } }, unready("zone-b")],
    [
      "waits for such a pod as long as it may come up",
      { zones: { b: { ...FOLLOWS_C, pods: { 2: UNREADY } } }, now: Date.parse("2026-01-01T00:04:59Z") },
      unready("zone-b"),
    ],
    [
      "partition: waits for no peer that is to go as well and has not been ready for long",
      { spec: PARTITIONS, zones: { b: { ...FOLLOWS_C, pods: { 2: UNREADY } } } },
      "Allowed",
    ],
    ["partition: waits for a peer", { spec: PARTITIONS, reservations: evicted("zone-b-2") }, unready("partition 2")],
    [
      "partition: does not wait for another partition",
      { spec: PARTITIONS, reservations: evicted("zone-b-1") },
      "Allowed",
    ],
    ["partition: waits for none that has shrunk before", { spec: PARTITIONS, zones: { a: "nn" } }, "Allowed"],
    [
      "partition: waits for one that shrinks",
      { spec: PARTITIONS, reservations: reservedFrom("a", 2) },
      "BudgetSpent: 1 pod to be removed in partition 2",
    ],
    [
      "partition: as many peers as the budget allows less one",
      { spec: { ...PARTITIONS, maxUnavailable: 2 }, reservations: evicted("zone-b-2") },
      "Allowed",
    ],
    ["partition: a budget of 0 counts as 1", { spec: { ...PARTITIONS, maxUnavailable: 0 } }, "Allowed"],
  ];
  for (const [name, downscale, expected] of CASES)
    it(`${name}: ${expected}`, async () => assert.equal(await judge(downscale), expected));
});

describe("an eviction beside a downscale", () => {
  async function evict(
    pod: string,
    zones: Readonly<Record<string, ZoneTraits | string>>,
    reservations: object = {},
    spec: object = {},
  ): Promise<string> {
    const process = startProcess(worldOf({ zones, reservations, spec }));
    const { reason, message } = await process.evict({ pod: `ingester-${pod}` });
    return reason === "Allowed" ? reason : message.replaceAll("ingester-", "");
  }
  const STORED = { c: { replicas: 1, pods: { 1: {}, 2: {} } } };
  const TWO = { ...reservedFrom("c", 1), ...evicted("zone-c-2") };
  const FROM_THREE = { 0: null, 1: null, 2: null, 3: {}, 4: {} };
  const TO_GO = "1 pod to be removed in zone-c";
  const CASES: readonly [string, Parameters<typeof evict>, string][] = [
    [
      "is denied while another zone has ready pods beyond its replicas",
      ["zone-b-0", STORED],
      "2 pods to be removed in zone-c",
    ],
    [
      "is denied while another zone's downscale is reserved and not stored",
      ["zone-b-0", {}, reservedFrom("c", 1)],
      "2 pods to be removed in zone-c",
    ],
    [
      "does not count them in its own zone, whose limit is about the pods that stay",
      ["zone-c-0", {}, reservedFrom("c", 2)],
      "Allowed",
    ],
    ["counts no pod twice", ["zone-b-0", STORED, TWO], "1 pod not ready, 1 pod to be removed in zone-c"],
    ["is allowed in another partition", ["zone-b-0", STORED, {}, PARTITIONS], "Allowed"],
    [
      "is denied in the partition of a pod that goes",
      ["zone-b-2", {}, reservedFrom("c", 2), PARTITIONS],
      "1 pod to be removed in partition 2",
    ],
    [
      "of two downscales of a zone, obeys the one that takes more pods",
      ["zone-b-0", {}, { ...reservedFrom("c", 2), ...reservedFrom("c", 1) }],
      "2 pods to be removed in zone-c",
    ],
    ["counts one of which only a part is stored", ["zone-b-0", { c: "nn" }, reservedFrom("c", 1)], TO_GO],
    ["does not count one that is stored", ["zone-b-0", { c: "nn" }, reservedFrom("c", 2)], "Allowed"],
    ["nor one of which more is stored", ["zone-b-0", { c: "n" }, reservedFrom("c", 2)], "Allowed"],
    ["counts one as long as it may be stored", ["zone-b-0", {}, reservedFrom("c", 2, 89_999)], TO_GO],
    ["does not count one that can no longer be stored", ["zone-b-0", {}, reservedFrom("c", 2, 90_000)], "Allowed"],
    ["nor one of an earlier StatefulSet of the name", ["zone-b-0", {}, reservedFrom("c", 2, 0, "earlier")], "Allowed"],
    [
      "counts by ordinals, from the first on",
      ["zone-b-0", { c: { start: 3, replicas: 3, pods: { ...FROM_THREE, 5: {} } } }, reservedFrom("c", 5)],
      TO_GO,
    ],
    [
      "and knows by ordinals that one is stored",
      ["zone-b-0", { c: { start: 3, replicas: 2, pods: FROM_THREE } }, reservedFrom("c", 5)],
      "Allowed",
    ],
  ];
  for (const [name, asked, expected] of CASES)
    it(`${name}: ${expected}`, async () => assert.equal(await evict(...asked), expected));
});

describe("a reservation whose time has still to come", () => {
  const POD = "ingester-zone-a-0";
  for (const [aheadMs, stored] of [
    [3_600_000, NOON],
    [4000, NOON + 4000],
  ] as const)
    it(`${aheadMs} ms ahead is stored as ${stored - NOON} ms ahead with the next one, so that it ends`, async () => {
      const facts = worldOf({ spec: { maxUnavailable: 2 }, reservations: reservedPod(POD, NOON + aheadMs) });
      const process = startProcess(facts);
      assert.equal((await process.evict({ pod: "ingester-zone-a-1" })).reason, "Allowed");
      const { [POD]: found } = process.reserved() as Record<string, { readonly time: string }>;
      assert.equal(found?.time, new Date(stored).toISOString());
    });
});
