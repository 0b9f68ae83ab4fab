import assert from "node:assert/strict";
import { test } from "node:test";
import type { Draft } from "../objects.ts";
import { createCluster, statefulSet } from "./test-cluster.ts";

const CASES = [
  { policy: undefined, left: [] },
  { policy: "Background", left: [] },
  { policy: "Foreground", left: [] },
  { policy: "Orphan", left: ["z-0", "z-1"] },
] as const;

for (const { policy, left } of CASES)
  test(`deleting a StatefulSet with propagation ${policy ?? "unspecified"} leaves the pods [${left.join()}]`, async () => {
    const { store, clock, podNames } = createCluster();
    store.create("statefulsets.apps", statefulSet(2));
    await clock.advance(1000);
    store.remove("statefulsets.apps", "default", "z", policy && { propagationPolicy: policy });
    await clock.advance(1000);
    assert.equal(store.get("statefulsets.apps", "default", "z"), undefined);
    assert.deepEqual(podNames(), left);
    assert.equal(store.list("controllerrevisions.apps").length, left.length > 0 ? 1 : 0);
  });

test("a foreground deletion waits for the pods, and creates no new ones meanwhile", async () => {
  const { store, clock, podNames } = createCluster();
  store.create("statefulsets.apps", statefulSet(2));
  await clock.advance(1000);
  store.remove("statefulsets.apps", "default", "z", { propagationPolicy: "Foreground" });
  await clock.advance(50);
  assert.ok(store.get("statefulsets.apps", "default", "z")?.metadata.deletionTimestamp);
  assert.equal(podNames().length, 2);
  await clock.advance(500);
  assert.equal(store.get("statefulsets.apps", "default", "z"), undefined);
});

test("an object with two owners lives until both are gone", async () => {
  const { store, clock } = createCluster();
  const configMap = (
    name: string,
    ownerReferences: { apiVersion: string; kind: string; name: string; uid: string }[] = [],
  ) =>
    store.create("configmaps", {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, namespace: "default", ownerReferences },
    });
  const owners = ["a", "b"].map((name) => configMap(name));
  configMap(
    "c",
    owners.map(({ metadata }) => ({ apiVersion: "v1", kind: "ConfigMap", name: metadata.name, uid: metadata.uid })),
  );
  const referencesOfC = (): string[] | undefined =>
    store.get("configmaps", "default", "c")?.metadata.ownerReferences?.map(({ name }) => name);
  await clock.advance(100);
  assert.deepEqual(referencesOfC(), ["a", "b"]);
  store.remove("configmaps", "default", "a");
  await clock.advance(100);
  assert.deepEqual(referencesOfC(), ["b"]);
  store.remove("configmaps", "default", "b");
  await clock.advance(100);
  assert.equal(referencesOfC(), undefined);
});

test("a foreground deletion neither deletes a dependent with another owner nor waits for it", async () => {
  const { store, clock } = createCluster();
  const configMap = (name: string) =>
    ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default" } }) satisfies Draft;
  const ownerReferences = ["a", "b"].map((name) => {
    const { uid } = store.create("configmaps", configMap(name)).metadata;
    return { apiVersion: "v1", kind: "ConfigMap", name, uid };
  });
  store.create("configmaps", { ...configMap("c"), metadata: { ...configMap("c").metadata, ownerReferences } });
  await clock.advance(100);
  store.remove("configmaps", "default", "a", { propagationPolicy: "Foreground" });
  await clock.advance(100);
  assert.deepEqual(
    store.list("configmaps", "default").map(({ metadata }) => [metadata.name, metadata.ownerReferences?.length]),
    [
      ["b", undefined],
      ["c", 1],
    ],
  );
});
