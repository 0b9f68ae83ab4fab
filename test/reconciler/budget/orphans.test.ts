/** Pods that a StatefulSet has left behind, as a budget judges them (§5.13), and the StatefulSets that it needs. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { guarded, PARTITIONS } from "../../builders/budgets.ts";
import { leftBehind, traitsOf, type ZoneScene } from "../../builders/zones.ts";
import { factsOf } from "./scene.ts";
import { type AskedEviction, type Facts, startProcess } from "./adapter.ts";

const B = "ingester-zone-b";
const POD = "ingester-zone-a-0";

const isOf =
  (zone: string) =>
  ({ metadata }: PodObject): boolean =>
    metadata?.name?.startsWith(`${zone}-`) === true;

/** The zone's StatefulSet is gone, and these pods are left of it. */
const orphan = (facts: Facts, zone: string, left: readonly PodObject[]): Facts => ({
  ...facts,
  statefulSets: facts.statefulSets.filter(({ metadata }) => metadata?.name !== zone),
  pods: [...facts.pods.filter((pod) => !isOf(zone)(pod)), ...left.map(guarded)],
});

/** The budget does not select the zone's StatefulSet. */
const outside = (facts: Facts, zone: string): Facts => ({
  ...facts,
  statefulSets: facts.statefulSets.map((set) =>
    set.metadata?.name === zone ? { ...set, metadata: { ...set.metadata, labels: {} } } : set,
  ),
});

/** Zones a and c as they are, and what is left of zone b. */
const world = (left: ZoneScene, spec: object = {}): Facts =>
  orphan(factsOf({ spec }), B, leftBehind({ name: B, ...traitsOf(left) }));

async function judge(pod: string, facts: Facts, more: Partial<AskedEviction> = {}): Promise<string> {
  const { reason, message } = await startProcess(facts).evict({ pod: `ingester-${pod}`, ...more });
  return `${VERDICTS[reason].code} ${message}`;
}

/** Of the first zone, with the reason of the verdict. */
async function judgeWhy(facts: Facts): Promise<string> {
  const { reason, message } = await startProcess(facts).evict({ pod: POD });
  return `${VERDICTS[reason].code} ${reason}: ${message}`;
}

const MET = "200 zpdb met across 3 zones";
const [ZERO, TWO] = [{ maxUnavailable: 0 }, { maxUnavailable: 2 }];
const CASES: readonly (readonly [name: string, pod: string, left: ZoneScene, spec: object, answer: string])[] = [
  ["another zone's pod, while one is not ready", "zone-c-0", "n!nn", {}, `429 1 pod not ready in ${B}`],
  ["another zone's pod, while one is missing", "zone-c-0", ".nn", {}, `429 1 pod unknown in ${B}`],
  ["another zone's pod, while all are ready", "zone-c-0", "nnn", {}, MET],
  ["one of them, while all are ready", "zone-b-1", "nnn", {}, MET],
  ["one of them, while another of them is not", "zone-b-1", "n!nn", {}, `429 1 pod not ready in ${B}`],
  ["one of them that is not ready", "zone-b-0", "n!nn", {}, MET],
  ["one of them, with room for two", "zone-b-1", "n!nn", TWO, MET],
  ["one of them, with no room", "zone-b-1", "nnn", ZERO, "429 max unavailable = 0"],
  ["a peer of one that is not ready", "zone-c-0", "n!nn", PARTITIONS, "429 1 pod not ready in partition 0"],
  ["a peer of others", "zone-c-1", "n!nn", PARTITIONS, "200 zpdb met for partition 1 across 3 zones"],
  ["one of them, by its partition", "zone-b-1", "n!nn", PARTITIONS, "200 zpdb met for partition 1 across 3 zones"],
];

describe("evictions beside pods that a StatefulSet has left behind", () => {
  for (const [name, pod, left, spec, expected] of CASES)
    it(`${name}: ${expected}`, async () => assert.equal(await judge(pod, world(left, spec)), expected));

  it("count them as a zone: the last StatefulSet is not alone", async () =>
    assert.equal(await judge("zone-a-0", orphan(world("nnn"), "ingester-zone-c", [])), "200 zpdb met across 2 zones"));

  it("of a pod that has still to be adopted do not count it as missing of its zone", async () => {
    const facts = factsOf({ zones: { b: { pods: { 1: null } } } });
    const pods = [...facts.pods, ...leftBehind({ name: B }).slice(1, 2).map(guarded)];
    assert.equal(await judge("zone-b-1", { ...facts, pods }), MET);
    assert.equal(await judge("zone-a-0", { ...facts, pods }), `429 1 pod unknown in ${B}`, "for others it is missing");
  });

  it("of a StatefulSet that the budget does not select are refused, and its pods count for others", async () => {
    const facts = outside(factsOf({ zones: { b: "n!nn" } }), B);
    assert.match(await judge("zone-b-1", facts), /^400 unable to find StatefulSet/);
    assert.equal(await judge("zone-a-0", facts), `429 1 pod not ready in ${B}`);
  });

  it("need no peer of a partition in a StatefulSet that the budget does not select", async () => {
    const D = "ingester-zone-d";
    const facts = factsOf({ spec: PARTITIONS, zones: { d: { replicas: 1 } } });
    const unknown = "429 1 pod unknown in partition 2";
    assert.equal(await judge("zone-a-2", facts), unknown);
    const met = "200 zpdb met for partition 2 across 4 zones";
    assert.equal(await judge("zone-a-2", outside(facts, D)), met);
    assert.equal(await judge("zone-a-2", outside(facts, D), { rollout: 1 }), met);
    assert.equal(
      await judge("zone-a-2", orphan(facts, D, leftBehind({ name: D, replicas: 1 }))),
      "429 2 pods unknown in partition 2",
    );
  });

  it("of a pod of the former UID are judged once its StatefulSet was created again", async () => {
    const former = (zones: Record<string, ZoneScene>, owner = B): Facts => {
      const facts = factsOf({ zones });
      const pods = facts.pods.map(({ metadata = {}, ...pod }) => {
        const [reference] = metadata.ownerReferences ?? [];
        const ownerReferences = reference ? [{ ...reference, name: owner, uid: "former" }] : [];
        return metadata.name === `${B}-1`
          ? { ...pod, metadata: { ...metadata, ownerReferences } }
          : { ...pod, metadata };
      });
      return { ...facts, pods };
    };
    assert.equal(await judge("zone-b-1", former({})), MET);
    assert.equal(await judge("zone-b-1", former({ c: "n!nn" })), "429 1 pod not ready in ingester-zone-c");
    // It is a zone of its own while there is no StatefulSet of that name.
    assert.match(await judge("zone-b-1", former({}, "store")), /^429 .*; 2 pods unknown in store$/);
  });
});

describe("downscales beside pods that a StatefulSet has left behind", () => {
  for (const [what, left, reason] of [
    ["wait for one that is not ready", "n!nn", "BudgetSpent"],
    ["wait for one that is missing", ".nn", "BudgetSpent"],
    ["do not wait for those that are ready", "nnn", "Allowed"],
  ] as const)
    it(what, async () => {
      const verdict = await startProcess(world(left)).downscale({ statefulSet: "ingester-zone-c", to: 2 });
      assert.equal(verdict.reason, reason);
    });
});

/** The pod has this owner, or none. */
function ownedBy(owner?: NonNullable<NonNullable<PodObject["metadata"]>["ownerReferences"]>[number]): Facts {
  const facts = factsOf({});
  const pods = facts.pods.map((pod) =>
    pod.metadata?.name === POD ? { ...pod, metadata: { ...pod.metadata, ownerReferences: owner ? [owner] : [] } } : pod,
  );
  return { ...facts, pods };
}

describe("the StatefulSets of an eviction", () => {
  it("needs two StatefulSets", async () => {
    const facts = factsOf({});
    const alone = { ...facts, statefulSets: facts.statefulSets.slice(0, 1), pods: facts.pods.slice(0, 3) };
    assert.equal(await judgeWhy(alone), "400 TooFewZones: minimum number of StatefulSets not found");
  });

  it(`may be ${MAX_ZONES} of a group; with one more no pod of the group goes, and pods of other groups do`, async () => {
    const answerOf = (count: number, more = {}): Promise<string> =>
      judgeWhy(
        factsOf({ zones: { ...Object.fromEntries(Array.from({ length: count - 3 }, (_, i) => [i, {}])), ...more } }),
      );
    assert.match(await answerOf(MAX_ZONES), /^200 Allowed/);
    assert.match(await answerOf(MAX_ZONES, { other: { group: "distributor" } }), /^200 Allowed/);
    assert.equal(await answerOf(MAX_ZONES + 1), "400 TooManyZones: group ingester has 33 zones, more than 32");
  });

  // Upstream answers 500, but a foreseeable case is no server error.
  it("a pod without an owner, or owned by another kind than StatefulSet, is refused for good", async () => {
    assert.equal(await judgeWhy(ownedBy()), "400 OwnerNotFound: unable to find a StatefulSet pod owner");
    assert.equal(
      await judgeWhy(ownedBy({ apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "rs", controller: true })),
      `400 OwnerNotFound: pod owner is not a StatefulSet - ${POD} has owner rs (ReplicaSet)`,
    );
  });

  // Upstream stops here (13.15).
  it("an owner that the budget does not select is refused for good", async () => {
    const facts = factsOf({});
    const statefulSets = facts.statefulSets.map((set, i) =>
      i === 0 ? { ...set, metadata: { ...set.metadata, labels: {} } } : set,
    );
    assert.match(
      await judgeWhy({ ...facts, statefulSets }),
      /^400 OwnerNotFound: unable to find StatefulSet ingester-zone-a by name: .* budget ingester selects$/,
    );
  });
});
