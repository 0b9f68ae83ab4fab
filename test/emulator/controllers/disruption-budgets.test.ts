import assert from "node:assert/strict";
import { test } from "node:test";
import { createCluster, statefulSet, type Cluster } from "./test-cluster.ts";

const CASES = [
  { spec: { maxUnavailable: 1 }, desired: 3 },
  { spec: { maxUnavailable: "30%" }, desired: 2 },
  { spec: { minAvailable: 1 }, desired: 1 },
  { spec: { minAvailable: "60%" }, desired: 3 },
  { spec: { maxUnavailable: 9 }, desired: 0 },
];

function createBudget({ store }: Cluster, spec: object): void {
  const metadata = { name: "b", namespace: "default" };
  const selector = { matchLabels: { app: "z" } };
  store.create("poddisruptionbudgets.policy", {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata,
    spec: { selector, ...spec },
  });
}

function statusOf({ store }: Cluster): Record<string, unknown> {
  return store.get("poddisruptionbudgets.policy", "default", "b")?.["status"] as Record<string, unknown>;
}

for (const { spec, desired } of CASES)
  test(`for 4 pods ${JSON.stringify(spec)} requires ${desired} healthy ones`, async () => {
    const cluster = createCluster();
    createBudget(cluster, spec);
    cluster.store.create("statefulsets.apps", statefulSet(4));
    await cluster.clock.advance(1000);
    const { expectedPods, currentHealthy, desiredHealthy, disruptionsAllowed, observedGeneration } = statusOf(cluster);
    assert.deepEqual(
      [expectedPods, currentHealthy, desiredHealthy, disruptionsAllowed, observedGeneration],
      [4, 4, desired, 4 - desired, 1],
    );
  });

test("pods that are not ready, or terminating, are not healthy", async () => {
  const cluster = createCluster();
  const { store, clock, annotate } = cluster;
  createBudget(cluster, { maxUnavailable: 2 });
  store.create("statefulsets.apps", statefulSet(4));
  await clock.advance(1000);
  annotate("z-0", { "sim/ready": "false" });
  store.remove("pods", "default", "z-1");
  await clock.advance(50);
  assert.deepEqual([statusOf(cluster)["currentHealthy"], statusOf(cluster)["disruptionsAllowed"]], [2, 0]);
});
