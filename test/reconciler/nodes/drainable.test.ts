import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  canTakeOver,
  type CoreBudget,
  type DrainFacts,
  whyHeldByRollout,
  whyNoPlace,
  whyNotDrainable,
  whyOneByOne,
} from "../../../reconciler/nodes/drainable.ts";
import { type NodePod, readNodePod } from "../../../reconciler/nodes/node-pod.ts";
import { orphanedZone } from "../../../reconciler/model/orphans.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { LAST, leftBehind, podObjects, PREVIOUS, statefulSetObject, type ZoneTraits } from "../builders.ts";
import { budget, NOW } from "../budget/builders.ts";
import { node, pod, policy } from "./fixture.ts";

const healthy: ZoneTraits = { replicas: 3 };
const labelled = (traits: ZoneTraits): NodePod[] =>
  podObjects(traits).map((object) =>
    readNodePod({
      ...object,
      metadata: { ...object.metadata, labels: { ...object.metadata?.labels, "rollout-group": "ingester" } },
    }),
  );

/** Three zones under one budget; `here` are the pods on the node, all others are elsewhere. */
function facts(here: readonly string[], zones: Readonly<Record<string, ZoneTraits>> = {}, spec = {}): DrainFacts {
  const all = Object.entries({ a: healthy, b: healthy, c: healthy, ...zones }).map(([letter, traits]) => {
    const named = { name: `ingester-zone-${letter}`, ...traits };
    return { ...readZone(statefulSetObject(named)), pods: labelled(named) };
  });
  const pods = all.flatMap((zone) => zone.pods).filter(({ name }) => here.includes(name.replace("ingester-zone-", "")));
  assert.equal(pods.length, here.length);
  const content = budget(spec);
  const ref = {
    kind: "ZoneAwarePodDisruptionBudget",
    namespace: pods[0]?.namespace ?? "",
    name: content.name,
    uid: content.uid,
  } as const;
  return {
    now: NOW,
    pods,
    budgets: [{ ref, content, matchLabels: content.matchLabels }],
    covered: new Map([[content.uid, { zones: all, reservations: {} }]]),
    coreBudgets: [],
  };
}

const sick: ZoneTraits = { replicas: 3, pods: { 1: { ready: false } } };

describe("a drain under a zone-aware budget", () => {
  for (const [title, input, drains] of [
    ["succeeds while all zones are well", facts(["a-0"]), true],
    ["succeeds for several pods of a zone, which are drained in turn", facts(["a-0", "a-1", "a-2"]), true],
    ["succeeds for pods of two zones, which are drained in turn", facts(["a-0", "b-0"]), true],
    ["fails while another zone has a pod that is not ready", facts(["a-0"], { b: sick }), false],
    ["fails while another pod of the zone is not ready elsewhere", facts(["a-0"], { a: sick }), false],
    ["fails while another pod of the node is not ready", facts(["a-0", "b-1"], { b: sick }), false],
    ["fails for a budget of 0", facts(["a-0"], {}, { maxUnavailable: 0 }), false],
    ["succeeds within a larger budget", facts(["a-0"], { a: sick }, { maxUnavailable: 2 }), true],
    ["fails if what the budget covers is not known", { ...facts(["a-0"]), covered: new Map() }, false],
    ["succeeds without any budget", { ...facts(["a-0"]), budgets: [] }, true],
  ] as const)
    it(title, () => assert.equal(whyNotDrainable(input) === undefined, drains, whyNotDrainable(input)));

  it("fails for a pod that was reserved elsewhere a moment ago", () => {
    const input = facts(["a-0"]);
    const [[uid, covered] = ["", undefined]] = [...input.covered];
    assert.ok(covered);
    const elsewhere = covered.zones.flatMap(({ pods }) => pods).find(({ name }) => name.endsWith("zone-b-0"));
    const time = new Date(NOW).toISOString();
    const reserved = { kind: "eviction", uid: elsewhere?.uid ?? "", pinned: true, time, by: "x" } as const;
    const reservations = { [elsewhere?.name ?? ""]: reserved };
    assert.ok(whyNotDrainable({ ...input, covered: new Map([[uid, { ...covered, reservations }]]) }));
  });

  it("names the pod and what keeps it", () =>
    assert.match(whyNotDrainable(facts(["a-0"], { b: sick })) ?? "", /zone-a-0: .*zone-b/));
});

describe("a drain under core budgets", () => {
  const labels = { app: "api" };
  const core = (rest: Partial<CoreBudget> = {}): CoreBudget => ({
    namespace: "shop",
    name: "api",
    selector: { matchLabels: labels },
    disruptionsAllowed: 0,
    ...rest,
  });
  const here = (pods: readonly NodePod[], coreBudgets: readonly CoreBudget[]): DrainFacts => ({
    now: NOW,
    pods,
    budgets: [],
    covered: new Map(),
    coreBudgets,
  });
  for (const [title, pods, budgets, drains] of [
    ["fails while none may go", [pod("a", { labels })], [core()], false],
    ["succeeds while one may go", [pod("a", { labels })], [core({ disruptionsAllowed: 1 })], true],
    [
      "succeeds for several, which go in turn",
      [pod("a", { labels }), pod("b", { labels })],
      [core({ disruptionsAllowed: 1 })],
      true,
    ],
    ["does not ask budgets of other namespaces", [pod("a", { labels })], [core({ namespace: "other" })], true],
    ["does not ask budgets of other pods", [pod("a")], [core()], true],
    [
      "fails for a pod under two budgets",
      [pod("a", { labels })],
      [core({ disruptionsAllowed: 1 }), core({ name: "b", disruptionsAllowed: 1 })],
      false,
    ],
    ["leaves a pod that is not ready to the API server", [pod("a", { labels, ready: false })], [core()], true],
    ["does not ask for pods that are over", [pod("a", { labels, phase: "Failed" })], [core()], true],
    ["does not ask for pods of DaemonSets", [pod("a", { labels, kind: "DaemonSet" })], [core()], true],
    ["does not ask for static pods", [pod("a", { labels, mirror: true })], [core()], true],
  ] as const)
    it(title, () => assert.equal(whyNotDrainable(here(pods, budgets)) === undefined, drains));

  it("names three pods at most", () => {
    const pods = ["a", "b", "c", "d", "e"].map((name) => pod(name, { labels }));
    assert.match(whyNotDrainable(here(pods, [core()])) ?? "", /^shop\/a: .*; shop\/b: .*; shop\/c: .* and 2 more$/);
  });
});

describe("pods of one node that may not all be away at once", () => {
  const labels = { app: "db" };
  const db = (name: string) => pod(name, { labels, kind: "StatefulSet" });
  const core = (disruptionsAllowed: number): CoreBudget => ({
    namespace: "shop",
    name: "db",
    selector: { matchLabels: labels },
    disruptionsAllowed,
  });
  const under = (pods: readonly NodePod[], disruptionsAllowed: number): DrainFacts => ({
    now: NOW,
    pods,
    budgets: [],
    covered: new Map(),
    coreBudgets: [core(disruptionsAllowed)],
  });
  for (const [title, input, why] of [
    ["one under a zone-aware budget may", facts(["a-0"]), undefined],
    [
      "two under one may not",
      facts(["a-0", "a-1"]),
      /zone-a-1 would wait for .*zone-a-0: both have zone-aware budget /,
    ],
    ["pods of two zones may not", facts(["a-0", "b-0"], {}, { maxUnavailable: 2 }), /would wait for/],
    [
      "two under a core budget may not",
      under([db("a"), db("b")], 1),
      /^shop\/b would wait for shop\/a: both have PodDisruptionBudget shop\/db/,
    ],
    [
      "one that is not ready counts",
      under([db("a"), pod("b", { labels, kind: "StatefulSet", ready: false })], 1),
      /^shop\/b/,
    ],
    [
      "one that has ended does not",
      under([db("a"), pod("b", { labels, kind: "StatefulSet", phase: "Failed" })], 1),
      undefined,
    ],
    [
      "two of a Deployment may: they come up in any zone",
      under([pod("a", { labels }), pod("b", { labels })], 1),
      undefined,
    ],
    ["two without a budget may", { ...under([db("a"), db("b")], 0), coreBudgets: [] }, undefined],
  ] as const)
    it(title, () => {
      const found = whyOneByOne(input);
      if (why) assert.match(found ?? "", why);
      else assert.equal(found, undefined);
    });
});

describe("a node that is left for the pods", () => {
  const going = (name: string, zone?: string, phase: "Staging" | "Draining" = "Draining") => ({
    node: name,
    phase,
    ...(zone !== undefined && { zone }),
  });
  const of = (name: string, zone: string) => ({ name, zone });
  const waits = "shop/a would wait for shop/b";
  for (const [title, others, oneByOne, busy, reason, forced] of [
    ["in its zone is enough", [of("a2", "a")], waits, [], undefined],
    [
      "in its zone is not enough while it goes",
      [of("a2", "a"), of("b1", "b")],
      undefined,
      [going("a2", "a")],
      "LimitReached",
    ],
    ["beside another that goes is enough", [of("a2", "a"), of("a3", "a")], waits, [going("a2", "a")], undefined],
    ["in another zone is enough for pods that may all be away", [of("b1", "b")], undefined, [], undefined],
    ["in another zone is not enough for pods that go one by one", [of("b1", "b")], waits, [], "NoPlaceForPods"],
    ["in another zone is enough if the reboot ends the drain", [of("b1", "b")], waits, [], undefined, true],
    ["in another zone, which goes, is not enough", [of("b1", "b")], undefined, [going("b1", "b")], "LimitReached"],
    ["and goes in another zone keeps nobody", [of("a2", "a"), of("b1", "b")], waits, [going("b1", "b")], undefined],
    ["does not exist", [], undefined, [], "DrainBlocked"],
    ["does not exist, whatever ends the drain", [], waits, [], "DrainBlocked", true],
    ["is not asked for if no pod has to leave", undefined, waits, [going("b1", "b")], undefined],
  ] as const)
    it(title, () => {
      const context = { going: busy, policy: policy(forced ? { drain: { onTimeout: "Reboot" } } : {}) };
      const found = whyNoPlace(node("a1", { zone: "a" }), { workloads: [], others, oneByOne }, context);
      assert.equal(found?.reason, reason, found?.message);
    });
});

describe("another node", () => {
  for (const [title, other, isSo] of [
    ["does", {}, true],
    ["that is not Ready does not", { ready: false }, false],
    ["that is cordoned does not", { unschedulable: true }, false],
    ["that is being deleted does not", { terminating: true }, false],
    ["that an autoscaler removes does not", { removedBy: "karpenter.sh/disrupted" }, false],
    ["that is the same does not", { name: "a" }, false],
  ] as const)
    it(`${title} take the pods of a node`, () => assert.equal(canTakeOver(node("a"), node("b", other)), isSo));
});

describe("a rollout in progress", () => {
  const zone = (letter: string, rolling: boolean) =>
    readZone(statefulSetObject({ name: `ingester-zone-${letter}`, replicas: 3, ...(rolling && { statusReady: 2 }) }));
  const [a, b, rollingA, rollingB] = [zone("a", false), zone("b", false), zone("a", true), zone("b", true)];
  const noneB = (currentRevision: string) =>
    readZone(statefulSetObject({ name: "ingester-zone-b", replicas: 0, currentRevision }));
  const here = [pod("x", { owner: a.uid, kind: "StatefulSet" })];
  for (const [title, pods, zones, held] of [
    ["of another zone holds the node", here, [a, rollingB], true],
    ["of the node's own zone does not", here, [rollingA, b], false],
    ["of another zone does not hold nodes without pods of the group", [pod("y")], [a, rollingB], false],
    ["of no zone does not", here, [a, b], false],
    ["of the only zone of a group does not", here, [rollingA], false],
    ["of another zone that has no pods, and is not recorded yet, holds the node", here, [a, noneB(PREVIOUS)], true],
    ["of another zone that has no pods, once it is recorded, does not", here, [a, noneB(LAST)], false],
  ] as const)
    it(title, () => assert.equal(whyHeldByRollout(pods, zones, new Map()) !== undefined, held));

  const left = (ready: boolean) => {
    const pods = leftBehind({ name: "ingester-zone-c", pods: { 0: { ready } } }).map(readPod);
    const zoneLeft = orphanedZone("ingester-zone-c", pods, { owner: undefined, zones: [a, b] });
    return new Map([["test/ingester", [zoneLeft]]]);
  };
  const leftHere = (letter: string) => leftBehind({ name: `ingester-zone-${letter}` }).map(readNodePod);
  for (const [title, pods, zones, held] of [
    ["holds the node of pods that a StatefulSet has left behind", leftHere("c"), [a, rollingB], true],
    ["holds that of pods that their StatefulSet has still to adopt", leftHere("a"), [a, rollingB], true],
    ["does not hold that of pods that the rolling zone has still to adopt", leftHere("b"), [a, rollingB], false],
  ] as const)
    it(title, () => assert.equal(whyHeldByRollout(pods, zones, left(true)) !== undefined, held));

  for (const [title, pods, orphans, held] of [
    ["that has lost its StatefulSet and lacks a pod holds the node", here, left(false), true],
    ["does not once its pods are ready", here, left(true), false],
    ["does not hold nodes without pods of the group", [pod("y")], left(false), false],
    ["does not hold nodes that have its own pods alone", leftHere("c"), left(false), false],
  ] as const)
    it(`of another zone ${title}`, () => assert.equal(whyHeldByRollout(pods, [a, b], orphans) !== undefined, held));
});
