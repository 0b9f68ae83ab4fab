import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findEvictable, type ReturnedWork, whyUnfit, whyWorkMissing } from "../../../reconciler/nodes/node-pod.ts";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import { pod } from "./fixture.ts";

const ownedBy = (kind: string, controller?: boolean): PodObject => ({
  metadata: {
    ownerReferences: [
      { apiVersion: "apps/v1", kind, name: "x", uid: "u", ...(controller !== undefined && { controller }) },
    ],
  },
});

const CASES: readonly (readonly [name: string, pod: PodObject, evictable: boolean])[] = [
  ["a pod without any owner", {}, true],
  ["a pod of a StatefulSet", ownedBy("StatefulSet", true), true],
  ["a pod of a DaemonSet", ownedBy("DaemonSet", true), false],
  ["a pod that a DaemonSet owns and does not control", ownedBy("DaemonSet"), true],
  ["a static pod", { metadata: { annotations: { "kubernetes.io/config.mirror": "h" } } }, false],
  ["a failed pod of a DaemonSet", { ...ownedBy("DaemonSet", true), status: { phase: "Failed" } }, true],
  [
    "a static pod that has ended: its kubelet may make it again",
    { metadata: { annotations: { "kubernetes.io/config.mirror": "h" } }, status: { phase: "Succeeded" } },
    false,
  ],
  [
    "a pod that is terminating",
    { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" }, status: { phase: "Running" } },
    true,
  ],
  [
    "a pod that has ended and is deleted, whose finalizer nobody removes",
    { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" }, status: { phase: "Failed" } },
    false,
  ],
];

for (const [name, pod, evictable] of CASES)
  it(`a drain ${evictable ? "evicts" : "leaves"} ${name}`, () =>
    assert.equal(findEvictable([pod]).length, evictable ? 1 : 0));

describe("a node before its update", () => {
  for (const [title, pods, fit] of [
    ["is fit with healthy pods", [pod("a")], true],
    ["is fit with a pod that is starting", [pod("a", { ready: false })], true],
    ["is not fit with a pod in CrashLoopBackOff", [pod("a", { ready: false, waiting: "CrashLoopBackOff" })], false],
    [
      "is not fit with a pod whose image cannot be pulled",
      [pod("a", { ready: false, waiting: "ImagePullBackOff" })],
      false,
    ],
    ["is fit with a pod that is over", [pod("a", { ready: false, phase: "Failed" })], true],
  ] as const)
    it(title, () => assert.equal(whyUnfit(pods) === undefined, fit));
});

describe("the work of a node after its reboot", () => {
  const set = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "u", ready: 3 };
  const work = (rest: Partial<ReturnedWork>) => whyWorkMissing({ pods: [], owners: new Map(), drained: [], ...rest });
  const owners = (ready: number) => new Map([["rs-uid", { ...set, ready, desired: 3 }]]);
  const crashing = pod("a", { ready: false, waiting: "CrashLoopBackOff" });
  for (const [title, rest, back] of [
    ["is back on an empty node", {}, true],
    [
      "is not back while a DaemonSet's pod is not ready",
      { pods: [pod("a", { kind: "DaemonSet", ready: false })] },
      false,
    ],
    [
      "is not back with a pod that is broken here and healthy elsewhere",
      { pods: [crashing], owners: owners(2) },
      false,
    ],
    ["is back if that pod is broken everywhere", { pods: [crashing], owners: owners(0) }, true],
    [
      "is not back while a drained controller has fewer ready pods than before",
      { drained: [[set, { ...set, ready: 2, desired: 3 }]] },
      false,
    ],
    ["is back once it has as many, wherever they are", { drained: [[set, { ...set, ready: 3, desired: 3 }]] }, true],
    [
      "is back if the controller was scaled down meanwhile",
      { drained: [[set, { ...set, ready: 1, desired: 1 }]] },
      true,
    ],
    ["is back if the controller is gone", { drained: [[set, undefined]] }, true],
    [
      "is back if the controller is another one by now",
      { drained: [[set, { ...set, uid: "new", ready: 0, desired: 3 }]] },
      true,
    ],
  ] as const)
    it(title, () => assert.equal(work(rest as Partial<ReturnedWork>) === undefined, back));
});
