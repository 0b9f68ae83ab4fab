/** What the pods of a node say: whether it may be drained, and whether its work is back, from objects of a cluster. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeReading } from "../../../reconciler/nodes/snapshot.ts";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import { budgetObject, reservationOf } from "../../builders/budgets.ts";
import { make } from "../../builders/objects.ts";
import {
  LAST,
  leftBehind,
  NOON,
  podObjects,
  PREVIOUS,
  statefulSetObject,
  traitsOf,
  type ZoneTraits,
} from "../../builders/zones.ts";
import { readingOf } from "./adapter.ts";
import { pod } from "./fixture.ts";

type Zones = Readonly<Record<string, ZoneTraits | string>>;

interface World {
  /** Pods of the zones that are on the node, such as `a-0`; all others are elsewhere. */
  readonly here?: readonly string[];
  /** By letter; a, b and c with three pods each by default. */
  readonly zones?: Zones;
  /** Of the zone-aware budget; "none" without one, "unknown" without its definition. */
  readonly spec?: object | "none" | "unknown";
  readonly reserved?: object;
  /** Pods that no zone has. */
  readonly pods?: readonly PodObject[];
  /** Disruptions that PodDisruptionBudgets allow, by namespace and name. */
  readonly allowed?: Readonly<Record<string, number>>;
  /** More objects, by the plural of their kind. */
  readonly more?: Readonly<Record<string, readonly object[]>>;
  readonly drained?: NodeReading["workloads"];
}

const on = (nodeName: string, object: PodObject): object => ({ ...object, spec: { nodeName } });
const LABELS = { app: "api" };

function read(world: World): Promise<NodeReading> {
  const { here = [], zones = { a: "nnn", b: "nnn", c: "nnn" }, pods = [], spec = {}, reserved, allowed = {} } = world;
  const all = Object.entries(zones).map(([letter, zone]): ZoneTraits => ({
    name: `ingester-zone-${letter}`,
    selected: { "rollout-group": "ingester" },
    ...traitsOf(zone),
  }));
  const ofZones = all.flatMap(podObjects).map((object) => {
    const { name = "", labels } = object.metadata ?? {};
    const metadata = { ...object.metadata, labels: { ...labels, "rollout-group": "ingester" } };
    return on(here.includes(name.replace("ingester-zone-", "")) ? "here" : "elsewhere", { ...object, metadata });
  });
  const budgets =
    typeof spec === "string" ? [] : [{ ...budgetObject(spec), status: { disruptedPods: reserved ?? {} } }];
  const objects = {
    statefulsets: all.map(statefulSetObject),
    ...(spec !== "unknown" && { zoneawarepoddisruptionbudgets: budgets }),
    poddisruptionbudgets: Object.entries(allowed).map(([key, disruptionsAllowed]) => {
      const [namespace = "", name = ""] = key.split("/");
      return make("PodDisruptionBudget", name, {
        namespace,
        spec: { selector: { matchLabels: LABELS } },
        status: { disruptionsAllowed },
      });
    }),
    ...world.more,
    pods: [...ofZones, ...pods.map((one) => on("here", one)), ...(world.more?.["pods"] ?? [])],
  };
  return readingOf("here", { objects, now: NOON, ...(world.drained && { drained: world.drained }) });
}

type Row = readonly [title: string, world: World, why?: RegExp];

/** What the reading says in one field; nothing without an expression. */
function rows(field: "obstacle" | "oneByOne" | "rollout" | "missing" | "unfit", all: readonly Row[]): void {
  for (const [title, world, why] of all)
    it(title, async () => assert.match((await read(world))[field] ?? "", why ?? /^$/));
}

const sick = { a: "nnn", b: "nn!n", c: "nnn" };
const labels = LABELS;

describe("a drain under a zone-aware budget", () =>
  rows("obstacle", [
    ["succeeds while all zones are well", { here: ["a-0"] }],
    ["succeeds for several pods of a zone, which are drained in turn", { here: ["a-0", "a-1", "a-2"] }],
    ["succeeds for pods of two zones, which are drained in turn", { here: ["a-0", "b-0"] }],
    ["fails while another zone has a pod that is not ready", { here: ["a-0"], zones: sick }, /zone-a-0: .*zone-b/],
    ["fails while another pod of the zone is not ready elsewhere", { here: ["b-0"], zones: sick }, /zone-b-0: /],
    ["fails while another pod of the node is not ready", { here: ["a-0", "b-1"], zones: sick }, /zone-a-0: /],
    ["fails for a budget of 0", { here: ["a-0"], spec: { maxUnavailable: 0 } }, /zone-a-0: /],
    ["succeeds within a larger budget", { here: ["b-0"], zones: sick, spec: { maxUnavailable: 2 } }],
    ["succeeds without any budget", { here: ["a-0"], zones: sick, spec: "none" }],
    ["succeeds where no zone-aware budgets are known", { here: ["a-0"], zones: sick, spec: "unknown" }],
    [
      "fails for a pod that was reserved elsewhere a moment ago",
      { here: ["a-0"], reserved: reservationOf("ingester-zone-b-0") },
      /zone-a-0: .*zone-b/,
    ],
  ]));

/** What a PodDisruptionBudget allows. */
const NONE = { "shop/api": 0 };
const ONE = { "shop/db": 1 };

const API = pod("a", { labels });
const ofSet = (name: string, more = {}): PodObject => pod(name, { labels, kind: "StatefulSet", ...more });
describe("a drain under core budgets", () =>
  rows("obstacle", [
    [
      "fails while none may go",
      { pods: [API], allowed: NONE },
      /^shop\/a: PodDisruptionBudget api allows no disruption now$/,
    ],
    ["succeeds while one may go", { pods: [API], allowed: { "shop/api": 1 } }],
    ["succeeds for several, which go in turn", { pods: [API, pod("b", { labels })], allowed: { "shop/api": 1 } }],
    ["does not ask budgets of other namespaces", { pods: [API], allowed: { "other/api": 0 } }],
    ["does not ask budgets of other pods", { pods: [pod("a")], allowed: NONE }],
    [
      "fails for a pod under two budgets",
      { pods: [API], allowed: { "shop/api": 1, "shop/b": 1 } },
      /several PodDisruptionBudgets select it: api, b/,
    ],
    ["leaves a pod that is not ready to the API server", { pods: [pod("a", { labels, ready: false })], allowed: NONE }],
    ["does not ask for pods that are over", { pods: [pod("a", { labels, phase: "Failed" })], allowed: NONE }],
    ["does not ask for pods of DaemonSets", { pods: [pod("a", { labels, kind: "DaemonSet" })], allowed: NONE }],
    ["does not ask for static pods", { pods: [pod("a", { labels, mirror: true })], allowed: NONE }],
    [
      "names three pods at most",
      { pods: ["a", "b", "c", "d", "e"].map((name) => pod(name, { labels })), allowed: NONE },
      /^shop\/a: .*; shop\/b: .*; shop\/c: .* and 2 more$/,
    ],
  ]));

describe("pods of one node that may not all be away at once", () =>
  rows("oneByOne", [
    ["one under a zone-aware budget may", { here: ["a-0"] }],
    [
      "two under one may not",
      { here: ["a-0", "a-1"] },
      /zone-a-1 would wait for .*zone-a-0: both have zone-aware budget /,
    ],
    ["pods of two zones may not", { here: ["a-0", "b-0"], spec: { maxUnavailable: 2 } }, /would wait for/],
    [
      "two under a core budget may not",
      { pods: [ofSet("a"), ofSet("b")], allowed: ONE },
      /^shop\/b would wait for shop\/a: both have PodDisruptionBudget shop\/db/,
    ],
    ["one that is not ready counts", { pods: [ofSet("a"), ofSet("b", { ready: false })], allowed: ONE }, /^shop\/b/],
    ["one that has ended does not", { pods: [ofSet("a"), ofSet("b", { phase: "Failed" })], allowed: ONE }],
    ["two of a Deployment may: they come up in any zone", { pods: [API, pod("b", { labels })], allowed: ONE }],
    ["two without a budget may", { pods: [ofSet("a"), ofSet("b")] }],
  ]));

const rolling = (...letters: readonly string[]): Zones =>
  Object.fromEntries(["a", "b"].map((one) => [one, { replicas: 3, ...(letters.includes(one) && { statusReady: 2 }) }]));
const empty = (currentRevision: string): Zones => ({ a: { replicas: 3 }, b: { replicas: 0, currentRevision } });
const left = (letter: string, more: ZoneTraits = {}): PodObject[] =>
  leftBehind({ name: `ingester-zone-${letter}`, replicas: 1, ...more });
const orphans = (ready: boolean) => ({
  zones: rolling(),
  more: { pods: left("c", { replicas: 3, pods: { 0: { ready } } }).map((one) => on("elsewhere", one)) },
});
const stranger = [pod("y")];
const LOST = /zone ingester-zone-a has pods here, and group test\/ingester waits for /;
describe("a rollout in progress", () =>
  rows("rollout", [
    [
      "of another zone holds the node",
      { here: ["a-0"], zones: rolling("b") },
      /group test\/ingester is rolling out zone ingester-zone-b, and zone ingester-zone-a has pods here/,
    ],
    ["of the node's own zone does not", { here: ["a-0"], zones: rolling("a") }],
    ["of another zone does not hold nodes without pods of the group", { pods: stranger, zones: rolling("b") }],
    ["of no zone does not", { here: ["a-0"], zones: rolling() }],
    ["of the only zone of a group does not", { here: ["a-0"], zones: { a: { replicas: 3, statusReady: 2 } } }],
    [
      "of another zone that has no pods, and is not recorded yet, holds the node",
      { here: ["a-0"], zones: empty(PREVIOUS) },
      /rolling out zone ingester-zone-b/,
    ],
    ["of another zone that has no pods, once it is recorded, does not", { here: ["a-0"], zones: empty(LAST) }],
    [
      "holds the node of pods that a StatefulSet has left behind",
      { pods: left("c"), zones: rolling("b") },
      /rolling out zone ingester-zone-b, and zone ingester-zone-c has pods here/,
    ],
    [
      "holds that of pods that their StatefulSet has still to adopt",
      { pods: left("a"), zones: rolling("b") },
      /zone ingester-zone-a has pods here/,
    ],
    ["does not hold that of pods that the rolling zone has still to adopt", { pods: left("b"), zones: rolling("b") }],
    ["that has lost its StatefulSet and lacks a pod holds the node", { here: ["a-0"], ...orphans(false) }, LOST],
    ["that has lost its StatefulSet does not once its pods are ready", { here: ["a-0"], ...orphans(true) }],
    [
      "that has lost its StatefulSet does not hold nodes without pods of the group",
      { pods: stranger, ...orphans(false) },
    ],
    [
      "that has lost its StatefulSet does not hold nodes that have its own pods alone",
      { ...orphans(false), pods: left("c") },
    ],
  ]));

describe("a node that takes the pods of another", () => {
  const ready = { conditions: [{ type: "Ready", status: "True" }] };
  const node = (name: string, { metadata = {}, ...more }: Readonly<Record<string, object>> = {}) =>
    make("Node", name, { metadata, spec: {}, status: ready, ...more });
  for (const [title, other, takes] of [
    ["is any other one", {}, true],
    ["is Ready", { status: {} }, false],
    ["is not cordoned", { spec: { unschedulable: true } }, false],
    ["is not being deleted", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }, false],
    ["is not removed by an autoscaler", { spec: { taints: [{ key: "karpenter.sh/disrupted" }] } }, false],
    ["may have taints of its own", { spec: { taints: [{ key: "node-role.kubernetes.io/control-plane" }] } }, true],
  ] as const)
    it(title, async () => {
      const nodes = [node("here"), node("other", other)];
      const { others } = await read({ pods: stranger, more: { nodes } });
      assert.deepEqual(
        others?.map(({ name }) => name),
        takes ? ["other"] : [],
      );
    });

  it("is not asked for if no pod has to leave", async () =>
    assert.equal(
      (await read({ pods: [pod("a", { kind: "DaemonSet" })], more: { nodes: [node("here")] } })).others,
      undefined,
    ));
});

const CRASHING = pod("a", { ready: false, waiting: "CrashLoopBackOff" });
describe("a node before its update", () =>
  rows("unfit", [
    ["is fit with healthy pods", { pods: [pod("a")] }],
    ["is fit with a pod that is starting", { pods: [pod("a", { ready: false })] }],
    ["is not fit with a pod in CrashLoopBackOff", { pods: [CRASHING] }, /^shop\/a CrashLoopBackOff$/],
    [
      "is not fit with a pod whose image cannot be pulled",
      { pods: [pod("a", { ready: false, waiting: "ImagePullBackOff" })] },
      /ImagePullBackOff/,
    ],
    ["is fit with a pod that is over", { pods: [pod("a", { ready: false, phase: "Failed" })] }],
  ]));

describe("the work of a node", () => {
  const set = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "u", ready: 3 };
  const owner = (ready: number) => ({
    replicasets: [
      {
        metadata: { namespace: "shop", name: "ReplicaSet-x", uid: "rs-uid" },
        spec: { replicas: 3 },
        status: { readyReplicas: ready },
      },
    ],
  });
  const after = (ready: number, desired: number, uid = "u"): World => ({
    zones: {},
    drained: [set],
    more: {
      statefulsets: [
        {
          metadata: { namespace: "shop", name: "db", uid },
          spec: { replicas: desired },
          status: { readyReplicas: ready },
        },
      ],
    },
  });
  rows("missing", [
    ["is back on an empty node", {}],
    [
      "is not back while a DaemonSet's pod is not ready",
      { pods: [pod("a", { kind: "DaemonSet", ready: false })] },
      /of a DaemonSet is not ready/,
    ],
    [
      "is not back with a pod that is broken here and healthy elsewhere",
      { pods: [CRASHING], more: owner(2) },
      /while other pods of ReplicaSet-x are healthy/,
    ],
    ["is back if that pod is broken everywhere", { pods: [CRASHING], more: owner(0) }],
    [
      "is not back while a drained controller has fewer ready pods than before",
      after(2, 3),
      /StatefulSet shop\/db has 2 ready pods, and had 3/,
    ],
    ["is back once it has as many, wherever they are", after(3, 3)],
    ["is back if the controller was scaled down meanwhile", after(1, 1)],
    ["is back if the controller is gone", { drained: [set] }],
    ["is back if the controller is another one by now", after(0, 3, "new")],
  ]);

  it("is remembered by the controllers of the pods that a drain evicts", async () => {
    const daemon = pod("d", { kind: "DaemonSet", owner: "ds-uid" });
    const { workloads } = await read({ pods: [pod("a"), daemon], more: owner(3) });
    assert.deepEqual(workloads, [
      { kind: "ReplicaSet", namespace: "shop", name: "ReplicaSet-x", uid: "rs-uid", ready: 3 },
    ]);
  });
});
