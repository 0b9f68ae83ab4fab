import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import { guarded, PARTITIONS, storedBudget } from "../../builders/budgets.ts";
import { NOON, podObject, type PodTraits } from "../../builders/zones.ts";
import { factsOf } from "./scene.ts";
import { startProcess, type Facts } from "./adapter.ts";

const ago = (minutes: number): string => new Date(NOON - minutes * 60_000).toISOString();

/** Two hours old unless the traits say otherwise. */
const podOf = (traits: PodTraits = {}): PodObject =>
  guarded(podObject("ingester-zone-b", 0, { readyAt: ago(120), startedAt: ago(120), createdAt: ago(120), ...traits }));

function unconditional(): PodObject {
  const { status, ...object } = podOf();
  return { ...object, status: { ...status, conditions: [] } };
}

const DELAYS: readonly [string, PodObject, string, boolean][] = [
  ["delay 0, and a condition that tells no time", podOf({ readyAt: null }), "0s", true],
  ["a condition that tells no time", podOf({ readyAt: null }), "1m", false],
  ["a condition whose time is none", podOf({ readyAt: "yesterday" }), "1m", false],
  ["no condition", unconditional(), "1m", false],
  ["ready for an hour", podOf({ readyAt: ago(60) }), "1m", true],
  ["not running", podOf({ ready: false }), "1m", false],
  ["terminating, and Ready for an hour", podOf({ terminating: true }), "1m", false],
  ["just ready", podOf({ readyAt: ago(0) }), "1m", false],
  ["ready for exactly the delay", podOf({ readyAt: ago(1) }), "1m", false],
  ["ready at a time to come, by its node's clock", podOf({ readyAt: ago(-60) }), "1m", false],
  ["a time with an offset", podOf({ readyAt: "2026-01-01T12:00:00+01:00" }), "1m", true],
  ["13.4 ready since before a restart", podOf({ startedAt: ago(0.5) }), "1m", false],
  ["13.4 ready before it was there, by its node's clock", podOf({ createdAt: ago(0.5) }), "1m", false],
  [
    "an annotation of the original's earlier versions is ignored",
    podOf({ readyAt: ago(0.5), annotations: { "grafana.com/ready-time": ago(60) } }),
    "1m",
    false,
  ],
];

const PEER = "ingester-zone-b-0";

/** Two zones, and this pod in the place of the first of zone b. */
function beside(peer: PodObject, crossZoneEvictionDelay: string, more: Parameters<typeof factsOf>[0] = {}): Facts {
  const facts = factsOf({ spec: { ...PARTITIONS, crossZoneEvictionDelay }, ...more });
  return {
    ...facts,
    statefulSets: facts.statefulSets.slice(0, 2),
    pods: facts.pods.slice(0, 6).map((pod) => (pod.metadata?.name === PEER ? peer : pod)),
  };
}

const evict = async (facts: Facts): Promise<string> =>
  (await startProcess(facts).evict({ pod: "ingester-zone-a-0" })).reason;

describe("the cross-zone delay", () => {
  for (const [name, peer, delay, ready] of DELAYS) {
    it(`${name}: ${ready ? "ready" : "not ready"}`, async () =>
      assert.equal(await evict(beside(peer, delay)), ready ? "Allowed" : "BudgetSpent"));
  }

  it("ends a moment after it has passed", async () =>
    assert.equal(await evict(beside(podOf({ readyAt: ago(1) }), "1m", { now: NOON + 1 })), "Allowed"));

  it("a reservation counts as not ready, however long the pod has been ready", async () =>
    assert.equal(await evict(beside(podOf(), "1m", { reserved: ["zone-b-0"] })), "BudgetSpent"));
});

describe("a reservation", () => {
  const UID = `uid-${PEER}`;
  const WHOLE = { kind: "eviction", uid: UID, pinned: true, time: ago(0), by: "x" };
  const entry = (time: string, more: object = {}): object => ({ [PEER]: { ...WHOLE, time, ...more } });
  const without = (field: keyof typeof WHOLE): object => entry(ago(0), { [field]: undefined });
  const RESERVED = `1 pod not ready in ingester-zone-b`;
  const MET = "zpdb met across 3 zones";

  /** What another zone's eviction is told, with this in the place of all reservations. */
  async function judge(disruptedPods: unknown, peer: object | null = {}): Promise<string> {
    const facts = factsOf({ zones: { b: { pods: { 0: peer } } } });
    const budgets = [{ ...storedBudget(), status: { disruptedPods } }];
    return (await startProcess({ ...facts, budgets }).evict({ pod: "ingester-zone-a-0", dryRun: true })).message;
  }

  const CASES: readonly [string, object, string][] = [
    ["counts from the start", entry(ago(0)), RESERVED],
    ["counts for almost 2 minutes", entry(ago(1.99)), RESERVED],
    ["is over after 2 minutes", entry(ago(2)), MET],
    ["counts if the other process's clock is ahead", entry(ago(-5)), RESERVED],
    ["is over once another pod has its name", entry(ago(0), { uid: "u" }), MET],
    ["is none without a time", entry("soon"), MET],
    ["is none without a UID", without("uid"), MET],
    ["is none without its author", without("by"), MET],
    ["is none without a kind", without("kind"), MET],
    ["is none of a kind that there is not", entry(ago(0), { kind: "drain" }), MET],
    ["is none if it does not say whether it is pinned", without("pinned"), MET],
    ["is none as a downscale that does not say from which pod on", entry(ago(0), { kind: "downscale" }), MET],
    ["is none if it is something else", { [PEER]: 5 }, MET],
    ["is none if it is nothing", { [PEER]: null }, MET],
  ];
  for (const [name, written, expected] of CASES) it(name, async () => assert.equal(await judge(written), expected));

  it("is over once the pod is gone", async () =>
    assert.equal(await judge(entry(ago(0)), null), "1 pod unknown in ingester-zone-b"));

  it("that is over is stored no longer with the next one", async () => {
    const budgets = [{ ...storedBudget(), status: { disruptedPods: entry(ago(0), { uid: "u" }) } }];
    const process = startProcess({ ...factsOf({}), budgets });
    assert.equal((await process.evict({ pod: "ingester-zone-a-0" })).reason, "Allowed");
    assert.deepEqual(Object.keys(process.reserved()), ["ingester-zone-a-0"]);
  });

  for (const written of [undefined, null, "text", 7])
    it(`nothing is read from ${JSON.stringify(written)}`, async () => assert.equal(await judge(written), MET));
});
