import assert from "node:assert/strict";
import { it } from "node:test";
import { findEvictable } from "../../../reconciler/nodes/node-pod.ts";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";

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
