/** What zones lose by their pods and StatefulSets, and since when. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { createLosses, type Loss } from "./losses.ts";

interface PodShape {
  readonly ordinal?: number;
  readonly ready?: boolean;
  readonly revision?: string;
  readonly ends?: boolean;
  readonly owner?: string;
}

const pod = ({ ordinal = 0, ready = true, revision = "new", ends = false, owner = "a" }: PodShape): KubeObject =>
  ({
    metadata: {
      name: `a-${ordinal}`,
      namespace: "zonewise",
      uid: `a-${ordinal}`,
      creationTimestamp: new Date(0).toISOString(),
      ownerReferences: [{ uid: owner }],
      labels: { "controller-revision-hash": revision },
      ...(ends && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    },
    status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
  }) as never;
const STATUS = {
  replicas: 1,
  readyReplicas: 1,
  updatedReplicas: 1,
  observedGeneration: 1,
  updateRevision: "new",
  currentRevision: "new",
};
const zone = (status: object = {}): KubeObject =>
  ({
    metadata: { name: "a", namespace: "zonewise", uid: "a", generation: 1 },
    spec: { replicas: 1 },
    status: { ...STATUS, ...status },
  }) as never;

/** Its pod is ready at 1000, and as it is told at 10,000; its zone is then, too. */
function lossesOf(shape: PodShape, status: object = {}, wasReady = true): readonly Loss[] {
  let now = 1000;
  let pods = [pod({ ...shape, ends: false, ready: wasReady })];
  const losses = createLosses({ zones: ["a", "b"], now: () => now, listPods: () => pods });
  const tell = (resource: string, object: KubeObject): void => losses.onEvent({ type: "MODIFIED", resource, object });
  for (const one of pods) tell("pods", one);
  now = 10_000;
  pods = [pod(shape)];
  for (const one of pods) tell("pods", one);
  tell("statefulsets.apps", zone(status));
  const all: readonly Loss[] = [
    "ends",
    "is missing",
    "is one more than its zone should have",
    "has not come up yet",
    "is no longer ready",
    "is outdated",
    "is outdated and not ready",
    "may still come up with a new template",
    "has not observed its spec",
    "has fewer ready pods than it should have",
  ];
  assert.equal(losses.find({ but: "a", losses: all, before: 10_001 }), undefined);
  assert.equal(losses.find({ but: "b", losses: all, before: 10_000 }), undefined);
  return all.filter((loss) => losses.find({ but: "b", losses: [loss], before: 10_001 }) !== undefined);
}

describe("what a zone loses", () => {
  const old = { updatedReplicas: 0, currentRevision: "old" };
  for (const [name, found, expected] of [
    ["a zone that is whole", lossesOf({}), []],
    ["a pod that ends", lossesOf({ ends: true }), ["ends"]],
    ["one that ends and never served", lossesOf({ ends: true, ready: false }, {}, false), []],
    [
      "one too many beside one that is not there",
      lossesOf({ ordinal: 1 }, { replicas: 2 }),
      ["is missing", "is one more than its zone should have"],
    ],
    ["one that is not ready any more", lossesOf({ ready: false }), ["is no longer ready"]],
    ["one that was never ready", lossesOf({ ready: false }, {}, false), ["has not come up yet"]],
    ["one of an earlier StatefulSet", lossesOf({ ends: true, owner: "b" }), []],
    ["an outdated pod", lossesOf({ revision: "old" }, old), ["is outdated"]],
    [
      "an outdated one that is not ready",
      lossesOf({ revision: "old", ready: false }, {}),
      ["is no longer ready", "is outdated and not ready"],
    ],
    [
      "a new one that is not ready",
      lossesOf({ ready: false }, { currentRevision: "old" }, false),
      ["has not come up yet", "may still come up with a new template"],
    ],
    ["a status older than the spec", lossesOf({}, { observedGeneration: 0 }), ["has not observed its spec"]],
    ["a status that lacks pods", lossesOf({}, { readyReplicas: 0 }), ["has fewer ready pods than it should have"]],
  ] as const)
    it(`is told of ${name}`, () => assert.deepEqual(found, expected));

  it("is not told once it may be given up", () => {
    let now = 0;
    const pods = [pod({ ready: false })];
    const losses = createLosses({ zones: ["a"], now: () => now, listPods: () => pods });
    losses.onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object: zone() });
    const at = (ms: number): boolean => {
      now = ms;
      return losses.find({ of: "a", losses: ["has not come up yet"], before: 1 }) !== undefined;
    };
    assert.deepEqual([at(279_000), at(281_000)], [true, false]);
  });

  it("is nothing of a zone that is whole", () => {
    const pods = [pod({})];
    const losses = createLosses({ zones: ["a"], now: () => 5, listPods: () => pods });
    losses.onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object: zone() });
    assert.deepEqual([losses.isWhole("a", 5), losses.isWhole("a", 6)], [false, true]);
  });

  it("takes no ready pod of an earlier StatefulSet", () => {
    for (const [owner, takes] of [
      ["a", true],
      ["earlier", false],
    ] as const) {
      const pods = [pod({ ordinal: 1, owner })];
      const losses = createLosses({ zones: ["a"], now: () => 5, listPods: () => pods });
      losses.onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object: zone() });
      for (const one of pods) losses.onEvent({ type: "MODIFIED", resource: "pods", object: one });
      assert.equal(losses.takesServing("a", 1, 6), takes);
    }
  });

  it("is a missing pod, unless its zone is to lose that as well", () => {
    const losses = createLosses({ zones: ["a"], now: () => 5, listPods: () => [] });
    losses.onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object: zone() });
    const find = (under: number | undefined): string | undefined =>
      losses.find({ losses: ["is missing"], under, before: 6 });
    assert.deepEqual([find(undefined), find(1), find(0)], ["a-0 is missing", "a-0 is missing", undefined]);
  });

  /** Its pod is ready from 1000 on, is not from 10,000 on, and is asked about at that time. */
  function servesAt(ms: number, status: object = {}): boolean {
    let now = 1000;
    const losses = createLosses({ zones: ["a"], now: () => now, listPods: () => [pod({})] });
    const tell = (object: KubeObject): void => losses.onEvent({ type: "MODIFIED", resource: "pods", object });
    losses.onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object: zone() });
    tell(pod({}));
    now = 10_000;
    tell({ ...pod({}), status: { conditions: [{ type: "Ready", status: "False" }], ...status } });
    now = ms;
    return losses.takesServing("a", 0, ms);
  }

  it("is a pod that was ready until lately and may recover", () => {
    assert.deepEqual([servesAt(11_000), servesAt(289_000), servesAt(291_000)], [true, true, false]);
    assert.equal(
      servesAt(11_000, { containerStatuses: [{ state: { waiting: { reason: "CrashLoopBackOff" } } }] }),
      false,
    );
  });

  it("knows since when no pod is outdated", () => {
    const told = (revision: string): boolean => {
      const losses = createLosses({ zones: ["a"], now: () => 5, listPods: () => [pod({ revision })] });
      losses.onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object: zone() });
      return losses.isUpdated("a", 6);
    };
    assert.deepEqual([told("new"), told("old")], [true, false]);
  });
});
