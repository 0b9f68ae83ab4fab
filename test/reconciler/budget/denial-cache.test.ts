/** What a process remembers of a denial never denies what a process without a memory would allow (§5.9). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { missingPods } from "../../../reconciler/budget/denial-cache.ts";
import { VERDICTS, type Verdict } from "../../../reconciler/budget/verdict.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { podObjects, statefulSetObject, type PodTraits, type ZoneTraits } from "../builders.ts";
import { type Facts, startProcess } from "./adapter.ts";
import { type Case, factsOf, PARTITIONS } from "./builders.ts";

const POD = "ingester-zone-a-0";
const LIST = "list pods";

/** The verdict on the pod of a process that was denied it before, in those facts, and its calls. */
async function askAgain(before: Facts, now = before): Promise<Verdict & { readonly calls: readonly string[] }> {
  const process = startProcess(before);
  await process.evict({ pod: POD });
  const { length } = process.calls;
  process.change(now);
  const found = await process.evict({ pod: POD });
  return { ...found, calls: process.calls.slice(length) };
}

const podTraits = fc.constantFrom<PodTraits | null>({}, {}, {}, { ready: false }, { terminating: true }, null);
const zoneTraits = fc.record({
  pods: fc.record({ 0: podTraits, 1: podTraits, 2: podTraits }),
  statusReplicas: fc.constantFrom(2, 3, 4),
});
const zones = fc.record({ a: zoneTraits, b: zoneTraits, c: zoneTraits });
const specs = fc.oneof(
  fc.record({ maxUnavailable: fc.nat(3) }),
  fc.record({ maxUnavailablePercentage: fc.constantFrom(0, 34, 67) }),
  fc.record({
    maxUnavailable: fc.nat(3),
    ...Object.fromEntries(Object.entries(PARTITIONS).map(([key, value]) => [key, fc.constant(value)])),
  }),
);
const reserved = fc.subarray(["zone-a-1", "zone-b-0", "zone-c-2"]);

/** The pod to evict exists. */
const at = (all: Readonly<Record<"a" | "b" | "c", ZoneTraits>>): Readonly<Record<string, ZoneTraits>> => ({
  ...all,
  a: { ...all.a, pods: { ...all.a.pods, 0: {} } },
});

describe("a process that remembers a denial", () => {
  it("denies nothing that another would allow, whatever has changed", async () => {
    const reached = { denied: 0, readAgain: 0, allowed: 0 };
    const all = fc.record({ spec: specs, first: zones, before: reserved, second: zones, now: reserved });
    await fc.assert(
      fc.asyncProperty(all, async ({ spec, first, before, second, now }) => {
        const facts = factsOf({ spec, zones: at(second), reserved: now });
        const { reason, calls } = await askAgain(factsOf({ spec, zones: at(first), reserved: before }), facts);
        const fresh = await startProcess(facts).evict({ pod: POD });
        const [code, expected] = [VERDICTS[reason].code, VERDICTS[fresh.reason].code];
        assert.equal(code === 200, expected === 200, `${reason}, and of a fresh process ${fresh.reason}`);
        reached[code === 200 ? "allowed" : calls.includes(LIST) ? "readAgain" : "denied"]++;
      }),
      { numRuns: 1000 },
    );
    for (const [what, count] of Object.entries(reached)) assert.ok(count > 10, `${what}: ${count}`);
  });

  it("denies with the same message, if nothing has changed and few pods block", async () => {
    const facts = factsOf({ zones: { b: { pods: { 0: { ready: false }, 2: null } } } });
    const again = await askAgain(facts);
    assert.equal(again.message, (await startProcess(facts).evict({ pod: POD })).message);
    assert.ok(!again.calls.includes(LIST));
  });

  const CASES: readonly [string, Omit<Case, "pod">, Omit<Case, "pod">, string][] = [
    [
      "reads all if too many pods would have to be read",
      { spec: { maxUnavailable: 5 }, zones: { a: { replicas: 9, pods: unready(1, 2, 3, 4, 5) } } },
      {},
      "5 pods not ready in ingester-zone-a",
    ],
    [
      "knows that a pod below the first ordinal of its zone is not missing",
      { zones: { b: { pods: { 0: null } } } },
      { zones: { b: { start: 1, pods: { 0: null, 3: {} } } } },
      "zpdb met across 3 zones",
    ],
  ];
  for (const [name, before, now, message] of CASES)
    it(name, async () => {
      const again = await askAgain(factsOf(before), factsOf({ ...before, ...now }));
      assert.equal(again.message, message);
      assert.ok(again.calls.includes(LIST));
    });

  /** Zone b is another one. */
  const changed = (facts: Facts, edit: (set: StatefulSet) => StatefulSet): Facts => ({
    ...facts,
    statefulSets: facts.statefulSets.map((set) => (set.metadata?.name === "ingester-zone-b" ? edit(set) : set)),
  });

  it("forgets a missing pod whose StatefulSet has been created again", async () => {
    const facts = factsOf({ zones: { b: { pods: { 2: null } } } });
    const recreated = changed(facts, (set) => ({ ...set, metadata: { ...set.metadata, uid: "recreated" } }));
    assert.ok((await askAgain(facts, recreated)).calls.includes(LIST));
  });

  it("remembers a few pods of a zone with more replicas than memory can hold", async () => {
    const many = changed(
      factsOf({}),
      (set) => ({ ...set, spec: { ...set.spec, replicas: 2_147_483_647 } }) as StatefulSet,
    );
    const again = await askAgain(many);
    assert.match(again.message, /pods? unknown in ingester-zone-b$/);
  });
});

function unready(...ordinals: readonly number[]): Record<number, PodTraits> {
  return Object.fromEntries(ordinals.map((ordinal) => [ordinal, { ready: false }]));
}

it("missing pods are named by the ordinals that the zone wants", () => {
  const traits = { name: "ingester-zone-b", statusReplicas: 5, pods: { 1: null } };
  const zone = readZone(statefulSetObject(traits));
  const pods = podObjects(traits).map(({ metadata }) => ({ name: metadata?.name ?? "" }));
  assert.deepEqual(missingPods(zone, pods, 9), ["ingester-zone-b-1", "ingester-zone-b-3", "ingester-zone-b-4"]);
  assert.deepEqual(missingPods(zone, pods, 2), ["ingester-zone-b-1", "ingester-zone-b-3"]);
  const from = { ...zone, firstOrdinal: 2 };
  assert.deepEqual(missingPods(from, pods, 9), ["ingester-zone-b-3", "ingester-zone-b-4", "ingester-zone-b-5"]);
  assert.deepEqual(missingPods({ ...from, replicas: 2, status: { ...zone.status, replicas: 2 } }, pods, 9), [
    "ingester-zone-b-3",
  ]);
});
