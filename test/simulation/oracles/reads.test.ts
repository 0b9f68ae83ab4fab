/** The oracle of what is read before a deletion, against histories that it must condemn, and those next to them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { put } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { createReadSafety } from "./reads.ts";
import { isOrphan } from "./stored.ts";

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

/** What nobody loses, and nobody has admitted. */
const NOTHING = { losses: { find: () => undefined } as never, admittedBut: () => undefined };

interface World {
  /** Pods of the zones, with what happens to them. */
  readonly pods?: readonly KubeObject[];
  /** What another zone loses, and since when. */
  readonly lost?: readonly [since: number, loss: string];
  /** Since when a downscale of another zone is recorded. */
  readonly admittedAt?: number;
  /** Releases the Lease after the deletion was sent, and before it takes effect. */
  readonly releasesLease?: boolean;
  /** Its reservation is released 10 ms after the pod was taken. */
  readonly releases?: boolean;
  /** When all groups were listed. */
  readonly passes?: readonly number[];
  /** StatefulSets as they are stored, and when. */
  readonly sets?: readonly (readonly [at: number, set: KubeObject])[];
  readonly holdsLease?: boolean;
  /** After the first pod the zones are listed again at 5100, and another pod is taken. */
  readonly further?: boolean;
  /** When gates were listed; all groups were at 3600, and their pods at 4601. */
  readonly gatesAt?: readonly number[];
  /** The time limit of the deletion, in milliseconds, under a downscale Lease that lasts for 10 s. */
  readonly limitMs?: number;
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
const TRIED = "may still come up with a new template";
const half = put(pod("a-0", { ready: false }), ["status", "containerStatuses"], [{ ready: true }, { ready: false }]);
const behind = { metadata: { generation: 2 } };

/** The zone is confirmed at 5002, and its pod taken at 5012. */
function take(world: World): readonly string[] {
  const { pods = [], sets = [], holdsLease = false, lost, admittedAt = Infinity, passes = [] } = world;
  let now = 0;
  const actor = "reconciler-1";
  const violations: string[] = [];
  const reads = createReadSafety({
    violated: (what) => violations.push(what),
    now: () => now,
    processes: () => [{ name: actor, stoodStillMs: () => 0 } as never],
    listPods: () => pods,
    losses: {
      find: ({ before, losses }: { before: number; losses: readonly string[] }) =>
        lost && losses.includes(lost[1]) && lost[0] < before ? `b ${lost[1]}` : undefined,
    } as never,
    admittedBut: (_, before) => (admittedAt < before ? "a downscale of b is admitted" : undefined),
    shape: { zones: ["a", "b"], faults: {}, skewMs: 0, suspends: false } as never,
  });
  const stored = [...sets, ...["a", "b"].map((name) => [0, zone(name)] as const)].toSorted(([a], [b]) => a - b);
  const event = (resource: string, object: KubeObject, previous?: KubeObject) =>
    ({ type: previous ? "MODIFIED" : "ADDED", resource, object, previous }) as never;
  for (const one of pods) reads.onEvent(event("pods", one), undefined);
  for (const [at, set] of stored) {
    now = at;
    reads.onEvent(event("statefulsets.apps", set), undefined);
  }
  const path = "/apis/coordination.k8s.io/v1/namespaces/zonewise/leases/zonewise-downscale-x";
  const spec = { holderIdentity: "x", leaseDurationSeconds: 10 };
  const lease = { metadata: { name: "zonewise-downscale-x" }, spec };
  const take = (): void => reads.onRequest({ actor, call: path }, "PUT", path, JSON.stringify(lease));
  if (holdsLease) take();
  for (const at of passes) {
    now = at;
    reads.onRequest({ actor, call: "", sentAt: at }, "GET", `${SETS}?labelSelector=rollout-group&limit=500`);
  }
  const { gatesAt } = world;
  const gates = "/apis/zonewise.dev/v1/rolloutgates?limit=500";
  const pass = (sentAt: number, path: string): void => reads.onRequest({ actor, call: "", sentAt }, "GET", path);
  if (gatesAt) pass(3600, `${SETS}?labelSelector=rollout-group&limit=500`);
  for (const at of gatesAt ?? []) pass(at, gates);
  if (gatesAt) pass(4601, "/api/v1/namespaces/zonewise/pods?limit=500&labelSelector=app%3Dx%2Cname%20in%20(a%2Cb)");
  now = 4999;
  const isSent = world.further || world.limitMs !== undefined;
  if (isSent) reads.onRequest({ actor, call: "", sentAt: 4999 }, "GET", `${SETS}?limit=500`);
  now = 5001;
  // With the pods that it has listed.
  if (holdsLease && isSent) take();
  now = 5002;
  reads.onRequest({ actor, call: "" }, "PATCH", `${SETS}/a/status`);
  now = 5012;
  const released = { ...lease, spec: { holderIdentity: "" } };
  if (world.releasesLease) reads.onRequest({ actor, call: "", sentAt: 5011 }, "PUT", path, JSON.stringify(released));
  const before = pods[0] ?? pod("a-0");
  const ending = { ...before, metadata: { ...before.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  reads.onEvent(event("pods", ending, before), { actor, call: "", sentAt: 5010 });
  const deletion = `/api/v1/namespaces/zonewise/pods/a-0?timeout=${world.limitMs ?? 1000}ms`;
  if (isSent) reads.onRequest({ actor, call: "", sentAt: 5010 }, "DELETE", deletion, "{}");
  now = 5100;
  const list = `${SETS}?labelSelector=rollout-group%3Dingester&limit=500`;
  if (world.further) reads.onRequest({ actor, call: "", sentAt: 5100 }, "GET", list);
  now = 5200;
  if (world.further) reads.onEvent(event("pods", ending, before), { actor, call: "", sentAt: 5150 });
  now = 5022;
  const budgets = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
  const budget = (disruptedPods: object): KubeObject =>
    ({ metadata: { name: "x", namespace: "zonewise" }, status: { disruptedPods } }) as never;
  const reserved = { "a-0": { uid: before.metadata.uid, time: new Date(5000).toISOString() } };
  if (world.releases) reads.onEvent(event(budgets, budget({}), budget(reserved)), { actor, call: "" });
  return violations;
}

describe("the oracle of what a reconciler has read, as it takes a pod", () => {
  for (const [name, world, expected] of [
    ["of a zone that is as it should be", {}, undefined],
    ["of a zone that was paused", { sets: [[5002, zone("a", paused)]] }, /has read that a is paused/],
    ["of a zone that was paused after it had been read", { sets: [[5003, zone("a", paused)]] }, undefined],
    [
      "after the first, of a zone that was paused",
      { sets: [[5050, zone("a", paused)]], further: true },
      /that a is paused/,
    ],
    [
      "after the first, of a zone that was paused later",
      { sets: [[5150, zone("a", paused)]], further: true },
      undefined,
    ],
    [
      "under the downscale Lease for longer than that lasts",
      { sets: [[1, zone("b", judged)]], holdsLease: true, limitMs: 10_000 },
      /after its downscale Lease may pass to another/,
    ],
    [
      "under the downscale Lease for no longer",
      { sets: [[1, zone("b", judged)]], holdsLease: true, limitMs: 4000 },
      undefined,
    ],
    ["while another one is paused", { sets: [[1, zone("b", paused)]] }, undefined],
    ["while another one is being deleted", { sets: [[4001, zone("b", leaving)]] }, /that b is being deleted/],
    ["while another one was, for less than a second", { sets: [[4002, zone("b", leaving)]] }, undefined],
    ["while another one does not wait for us", { sets: [[1, zone("b", rolling)]] }, /another update strategy/],
    ["while another one's status is old", { sets: [[1, zone("b", behind)]] }, /a status older than its spec/],
    ["without the downscale Lease", { sets: [[1, zone("b", judged)]] }, /without the downscale Lease/],
    ["under the downscale Lease", { sets: [[1, zone("b", judged)]], holdsLease: true }, undefined],
    [
      "under it while a downscale is admitted",
      { sets: [[1, zone("b", judged)]], holdsLease: true, admittedAt: -1 },
      /has read that a downscale of b is admitted/,
    ],
    [
      "under it before one is admitted",
      { sets: [[1, zone("b", judged)]], holdsLease: true, admittedAt: 5001 },
      undefined,
    ],
    [
      "whose deletion was on its way as the Lease was given back",
      { sets: [[1, zone("b", judged)]], holdsLease: true, releasesLease: true },
      /given the downscale Lease back while that was on its way/,
    ],
    ["while another zone has lost pods", { pods: [pod("a-0")], lost: [4001, "ends"] }, /has read that b ends/],
    ["while another one has, for less than a second", { pods: [pod("a-0")], lost: [4002, "ends"] }, undefined],
    [
      "by the one list before, which shows that",
      { pods: [pod("a-0")], lost: [4900, "ends"], passes: [4901] },
      /that b ends/,
    ],
    ["by one of two lists", { pods: [pod("a-0")], lost: [4900, "ends"], passes: [4000, 4901] }, undefined],
    ["that may still come up", { pods: [pod("a-0", { ready: false })], lost: [0, TRIED] }, /may still come up/],
    ["that may, while another zone loses pods", { pods: [pod("a-0", { ready: false })], lost: [0, "ends"] }, undefined],
    [
      "of which a container works, while another zone has lost pods",
      { pods: [half], lost: [0, "ends"] },
      /that b ends/,
    ],
    ["of which a container works", { pods: [half], lost: [0, TRIED] }, undefined],
    ["by gates that were listed long before its pods", { pods: [pod("a-0")], gatesAt: [3601] }, /1001 ms after zones/],
    ["by gates that were listed again", { pods: [pod("a-0")], gatesAt: [3601, 4700] }, undefined],
    ["by gates that nobody knows", { pods: [pod("a-0")], gatesAt: [] }, undefined],
    ["that is not ready, by such gates", { pods: [pod("a-0", { ready: false })], gatesAt: [3601] }, undefined],
    ["that it releases", { pods: [pod("a-0")], releases: true }, /releases the reservation of a-0, which it has taken/],
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

function judge(requests: readonly Request[], stoodStillMs = 0, actor = "reconciler-1"): readonly string[] {
  let now = 0;
  const violations: string[] = [];
  const process = { name: "reconciler-1", stoodStillMs: () => stoodStillMs };
  const reads = createReadSafety({
    violated: (what) => violations.push(what),
    now: () => now,
    processes: () => [process as never],
    listPods: () => [],
    ...NOTHING,
    shape: { zones: ["a", "b"], faults: {}, skewMs: 0, suspends: false } as never,
  });
  for (const [appliedAt, sentAt, method, path] of requests) {
    now = appliedAt;
    reads.onRequest({ actor, call: `${method} ${path}`, sentAt }, method, path);
  }
  return violations;
}

interface Stalled {
  readonly maxUnavailable?: number;
  /** The first pod is back before the second one is taken. */
  readonly isBack?: boolean;
  /** Seconds for which the pods have served. */
  readonly served?: number;
  /** What another zone tries, for long. */
  readonly tried?: boolean;
}

/** Two pods of a zone that have served and are not ready any more are taken. */
function takeStalled({ maxUnavailable = 1, isBack = false, served = 20, tried = false }: Stalled): string {
  let now = 0;
  const violations: string[] = [];
  const made = ({ metadata, ...rest }: KubeObject): KubeObject => ({
    ...rest,
    metadata: { ...metadata, creationTimestamp: "1970-01-01T00:00:00Z" },
  });
  const pods = new Map<string, KubeObject>();
  const reads = createReadSafety({
    violated: (what) => violations.push(what),
    now: () => now,
    processes: () => [],
    listPods: () => [...pods.values()],
    losses: { find: ({ isEver }: { isEver: boolean }) => (tried && isEver ? "b tries it" : undefined) } as never,
    admittedBut: () => undefined,
    shape: { zones: ["a", "b"], faults: {}, skewMs: 0, suspends: false, maxUnavailable } as never,
  });
  const store = (object: KubeObject, actor = "kubelet"): void => {
    const previous = pods.get(object.metadata.name);
    pods.set(object.metadata.name, object);
    const event = { type: previous ? "MODIFIED" : "ADDED", resource: "pods", object, previous } as never;
    reads.onEvent(event, { actor, call: "", sentAt: now });
  };
  const names = ["a-0", "a-1"];
  for (const name of names) store(made({ ...pod(name), metadata: { ...pod(name).metadata, uid: name } }));
  now = served * 1000;
  for (const one of pods.values()) store({ ...one, status: pod("", { ready: false })["status"] });
  now += 1000;
  for (const name of names) {
    const one = pods.get(name) ?? pod(name);
    store({ ...one, metadata: { ...one.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }, "reconciler-1");
    if (isBack) store(made(pod(name, { revision: "new" })));
  }
  return violations.join();
}

describe("the oracle of pods that have served and are no longer ready", () => {
  for (const [name, stalled, expected] of [
    ["more of them than the limit", {}, /a-1 is taken by reconciler-1, which has taken a-0 of the zone as well/],
    ["as many as the limit", { maxUnavailable: 2 }, undefined],
    ["one after the other", { isBack: true }, undefined],
    ["pods that have hardly served", { served: 5 }, undefined],
    ["pods while another zone tries a template", { maxUnavailable: 2, tried: true }, /has read that b tries it/],
  ] as const satisfies readonly (readonly [string, Stalled, RegExp | undefined])[])
    it(`${expected ? "condemns" : "allows"} ${name}`, () => assert.match(takeStalled(stalled), expected ?? /^$/));
});

describe("the oracle of the downscale Lease", () => {
  const path = "/apis/coordination.k8s.io/v1/namespaces/zonewise/leases/zonewise-downscale-x";
  const give = (faults: readonly string[]): readonly string[] => {
    let now = 0;
    const violations: string[] = [];
    const shape = { zones: ["a", "b"], faults: {}, skewMs: 0, suspends: false } as never;
    const world = { now: () => now, processes: () => [], listPods: () => [], shape, ...NOTHING };
    const reads = createReadSafety({ violated: (what) => violations.push(what), ...world });
    const write = (holderIdentity: string): void =>
      reads.onRequest(
        { actor: "reconciler-1", call: "" },
        "PUT",
        path,
        JSON.stringify({ metadata: { name: "zonewise-downscale-x" }, spec: { holderIdentity } }),
      );
    write("x");
    now = 10;
    reads.onRequest({ actor: "reconciler-1", call: "" }, "GET", `${SETS}?labelSelector=rollout-group%3Dingester`);
    for (const fault of faults) reads.onFault(fault);
    now = 20;
    write("");
    return violations;
  };
  for (const [fault, isUnknown] of [
    ["requestLost at reconciler DELETE pods", true],
    ["serverError at reconciler PATCH statefulsets", true],
    ["throttled at reconciler PATCH statefulsets", false],
    ["requestLost at reconciler PATCH statefulsets/status", false],
    ["requestLost at webhooks DELETE pods", false],
  ] as const)
    it(`${isUnknown ? "condemns" : "allows"} that it is given back after "${fault}"`, () =>
      assert.equal(give([fault]).length, isUnknown ? 1 : 0));
});

describe("the oracle of reads", () => {
  for (const [name, requests, expected] of CASES)
    it(`${expected ? "condemns" : "allows"} ${name}`, () =>
      expected ? assert.match(judge(requests).join(), expected) : assert.deepEqual(judge(requests), []));

  it("allows a process that stood still to be late", () =>
    assert.deepEqual(judge([listed(0), confirmed(10), listed(50_000), deleted(50_020)], 1), []));
  it("judges reconcilers alone", () => assert.deepEqual(judge([deleted(0)], 0, "human"), []));
  it("knows a pod that ends from before its StatefulSet was made again", () => {
    const owned = (uid: string, ends: boolean): KubeObject => {
      const { metadata, ...rest } = pod("a-0", { ends });
      return { ...rest, metadata: { ...metadata, ownerReferences: [{ uid }] } } as never;
    };
    assert.ok(isOrphan(owned("before", true), zone("a")));
    for (const [uid, ends] of [
      ["a", true],
      ["before", false],
    ] as const)
      assert.ok(!isOrphan(owned(uid, ends), zone("a")));
  });
});
