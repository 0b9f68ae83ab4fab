/** Pods that a StatefulSet has left behind, as a budget judges them (§5.13). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readBudgetPod, type BudgetPod, type BudgetZone } from "../../../reconciler/budget/budget-pod.ts";
import { decideDownscale } from "../../../reconciler/budget/decide-downscale.ts";
import { decideEviction } from "../../../reconciler/budget/decide-eviction.ts";
import { orphanedZone } from "../../../reconciler/model/orphans.ts";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { leftBehind, type ZoneTraits } from "../builders.ts";
import { PARTITIONS, snapshot } from "./builders.ts";

const B = "ingester-zone-b";

/** Zones a and c as they are, and what is left of zone b. */
function world(left: ZoneTraits, spec: object = {}, more: readonly BudgetPod[] = []) {
  const whole = snapshot({ pod: "zone-a-0", spec });
  const zones = whole.zones.filter(({ name }) => name !== B);
  const pods = leftBehind({ name: B, ...left }).map(readBudgetPod);
  const orphaned = orphanedZone(B, [...pods, ...more], { owner: undefined, zones });
  return { ...whole, zones: [...zones, orphaned] };
}

function judge(pod: string, left: ZoneTraits, spec: object = {}): string {
  const whole = world(left, spec);
  const found = whole.zones.flatMap(({ pods }) => pods).find(({ name }) => name === `ingester-${pod}`);
  assert.ok(found);
  const { reason, message } = decideEviction({ ...whole, pod: found });
  return `${VERDICTS[reason].code} ${message}`;
}

const MET = "200 zpdb met across 3 zones";
const CASES: readonly (readonly [string, string, ZoneTraits, object, string])[] = [
  [
    "another zone's pod, while one is not ready",
    "zone-c-0",
    { pods: { 0: { ready: false } } },
    {},
    `429 1 pod not ready in ${B}`,
  ],
  ["another zone's pod, while one is missing", "zone-c-0", { pods: { 0: null } }, {}, `429 1 pod unknown in ${B}`],
  ["another zone's pod, while all are ready", "zone-c-0", {}, {}, MET],
  ["one of them, while all are ready", "zone-b-1", {}, {}, MET],
  [
    "one of them, while another of them is not",
    "zone-b-1",
    { pods: { 0: { ready: false } } },
    {},
    `429 1 pod not ready in ${B}`,
  ],
  ["one of them that is not ready", "zone-b-0", { pods: { 0: { ready: false } } }, {}, MET],
  ["one of them, with room for two", "zone-b-1", { pods: { 0: { ready: false } } }, { maxUnavailable: 2 }, MET],
  ["one of them, with no room", "zone-b-1", {}, { maxUnavailable: 0 }, "429 max unavailable = 0"],
  [
    "a peer of one that is not ready",
    "zone-c-0",
    { pods: { 0: { ready: false } } },
    PARTITIONS,
    "429 1 pod not ready in partition 0",
  ],
  [
    "a peer of others",
    "zone-c-1",
    { pods: { 0: { ready: false } } },
    PARTITIONS,
    "200 zpdb met for partition 1 across 3 zones",
  ],
  [
    "one of them, by its partition",
    "zone-b-1",
    { pods: { 0: { ready: false } } },
    PARTITIONS,
    "200 zpdb met for partition 1 across 3 zones",
  ],
];

describe("evictions beside pods that a StatefulSet has left behind", () => {
  for (const [name, pod, left, spec, expected] of CASES)
    it(`${name}: ${expected}`, () => assert.equal(judge(pod, left, spec), expected));

  it("count them as a zone: the last StatefulSet is not alone", () => {
    const whole = world({});
    const zones = whole.zones.filter(({ name }) => name !== "ingester-zone-c");
    assert.equal(decideEviction({ ...whole, zones }).reason, "Allowed");
  });

  it("of a pod that has still to be adopted do not count it as missing of its zone", () => {
    const whole = snapshot({ pod: "zone-b-0", zones: { b: { pods: { 1: null } } } });
    const [pod] = leftBehind({ name: B }).slice(1, 2).map(readBudgetPod);
    assert.ok(pod);
    assert.equal(decideEviction({ ...whole, pod }).reason, "Allowed");
    const [peer] = whole.zones[0]?.pods ?? [];
    assert.ok(peer);
    assert.equal(decideEviction({ ...whole, pod: peer }).reason, "BudgetSpent", "for others it is missing");
  });

  it("E27 of a StatefulSet that the budget does not select are refused, and its pods count for others", () => {
    const whole = snapshot({ pod: "zone-b-1", zones: { b: { pods: { 0: { ready: false } } } } });
    const zones = whole.zones.map((zone): BudgetZone => (zone.name === B ? { ...zone, orphaned: "outside" } : zone));
    assert.equal(decideEviction({ ...whole, zones }).reason, "OwnerNotFound");
    const [pod] = zones[0]?.pods ?? [];
    assert.ok(pod);
    assert.equal(decideEviction({ ...whole, zones, pod }).message, `1 pod not ready in ${B}`);
  });

  it("need no peer of a partition in a StatefulSet that the budget does not select", () => {
    const whole = snapshot({ pod: "zone-a-2", spec: PARTITIONS, zones: { d: { replicas: 1 } } });
    assert.equal(decideEviction(whole).message, "1 pod unknown in partition 2");
    const [last] = whole.zones.slice(-1);
    assert.ok(last);
    const judgeBeside = (stranger: BudgetZone, rollout?: { readonly maxUnavailable: number }): string =>
      decideEviction({ ...whole, zones: [...whole.zones.slice(0, -1), stranger], rollout }).reason;
    assert.equal(judgeBeside({ ...last, orphaned: "outside" }), "Allowed");
    assert.equal(judgeBeside({ ...last, orphaned: "outside" }, { maxUnavailable: 1 }), "Allowed");
    assert.equal(judgeBeside({ ...last, orphaned: "gone" }), "BudgetSpent");
  });

  it("of a pod of the former UID are judged once its StatefulSet was created again", () => {
    const whole = snapshot({ pod: "zone-b-0", zones: { b: { pods: { 1: null } } } });
    const [left] = leftBehind({ name: B }).slice(1, 2).map(readBudgetPod);
    assert.ok(left);
    const pod = { ...left, owner: "former", controller: { kind: "StatefulSet", name: B } };
    assert.equal(decideEviction({ ...whole, pod }).reason, "Allowed");
    const busy = snapshot({
      pod: "zone-b-0",
      zones: { b: { pods: { 1: null } }, c: { pods: { 0: { ready: false } } } },
    });
    assert.equal(decideEviction({ ...busy, pod }).message, "1 pod not ready in ingester-zone-c");
    const stranger = { ...pod, madeBy: "store", controller: { kind: "StatefulSet", name: "store" } };
    assert.equal(decideEviction({ ...whole, pod: stranger }).reason, "OwnerNotFound");
  });
});

describe("downscales beside pods that a StatefulSet has left behind", () => {
  const shrink = (left: ZoneTraits): string =>
    decideDownscale({ ...world(left), uid: "uid-ingester-zone-c", from: 2 }).reason;
  it("wait for those that are not ready, or missing", () => {
    assert.equal(shrink({ pods: { 0: { ready: false } } }), "BudgetSpent");
    assert.equal(shrink({ pods: { 0: null } }), "BudgetSpent");
  });
  it("do not wait for those that are ready", () => assert.equal(shrink({}), "Allowed"));
});
