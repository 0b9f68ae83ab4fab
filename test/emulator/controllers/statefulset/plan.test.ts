import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { statefulSet } from "../test-cluster.ts";
import type { Draft } from "../../objects.ts";
import type { Pod, Revision, StatefulSet } from "../objects.ts";
import { planSync } from "./plan.ts";
import type { Revisions } from "./revisions.ts";

type Life = "missing" | "pending" | "unready" | "ready" | "terminating" | "failed";
interface Sketch {
  readonly life: Life;
  readonly isOld: boolean;
}

const sketches = fc.array(
  fc.record({
    life: fc.constantFrom<Life>("missing", "pending", "unready", "ready", "terminating", "failed"),
    isOld: fc.boolean(),
  }),
  { maxLength: 6 },
);

function revision(name: string): Revision {
  return { metadata: { name }, data: { spec: { template: { spec: { containers: [] } } } } } as unknown as Revision;
}

function podsOf(sketch: readonly Sketch[]): Pod[] {
  const drafts: Draft[] = sketch.flatMap(({ life, isOld }, ordinal) => {
    if (life === "missing") return [];
    const phase = life === "failed" ? "Failed" : life === "pending" ? "Pending" : "Running";
    const ready = life === "ready" || life === "terminating" ? "True" : "False";
    const name = `z-${ordinal}`;
    const labels = { "controller-revision-hash": isOld ? "old" : "new", "statefulset.kubernetes.io/pod-name": name };
    const metadata = {
      name,
      namespace: "default",
      labels,
      ...(life === "terminating" && { deletionTimestamp: "2026-01-01T00:00:30Z" }),
    };
    return [
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata,
        spec: { containers: [] },
        status: { phase, conditions: [{ type: "Ready", status: ready }] },
      } satisfies Draft,
    ];
  });
  return drafts as Pod[];
}

const revisions: Revisions = { current: revision("old"), update: revision("new") };

function plan(sketch: readonly Sketch[], replicas: number, spec: object): { create: string[]; remove: string[] } {
  const set = { ...statefulSet(replicas, spec) } as unknown as StatefulSet;
  const { create, remove } = planSync(set, podsOf(sketch), revisions, 0);
  const names = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.name);
  return { create: names(create), remove: names(remove) };
}

const ORDERED = { podManagementPolicy: "OrderedReady" };
const rolling = (partition = 0): object => ({
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition } },
});

test("a missing pod below the partition is created from the current revision, others from the update revision", () => {
  const set = { ...statefulSet(2, rolling(1)) } as unknown as StatefulSet;
  const { create } = planSync(set, [], revisions, 0);
  assert.deepEqual(
    create.map(({ metadata }) => metadata.labels?.["controller-revision-hash"]),
    ["old", "new"],
  );
});

test("in any state of the pods, OrderedReady creates or deletes one at a time, and an update deletes at most one", () => {
  fc.assert(
    fc.property(sketches, fc.nat(6), fc.nat(4), fc.boolean(), (pods, replicas, partition, isOrdered) => {
      const { create, remove } = plan(pods, replicas, { ...rolling(partition), ...(isOrdered && ORDERED) });
      if (isOrdered) assert.ok(create.length + remove.length <= 1);
      const inRange = remove.filter((name) => Number(name.slice(2)) < replicas);
      assert.ok(inRange.filter((name) => pods[Number(name.slice(2))]?.life !== "failed").length <= 1);
      assert.equal(new Set(remove).size, remove.length);
      assert.ok(remove.every((name) => pods[Number(name.slice(2))]?.life !== "terminating"));
    }),
  );
});
