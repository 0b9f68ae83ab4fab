/** Where a pod could go: each case is a pod, a node, and what the node lacks for it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PodSpec } from "../../../infra/kubernetes/scheduling.ts";
import { readNode } from "../../../reconciler/nodes/node.ts";
import { type Demands, findPlaces, judgeNodes } from "../../../reconciler/nodes/places.ts";
import { readNeeds } from "../../../reconciler/nodes/pod-needs.ts";
import { parseQuantity } from "../../../reconciler/nodes/quantity.ts";
import { node } from "./fixture.ts";

type ClusterFacts = Partial<Pick<Demands, "claims" | "taken">>;

function demands(spec: PodSpec, cluster: ClusterFacts = {}): Demands {
  const { nodeSelector, terms, tolerations, requests } = readNeeds({ metadata: { namespace: "shop" }, spec });
  return { nodeSelector, terms, tolerations, requests, claims: [], taken: [], ...cluster };
}

const labels = { "topology.kubernetes.io/zone": "za", disk: "ssd", cores: "8" };
const taints = [
  { key: "dedicated", value: "db", effect: "NoSchedule" },
  { key: "soft", effect: "PreferNoSchedule" },
];
const object = (overrides: { readonly spec?: object; readonly status?: object } = {}) =>
  readNode(
    {
      metadata: { name: "n1", uid: "u", labels },
      spec: { taints: [], ...overrides.spec },
      status: { conditions: [{ type: "Ready", status: "True" }], ...overrides.status },
    },
    undefined,
  );
const plain = object();
const tainted = object({ spec: { taints } });
const affinity = (...nodeSelectorTerms: readonly object[]): PodSpec => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});
const expression = (key: string, operator: string, ...values: readonly string[]) => ({
  matchExpressions: [{ key, operator, values }],
});
const field = (operator: string, ...values: readonly string[]) => ({
  matchFields: [{ key: "metadata.name", operator, values }],
});
const tolerates = (...tolerations: NonNullable<PodSpec["tolerations"]>): PodSpec => ({ tolerations });
const requests = (amounts: Readonly<Record<string, string>>, init?: Readonly<Record<string, string>>): PodSpec => ({
  containers: [{ resources: { requests: amounts } }, { resources: { requests: amounts } }],
  ...(init && { initContainers: [{ resources: { requests: init } }] }),
});
const sized = object({ status: { allocatable: { cpu: "3920m", memory: "8Gi", pods: "110" } } });

const CASES: readonly (readonly [
  title: string,
  spec: PodSpec,
  on: ReturnType<typeof object>,
  lacks: RegExp | undefined,
  cluster?: ClusterFacts,
])[] = [
  ["without demands", {}, plain, undefined],
  ["nodeSelector that holds", { nodeSelector: { disk: "ssd", cores: "8" } }, plain, undefined],
  ["nodeSelector with one label that differs", { nodeSelector: { disk: "ssd", cores: "16" } }, plain, /^not cores=16$/],
  ["nodeSelector with a label that is missing", { nodeSelector: { gpu: "a" } }, plain, /^not gpu=a$/],
  ["In", affinity(expression("disk", "In", "hdd", "ssd")), plain, undefined],
  ["In without the value", affinity(expression("disk", "In", "hdd")), plain, /^not disk=hdd$/],
  ["In of a missing label", affinity(expression("gpu", "In", "")), plain, /not gpu=/],
  ["NotIn", affinity(expression("disk", "NotIn", "ssd")), plain, /disk NotIn \(ssd\)/],
  ["NotIn of a missing label", affinity(expression("gpu", "NotIn", "a")), plain, undefined],
  ["Exists", affinity(expression("disk", "Exists")), plain, undefined],
  ["Exists of a missing label", affinity(expression("gpu", "Exists")), plain, /gpu Exists/],
  ["DoesNotExist", affinity(expression("disk", "DoesNotExist")), plain, /disk DoesNotExist/],
  ["DoesNotExist of a missing label", affinity(expression("gpu", "DoesNotExist")), plain, undefined],
  ["Gt", affinity(expression("cores", "Gt", "7")), plain, undefined],
  ["Gt of the same", affinity(expression("cores", "Gt", "8")), plain, /cores Gt \(8\)/],
  ["Lt", affinity(expression("cores", "Lt", "9")), plain, undefined],
  ["Lt of a larger one", affinity(expression("cores", "Lt", "8")), plain, /cores Lt/],
  ["Gt of what is no number", affinity(expression("disk", "Gt", "1")), plain, /disk Gt/],
  ["an operator that is not known", affinity(expression("disk", "Like", "ssd")), plain, /disk Like/],
  [
    "all expressions of a term",
    affinity({
      matchExpressions: [
        ...expression("disk", "Exists").matchExpressions,
        ...expression("gpu", "Exists").matchExpressions,
      ],
    }),
    plain,
    /gpu Exists/,
  ],
  ["one of several terms", affinity(expression("gpu", "Exists"), expression("disk", "Exists")), plain, undefined],
  ["a term without requirements", affinity({}), plain, /^not /],
  ["no term at all", affinity(), plain, /^not /],
  ["a field", affinity(field("In", "n1")), plain, undefined],
  ["a field of another node", affinity(field("In", "n2")), plain, /metadata.name=n2/],
  ["a field that excludes", affinity(field("NotIn", "n1")), plain, /metadata.name NotIn/],
  [
    "nodeSelector and affinity together",
    { nodeSelector: { disk: "hdd" }, ...affinity(expression("disk", "Exists")) },
    plain,
    /not disk=hdd/,
  ],
  ["a taint", {}, tainted, /^taint dedicated=db:NoSchedule$/],
  ["a taint NoExecute", {}, object({ spec: { taints: [{ key: "x", effect: "NoExecute" }] } }), /^taint x:NoExecute$/],
  ["a taint PreferNoSchedule alone", {}, object({ spec: { taints: [taints[1]] } }), undefined],
  ["a toleration", tolerates({ key: "dedicated", value: "db", effect: "NoSchedule" }), tainted, undefined],
  ["a toleration of every effect", tolerates({ key: "dedicated", value: "db" }), tainted, undefined],
  ["a toleration of another value", tolerates({ key: "dedicated", value: "web" }), tainted, /taint dedicated/],
  [
    "a toleration of another effect",
    tolerates({ key: "dedicated", value: "db", effect: "NoExecute" }),
    tainted,
    /taint dedicated/,
  ],
  ["Exists of the key", tolerates({ key: "dedicated", operator: "Exists" }), tainted, undefined],
  ["Exists of another key", tolerates({ key: "x", operator: "Exists" }), tainted, /taint dedicated/],
  ["Exists of all", tolerates({ operator: "Exists" }), tainted, undefined],
  ["no key without Exists", tolerates({ value: "db" }), tainted, /taint dedicated/],
  [
    "a toleration with an operator that is not known",
    tolerates({ key: "dedicated", operator: "Gt", value: "db" }),
    tainted,
    /taint dedicated/,
  ],
  [
    "a taint of the node's state says nothing about who fits",
    {},
    object({ spec: { taints: [{ key: "node.kubernetes.io/not-ready", effect: "NoExecute" }] } }),
    undefined,
  ],
  ["a claim without a volume of its own zone", {}, plain, undefined, { claims: [{ name: "data" }] }],
  [
    "a claim of this zone",
    {},
    plain,
    undefined,
    { claims: [{ name: "data", terms: [expression("topology.kubernetes.io/zone", "In", "za")] }] },
  ],
  [
    "a claim of another zone",
    {},
    plain,
    /^claim data is bound to topology.kubernetes.io\/zone=zb$/,
    { claims: [{ name: "data", terms: [expression("topology.kubernetes.io/zone", "In", "zb")] }] },
  ],
  [
    "two claims, one of another zone",
    {},
    plain,
    /claim log/,
    { claims: [{ name: "data" }, { name: "log", terms: [expression("topology.kubernetes.io/zone", "In", "zb")] }] },
  ],
  ["a claim that is gone", {}, plain, /^claim data is gone$/, { claims: [{ name: "data", missing: true }] }],
  [
    "peers in this zone",
    {},
    plain,
    /must not be beside, by topology.kubernetes.io\/zone$/,
    { taken: [{ topologyKey: "topology.kubernetes.io/zone", values: ["za"] }] },
  ],
  [
    "peers in another zone",
    {},
    plain,
    undefined,
    { taken: [{ topologyKey: "topology.kubernetes.io/zone", values: ["zb"] }] },
  ],
  [
    "peers by a label that the node has not",
    {},
    plain,
    undefined,
    { taken: [{ topologyKey: "rack", values: ["r1"] }] },
  ],
  ["requests that fit", requests({ cpu: "1900m", memory: "4Gi" }), sized, undefined],
  [
    "requests of all containers together that do not",
    requests({ cpu: "2", memory: "1Gi" }),
    sized,
    /^never room for its cpu$/,
  ],
  ["an init container that does not", requests({ cpu: "1" }, { memory: "9Gi" }), sized, /never room for its memory/],
  [
    "a resource that the node has not",
    requests({ "nvidia.com/gpu": "1" }),
    sized,
    /never room for its nvidia.com\/gpu/,
  ],
  ["requests on a node that has not reported what it has", requests({ cpu: "100" }), plain, undefined],
];

describe("what a node lacks for a pod", () => {
  for (const [title, spec, on, lacks, cluster] of CASES)
    it(title, () => {
      const [[, found] = [undefined, undefined]] = judgeNodes(demands(spec, cluster), [on]);
      if (lacks) assert.match(found ?? "nothing", lacks);
      else assert.equal(found, undefined);
    });
});

describe("the places of a pod", () => {
  const zoned = (name: string, zone: string, overrides = {}) => node(name, { labels: { zone }, ...overrides });
  const nodes = [
    zoned("here", "a"),
    zoned("a1", "a"),
    zoned("a2", "a", { ready: false }),
    zoned("a3", "a", { unschedulable: true }),
    zoned("a4", "a", { terminating: true }),
    zoned("a5", "a", { removedBy: "karpenter.sh/disrupted" }),
    zoned("b1", "b"),
  ];
  const placesOf = (nodeSelector: Record<string, string>, of = nodes) =>
    findPlaces(judgeNodes(demands({ nodeSelector }), of), "here");

  it("are other nodes that fit; some take no pods now, and those that go away are none", () =>
    assert.deepEqual(placesOf({ zone: "a" }), {
      open: ["a1"],
      closed: new Map([
        ["a2", "not Ready"],
        ["a3", "cordoned"],
      ]),
      why: "",
    }));
  it("say what the others lack if there is none", () =>
    assert.deepEqual(placesOf({ zone: "c" }), {
      open: [],
      closed: new Map(),
      why: "of 4 other nodes: 4 not zone=c",
      back: "not zone=c",
    }));
  it("say if the pod could not come back to its own node either, where it is the only one", () => {
    const here = nodes.slice(0, 1);
    const [own] = here;
    assert.ok(own);
    assert.equal(placesOf({ zone: "a" }, here).back, undefined);
    assert.equal(placesOf({ zone: "moved" }, here).back, "not zone=moved");
    const cordoned = { ...own, unschedulable: true };
    assert.equal(placesOf({ zone: "a" }, [cordoned]).back, "somebody else has cordoned it");
    assert.equal(placesOf({ zone: "a" }, [{ ...cordoned, cordonedBy: "us" }]).back, undefined);
    assert.equal(placesOf({ zone: "a" }, [cordoned, ...nodes.slice(1)]).back, undefined);
  });
  it("say so if there is no other node", () =>
    assert.equal(placesOf({ zone: "a" }, nodes.slice(0, 1)).why, "there is no other node"));
});

describe("what a pod asks for", () => {
  const repels = (term: object) =>
    readNeeds({
      metadata: { namespace: "shop" },
      spec: {
        affinity: {
          podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "h", ...term }] },
        },
      },
    }).repels[0];
  const labelSelector = { matchLabels: { a: "b" } };
  for (const [title, term, namespaces] of [
    ["its own namespace", { labelSelector }, ["shop"]],
    ["those that are named", { labelSelector, namespaces: ["x", "y"] }, ["x", "y"]],
    ["all by an empty selector", { labelSelector, namespaceSelector: {} }, [""]],
    [
      "those that are named beside a selector of namespaces",
      { labelSelector, namespaces: ["x"], namespaceSelector: labelSelector },
      ["x"],
    ],
    ["none by a selector of namespaces alone", { labelSelector, namespaceSelector: labelSelector }, []],
  ] as const)
    it(`repels pods of ${title}`, () =>
      assert.deepEqual(repels(term), { topologyKey: "h", selector: labelSelector, namespaces }));

  it("binds it by claims, not by ephemeral volumes", () => {
    const volumes = [{ persistentVolumeClaim: { claimName: "data" } }, { ephemeral: {} }, { emptyDir: {} }];
    assert.deepEqual(readNeeds({ spec: { volumes } }).claims, ["data"]);
  });
});

describe("quantities", () => {
  for (const [text, number] of [
    ["100m", 0.1],
    ["2", 2],
    ["1.5", 1.5],
    ["1Ki", 1024],
    ["2Gi", 2 ** 31],
    ["1k", 1000],
    ["1e3", 1000],
    ["5E", 5e18],
    ["x", undefined],
    ["1 Gi", undefined],
    ["1Qi", undefined],
    ["", undefined],
  ] as const)
    it(`reads ${text || "nothing"}`, () => assert.equal(parseQuantity(text), number));
});
