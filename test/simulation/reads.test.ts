/** The oracle of what is read before a deletion, against histories that it must condemn, and those next to them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../emulator/store.ts";
import { createReadSafety } from "./reads.ts";

type Request = readonly [appliedAt: number, sentAt: number, method: string, path: string];

const SETS = "/apis/apps/v1/namespaces/zonewise/statefulsets";
const listed = (at: number): Request => [at + 2, at, "GET", `${SETS}?labelSelector=x`];
const watched = (at: number): Request => [at + 2, at, "GET", `${SETS}?watch=true`];
const confirmed = (at: number, set = "a"): Request => [at + 2, at, "PATCH", `${SETS}/${set}/status?timeout=1ms`];
const deleted = (at: number, set = "a"): Request => [at + 2, at, "DELETE", `/api/v1/namespaces/zonewise/pods/${set}-0`];

const CASES: readonly (readonly [string, readonly Request[], RegExp | undefined])[] = [
  ["a deletion of a zone that was listed and confirmed", [listed(0), confirmed(10), deleted(20)], undefined],
  ["one of a zone that was not confirmed", [listed(0), confirmed(10, "b"), deleted(20)], /that it has not confirmed/],
  [
    "one of a zone that was confirmed before the last batch",
    [listed(0), confirmed(10), listed(50_000), deleted(50_020)],
    /that it has not confirmed/,
  ],
  ["a second one after another list", [listed(0), confirmed(10), deleted(20), listed(30), deleted(40)], undefined],
  [
    "a second one without it",
    [listed(0), confirmed(10), deleted(20), watched(30), deleted(40)],
    /without another list/,
  ],
  ["a first one by an old list", [listed(0), confirmed(2000), deleted(2010)], /by a list that was 2002 ms old/],
  ["one that was listed again", [listed(0), confirmed(2000), listed(2010), deleted(2020)], undefined],
];

interface World {
  /** Pods of the zones, with what happens to them. */
  readonly pods?: readonly KubeObject[];
  /** StatefulSets as they are stored, and when. */
  readonly sets?: readonly (readonly [at: number, set: KubeObject])[];
  readonly holdsLease?: boolean;
}

const zone = (name: string, { metadata = {}, spec = {} }: { metadata?: object; spec?: object } = {}): KubeObject =>
  ({
    metadata: { name, namespace: "zonewise", uid: name, generation: 1, ...metadata },
    spec: { updateStrategy: { type: "OnDelete" }, ...spec },
    status: { observedGeneration: 1, updateRevision: "new" },
  }) as never;
const pod = (name: string, { ready = true, revision = "old", ends = false } = {}): KubeObject =>
  ({
    metadata: {
      name,
      namespace: "zonewise",
      uid: `${name} ${ready}`,
      labels: { "controller-revision-hash": revision },
      ...(ends && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    },
    status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
  }) as never;
const paused = { metadata: { annotations: { "grafana.com/rollout-paused": "true" } } };
const judged = { metadata: { labels: { "grafana.com/prepare-downscale": "true" } } };
const leaving = { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } };
const rolling = { spec: { updateStrategy: { type: "RollingUpdate" } } };
const behind = { metadata: { generation: 2 } };

/** The zone is confirmed at 5002, and its pod taken at 5012. */
function take({ pods = [], sets = [], holdsLease = false }: World): readonly string[] {
  let now = 0;
  const violations: string[] = [];
  const reads = createReadSafety({
    violated: (what) => violations.push(what),
    now: () => now,
    processes: () => [],
    listPods: () => pods,
    shape: { zones: ["a", "b"], faults: { stale: 0 }, suspends: false } as never,
  });
  const actor = "reconciler-1";
  const stored = [...sets, ...["a", "b"].map((name) => [0, zone(name)] as const)].toSorted(([a], [b]) => a - b);
  const event = (resource: string, object: KubeObject, previous?: KubeObject) =>
    ({ type: previous ? "MODIFIED" : "ADDED", resource, object, previous }) as never;
  for (const one of pods) reads.onEvent(event("pods", one), undefined);
  for (const [at, set] of stored) {
    now = at;
    reads.onEvent(event("statefulsets.apps", set), undefined);
  }
  const path = "/apis/coordination.k8s.io/v1/namespaces/zonewise/leases/zonewise-downscale-x";
  const lease = { metadata: { name: "zonewise-downscale-x" }, spec: { holderIdentity: "x" } };
  if (holdsLease) reads.onRequest({ actor, call: path }, "PUT", path, JSON.stringify(lease));
  now = 5002;
  reads.onRequest({ actor, call: "" }, "PATCH", `${SETS}/a/status`);
  now = 5012;
  const before = pods[0] ?? pod("a-0");
  const ending = { ...before, metadata: { ...before.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  reads.onEvent(event("pods", ending, before), { actor, call: "" });
  return violations;
}

describe("the oracle of what a reconciler has read, as it takes a pod", () => {
  for (const [name, world, expected] of [
    ["of a zone that is as it should be", {}, undefined],
    ["of a zone that was paused", { sets: [[5002, zone("a", paused)]] }, /has read that a is paused/],
    ["of a zone that was paused after it had been read", { sets: [[5003, zone("a", paused)]] }, undefined],
    ["while another one is paused", { sets: [[1, zone("b", paused)]] }, undefined],
    ["while another one is being deleted", { sets: [[4001, zone("b", leaving)]] }, /that b is being deleted/],
    ["while another one was, for less than a second", { sets: [[4002, zone("b", leaving)]] }, undefined],
    ["while another one does not wait for us", { sets: [[1, zone("b", rolling)]] }, /another update strategy/],
    ["while another one's status is old", { sets: [[1, zone("b", behind)]] }, /a status older than its spec/],
    ["without the downscale Lease", { sets: [[1, zone("b", judged)]] }, /without the downscale Lease/],
    ["under the downscale Lease", { sets: [[1, zone("b", judged)]], holdsLease: true }, undefined],
    [
      "that is ready before one that is not",
      { pods: [pod("a-0"), pod("a-1", { ready: false })] },
      /before a-1, which is outdated and not ready/,
    ],
    ["before one that is new", { pods: [pod("a-0"), pod("a-1", { ready: false, revision: "new" })] }, undefined],
    ["before one that ends", { pods: [pod("a-0"), pod("a-1", { ready: false, ends: true })] }, undefined],
  ] as const satisfies readonly (readonly [string, World, RegExp | undefined])[])
    it(`${expected ? "condemns" : "allows"} one ${name}`, () =>
      expected ? assert.match(take(world).join(), expected) : assert.deepEqual(take(world), []));
});

interface Shrink {
  readonly from?: KubeObject;
  /** When the Lease was taken, and when the zones were listed. */
  readonly heldAt?: number;
  readonly listedAt?: number;
  /** When a pod of the other zone begins to end. */
  readonly endsAt?: number;
  readonly scaledAt?: number;
}

/** A zone shrinks at 100, and loses a pod that is ready. */
function shrink({ from = zone("a", TWO), heldAt = 10, listedAt = 20, endsAt, scaledAt }: Shrink): readonly string[] {
  const violations: string[] = [];
  let now = 0;
  const peer = pod("b-0");
  const reads = createReadSafety({
    violated: (what) => violations.push(what),
    now: () => now,
    processes: () => [],
    listPods: (name) => (name === "a" ? [pod("a-0"), pod("a-1")] : [peer]),
    shape: { zones: ["a", "b"], faults: { stale: 0 }, suspends: false } as never,
  });
  const actor = "reconciler-1";
  const event = (resource: string, object: KubeObject, previous?: KubeObject) =>
    ({ type: previous ? "MODIFIED" : "ADDED", resource, object, previous }) as never;
  const one = { ...from, spec: { ...(from["spec"] as object), replicas: 1 } };
  const scale = (): void => reads.onEvent(event("statefulsets.apps", one, from), { actor, call: "" });
  const ending = { ...peer, metadata: { ...peer.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  const path = "/apis/coordination.k8s.io/v1/namespaces/zonewise/leases";
  const lease = { metadata: { name: "zonewise-downscale-x" }, spec: { holderIdentity: "x" } };
  const steps = [
    [heldAt, () => reads.onRequest({ actor, call: "" }, "POST", path, JSON.stringify(lease))],
    [listedAt, () => reads.onRequest({ actor, call: "", sentAt: listedAt }, "GET", SETS)],
    [endsAt, () => reads.onEvent(event("pods", ending, peer), undefined)],
    [scaledAt, scale],
    [100, scale],
  ] as const;
  for (const [at = Infinity, run] of steps.toSorted(([a = Infinity], [b = Infinity]) => a - b)) {
    now = at;
    if (at < Infinity) run();
  }
  return violations;
}
const TWO = { spec: { replicas: 2 } };

describe("the oracle of what a reconciler has read, as it shrinks a zone", () => {
  for (const [name, world, expected] of [
    ["under the downscale Lease, by a list of its own", {}, undefined],
    ["without the Lease", { heldAt: Infinity }, /without the downscale Lease/],
    ["by leave of a webhook, which takes it", { heldAt: Infinity, from: zone("a", { ...judged, ...TWO }) }, undefined],
    [
      "without it to its forced replicas",
      {
        heldAt: Infinity,
        from: zone("a", { metadata: { annotations: { "grafana.com/rollout-force-replicas": "1" } }, ...TWO }),
      },
      undefined,
    ],
    ["by a list from before the Lease", { listedAt: 9 }, /by a list from before it took the Lease/],
    ["while it has read that a pod of another one ends", { endsAt: 19 }, /has read that b-0 ends/],
    ["before a pod of another one ends", { endsAt: 21 }, undefined],
    ["after another one, without a list", { scaledAt: 50 }, /without another list since the last zone/],
  ] as const satisfies readonly (readonly [string, Shrink, RegExp | undefined])[])
    it(`${expected ? "condemns" : "allows"} it ${name}`, () =>
      expected ? assert.match(shrink(world).join(), expected) : assert.deepEqual(shrink(world), []));
});

function judge(requests: readonly Request[], stoodStillMs = 0, actor = "reconciler-1"): readonly string[] {
  let now = 0;
  const violations: string[] = [];
  const process = { name: "reconciler-1", stoodStillMs: () => stoodStillMs };
  const reads = createReadSafety({
    violated: (what) => violations.push(what),
    now: () => now,
    processes: () => [process as never],
    listPods: () => [],
    shape: { zones: ["a", "b"], faults: { stale: 0 }, suspends: false } as never,
  });
  for (const [appliedAt, sentAt, method, path] of requests) {
    now = appliedAt;
    reads.onRequest({ actor, call: `${method} ${path}`, sentAt }, method, path);
  }
  return violations;
}

describe("the oracle of reads", () => {
  for (const [name, requests, expected] of CASES)
    it(`${expected ? "condemns" : "allows"} ${name}`, () =>
      expected ? assert.match(judge(requests).join(), expected) : assert.deepEqual(judge(requests), []));

  it("allows a process that stood still to be late", () =>
    assert.deepEqual(judge([listed(0), confirmed(10), listed(50_000), deleted(50_020)], 1), []));
  it("judges reconcilers alone", () => assert.deepEqual(judge([deleted(0)], 0, "human"), []));
});
