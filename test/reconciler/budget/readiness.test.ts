import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import { podObject } from "../builders.ts";
import { startProcess, type Facts } from "./adapter.ts";
import { factsOf, guarded, NOW, PARTITIONS, storedBudget } from "./builders.ts";

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
function podOf(times: Times = {}): PodObject {
  const { turned = ago(120), started = ago(120), created = ago(120), ready = true, terminating = false } = times;
  const object = podObject("ingester-zone-b", 0, { ready, terminating });
  const { status } = object;
  const { annotation } = times;
  return guarded({
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

const unconditional = (): PodObject => {
  const object = podObject("ingester-zone-b", 0);
  return guarded({ ...object, status: { ...object.status, conditions: [] } });
};

const DELAYS: readonly [string, PodObject, string, boolean][] = [
  ["delay 0, and a condition that tells no time", podOf({ turned: null }), "0s", true],
  ["a condition that tells no time", podOf({ turned: null }), "1m", false],
  ["a condition whose time is none", podOf({ turned: "yesterday" }), "1m", false],
  ["no condition", unconditional(), "1m", false],
  ["ready for an hour", podOf({ turned: ago(60) }), "1m", true],
  ["not running", podOf({ ready: false }), "1m", false],
  ["terminating, and Ready for an hour", podOf({ terminating: true }), "1m", false],
  ["just ready", podOf({ turned: ago(0) }), "1m", false],
  ["ready for exactly the delay", podOf({ turned: ago(1) }), "1m", false],
  ["ready at a time to come, by its node's clock", podOf({ turned: ago(-60) }), "1m", false],
  ["a time with an offset", podOf({ turned: "2026-01-01T12:00:00+01:00" }), "1m", true],
  ["13.4 ready since before a restart", podOf({ started: ago(0.5) }), "1m", false],
  ["13.4 ready before it was there, by its node's clock", podOf({ created: ago(0.5) }), "1m", false],
  ["an annotation that says just now is ignored", podOf({ annotation: ago(0) }), "1m", true],
  ["an annotation that says long ago is ignored", podOf({ turned: ago(0.5), annotation: ago(60) }), "1m", false],
  ["an annotation in place of a time is ignored", podOf({ turned: null, annotation: ago(60) }), "1m", false],
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
    assert.equal(await evict(beside(podOf({ turned: ago(1) }), "1m", { now: NOW + 1 })), "Allowed"));

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

  for (const written of [undefined, null, "text", 7])
    it(`nothing is read from ${JSON.stringify(written)}`, async () => assert.equal(await judge(written), MET));
});
