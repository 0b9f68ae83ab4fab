/** Which pods are of a StatefulSet that has left them behind, and what is left of it (§1.15). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import { describeOrphans, ordinalsOf, orphanedZone, orphansByOwner } from "../../../reconciler/model/orphans.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { describeUnavailable, isHealthy } from "../../../reconciler/model/readiness.ts";
import { withPods } from "../../../reconciler/model/zone.ts";
import { group, zone } from "../../builders/groups.ts";
import { leftBehind, podObjects, type ZoneTraits } from "../../builders/zones.ts";

const B = "ingester-zone-b";
const { zones: OTHERS } = group({}, { name: "ingester-zone-c" });
const POD_NAME = "statefulset.kubernetes.io/pod-name";

type Metadata = NonNullable<PodObject["metadata"]>;
const madeBy = (metadata: Metadata): string | undefined =>
  readPod({ metadata: { name: "zone-b-12", ...metadata } }).madeBy;
const owner = (more: object) => ({ apiVersion: "apps/v1", kind: "StatefulSet", name: "zone-b", uid: "b", ...more });

describe("the StatefulSet that made a pod", () => {
  it("is its controller", () => assert.equal(madeBy({ ownerReferences: [owner({ controller: true })] }), "zone-b"));
  it("is told by the label that its controller gave it, where it has none any more", () =>
    assert.equal(madeBy({ labels: { [POD_NAME]: "zone-b-12" } }), "zone-b"));

  const NONE: readonly (readonly [string, Metadata])[] = [
    ["a bare pod", {}],
    ["a copy, which has the label of another pod", { labels: { [POD_NAME]: "zone-b-11" } }],
    ["a pod without an ordinal", { name: "zone-b", labels: { [POD_NAME]: "zone-b" } }],
    ["a pod of a Deployment", { ownerReferences: [owner({ kind: "ReplicaSet", controller: true })] }],
    [
      "a pod of another API's StatefulSet",
      {
        labels: { [POD_NAME]: "zone-b-12" },
        ownerReferences: [owner({ apiVersion: "apps.kruise.io/v1beta1", controller: true })],
      },
    ],
  ];
  for (const [name, metadata] of NONE) it(`is unknown of ${name}`, () => assert.equal(madeBy(metadata), undefined));
});

const left = (traits: ZoneTraits = {}) =>
  orphanedZone(B, leftBehind({ name: B, ...traits }).map(readPod), { owner: undefined, zones: OTHERS });

describe("what a StatefulSet leaves behind", () => {
  it("is found by its name, among pods of zones, of a name that a zone has, and of nobody", () => {
    const some = [...podObjects({ name: B }), ...leftBehind({ name: "ingester-zone-a" }), ...podObjects({})];
    const bare = { metadata: { name: "ingester-zone-b-9" } };
    const found = orphansByOwner([...some, bare].map(readPod), OTHERS);
    assert.deepEqual(
      [...found].map(([name, pods]) => [name, pods.length]),
      [[B, 3]],
    );
  });

  /** The zones that are left have 3 replicas. */
  const TABLE: readonly [string, ZoneTraits, string | undefined][] = [
    ["all pods are ready", {}, undefined],
    ["one is not ready", { pods: { 0: { ready: false } } }, `${B}-0: not ready`],
    ["one ends", { pods: { 1: { terminating: true } } }, `${B}-1: terminating`],
    ["one cannot come up", { pods: { 2: { broken: "CrashLoopBackOff" } } }, `${B}-2: CrashLoopBackOff`],
    ["the first is missing", { pods: { 0: null } }, `1 pod of ${B} missing`],
    ["one in the middle is missing", { pods: { 1: null } }, `1 pod of ${B} missing`],
    ["the last is missing", { pods: { 2: null } }, `1 pod of ${B} missing`],
    ["it is larger than others", { replicas: 5 }, undefined],
    ["it is larger than others, and one is missing", { replicas: 5, pods: { 3: null } }, `1 pod of ${B} missing`],
  ];
  for (const [name, traits, unwell] of TABLE)
    it(`is ${unwell === undefined ? "whole" : "not whole"} if ${name}`, () => {
      const zoneLeft = left(traits);
      assert.equal(isHealthy(zoneLeft) ? undefined : describeUnavailable(zoneLeft), unwell);
      assert.equal(zoneLeft.orphaned, "gone");
    });

  it("begins where the other zones begin", () => {
    const { zones } = group({ start: 10 }, { name: "ingester-zone-c", start: 10 });
    const pods = leftBehind({ name: B, replicas: 13 }).slice(10).map(readPod);
    assert.ok(isHealthy(orphanedZone(B, pods, { owner: undefined, zones })));
    assert.ok(!isHealthy(orphanedZone(B, pods, { owner: undefined, zones: OTHERS })));
  });

  it("does not ask for pods that no other zone has: zones of 0 replicas do not count, nor do no zones", () => {
    const pods = leftBehind({ name: B, replicas: 1 }).map(readPod);
    const { zones } = group({ replicas: 0 });
    assert.ok(isHealthy(orphanedZone(B, pods, { owner: undefined, zones })));
    assert.ok(isHealthy(orphanedZone(B, pods, { owner: undefined, zones: [] })));
  });

  it("has the ordinals that others have left behind if no zone is left", () => {
    const pods = leftBehind({ name: B, start: 1, replicas: 1 }).map(readPod);
    const left = ordinalsOf(leftBehind({ name: "ingester-zone-c" }).map(readPod));
    const found = orphanedZone(B, pods, { owner: undefined, zones: [], left });
    assert.equal(describeUnavailable(found), `2 pods of ${B} missing`);
    const { zones } = group({ replicas: 1, start: 1 });
    assert.ok(isHealthy(orphanedZone(B, pods, { owner: undefined, zones, left })), "a zone that is left tells more");
  });

  /** Zone b was created again, and has not adopted what is left of the former one. Zone c has 3 replicas from 0. */
  const AGAIN: readonly (readonly [string, ZoneTraits, ZoneTraits, string])[] = [
    ["nothing is left if it is to have all of them", {}, {}, "none"],
    ["all count if it has 0 replicas", { replicas: 0 }, { pods: { 0: { ready: false } } }, `${B}-0: not ready`],
    ["all count if it begins later", { replicas: 1, start: 7 }, { pods: { 0: { ready: false } } }, `${B}-0: not ready`],
    ["they are whole if all are ready", { replicas: 1, start: 7 }, {}, "whole"],
    ["a missing one counts", { replicas: 0 }, { pods: { 0: null } }, `1 pod of ${B} missing`],
    ["a missing one counts before its ordinals", { start: 7 }, { pods: { 2: null } }, `1 pod of ${B} missing`],
    ["those behind its ordinals count", { replicas: 1 }, { pods: { 2: { ready: false } } }, `${B}-2: not ready`],
    ["those of its ordinals do not", { replicas: 1 }, { pods: { 0: { ready: false } } }, "whole"],
    ["missing ones of its ordinals do not", { replicas: 1 }, { pods: { 0: null } }, "whole"],
  ];
  for (const [name, again, before, expected] of AGAIN)
    it(`is judged beside a StatefulSet of its name: ${name}`, () => {
      const zones = [...OTHERS.slice(1), zone({ name: B, ...again })];
      const found = [...orphansByOwner(leftBehind({ name: B, ...before }).map(readPod), zones)].map(([owner, pods]) =>
        orphanedZone(owner, pods, { owner: undefined, zones }),
      );
      const [first] = found;
      assert.equal(first && isHealthy(first) ? "whole" : first ? describeUnavailable(first) : "none", expected);
      assert.deepEqual(
        found.map(({ orphaned }) => orphaned),
        first ? ["replaced"] : [],
      );
      if (first) assert.match(describeOrphans(first), /was created again without these ordinals/);
    });

  it("has the size of its StatefulSet, if that exists outside of the group", () => {
    const outside = zone({ name: B, replicas: 1 });
    const pods = podObjects({ name: B, replicas: 1 }).map(readPod);
    const found = orphanedZone(B, pods, { owner: outside, zones: OTHERS });
    assert.deepEqual([found.orphaned, found.uid, found.replicas, isHealthy(found)], ["outside", outside.uid, 1, true]);
    const short = orphanedZone(B, pods, { owner: zone({ name: B, replicas: 2 }), zones: OTHERS });
    assert.equal(
      describeOrphans(short),
      `1 pod of ${B} missing; StatefulSet ${B} is not in the group that its pods name`,
    );
  });

  it("is what is left if another StatefulSet has its name: that has another UID", () => {
    const pods = podObjects({ name: B }).map(readPod);
    const found = orphanedZone(B, pods, { owner: { ...zone({ name: B }), uid: "new" }, zones: OTHERS });
    assert.deepEqual([found.orphaned, found.uid], ["gone", `uid-${B}`]);
    assert.deepEqual(
      withPods(found, pods).pods.map(({ name }) => name),
      pods.map(({ name }) => name),
    );
  });
});
