import assert from "node:assert/strict";
import { test } from "node:test";
import { createCluster, pod as freePod, statefulSet, template } from "../test-cluster.ts";

const HOUR_MS = 3_600_000;

test("with OnDelete a changed template replaces no pod; a deleted pod is recreated updated, and a revert reuses the old revision", async () => {
  const { store, clock, set, pod, change, counts } = createCluster();
  store.create("statefulsets.apps", statefulSet(2));
  await clock.advance(1000);
  const first = set().status?.updateRevision;
  assert.equal(set().status?.currentRevision, first);

  change({ template: template("app:2") });
  await clock.advance(1000);
  assert.notEqual(set().status?.updateRevision, first);
  assert.deepEqual(counts(), {
    observedGeneration: 2,
    replicas: 2,
    readyReplicas: 2,
    availableReplicas: 2,
    currentReplicas: 2,
  });

  for (const name of ["z-0", "z-1"]) store.remove("pods", "default", name);
  await clock.advance(1000);
  assert.equal(pod("z-1").metadata.labels?.["controller-revision-hash"], set().status?.updateRevision);
  assert.deepEqual(counts(), {
    observedGeneration: 2,
    replicas: 2,
    readyReplicas: 2,
    availableReplicas: 2,
    updatedReplicas: 2,
  });
  assert.equal(set().status?.currentRevision, first, "no controller promotes the update revision to the current one");

  change({ template: template("app:1") });
  await clock.advance(1000);
  assert.equal(set().status?.updateRevision, first);
});

test("a terminating pod still counts as a replica and as ready, but not towards a revision", async () => {
  const { store, clock, counts } = createCluster();
  store.create("statefulsets.apps", statefulSet(2, { template: template("app:1", { "sim/exit-after-ms": "5000" }) }));
  await clock.advance(1000);
  store.remove("pods", "default", "z-0");
  await clock.advance(1000);
  const all = { observedGeneration: 1, replicas: 2, readyReplicas: 2, availableReplicas: 2 };
  assert.deepEqual(counts(), { ...all, currentReplicas: 1, updatedReplicas: 1 });
});

test("the status lags a few milliseconds behind the pods", async () => {
  const { store, clock, counts } = createCluster();
  store.create("statefulsets.apps", statefulSet(2));
  await clock.advance(1000);
  store.remove("pods", "default", "z-0", { gracePeriodSeconds: 0 });
  await clock.advance(0);
  assert.equal(counts().readyReplicas, 2);
  await clock.advance(10);
  assert.equal(counts().readyReplicas, 1);
});

test("a pod becomes available once it has been ready for minReadySeconds, without another event", async () => {
  const { store, clock, counts } = createCluster();
  store.create("statefulsets.apps", statefulSet(1, { minReadySeconds: 60 }));
  await clock.advance(30_000);
  assert.deepEqual([counts().readyReplicas, counts().availableReplicas], [1, 0]);
  await clock.advance(32_000);
  assert.equal(counts().availableReplicas, 1);
});

test("a settled StatefulSet costs nothing: no timer is set, and no object is written in an hour", async () => {
  const { store, clock } = createCluster();
  store.create("statefulsets.apps", statefulSet(20));
  await clock.advance(1000);
  const version = store.version();
  assert.equal(clock.pending(), 0);
  await clock.advance(HOUR_MS);
  assert.equal(store.version(), version);
});

test("a pod whose name another owner's pod uses is created once the name is free; the status is updated meanwhile", async () => {
  const { store, clock, pod, podNames, counts } = createCluster();
  store.create("pods", {
    ...freePod("z-1"),
    metadata: { name: "z-1", namespace: "default", labels: { app: "other" } },
  });
  store.create("statefulsets.apps", statefulSet(3));
  await clock.advance(1000);
  assert.deepEqual([podNames(), counts().readyReplicas], [["z-0", "z-1", "z-2"], 2]);
  store.remove("pods", "default", "z-1");
  await clock.advance(1000);
  assert.deepEqual([pod("z-1").metadata.labels?.["app"], counts().readyReplicas], ["z", 3]);
});

test("a pod whose deletion is refused to the controller stays beyond the replicas, and goes once it is not", async () => {
  const { store, clock, pod, podNames, change } = createCluster();
  store.create("statefulsets.apps", statefulSet(2));
  await clock.advance(1000);
  const keep = (annotations: Record<string, string>): void =>
    void store.update("pods", { ...pod("z-1"), metadata: { ...pod("z-1").metadata, annotations } });
  keep({ "sim/kept": "true" });
  change({ replicas: 1 });
  await clock.advance(1000);
  assert.deepEqual([podNames(), pod("z-1").metadata.deletionTimestamp], [["z-0", "z-1"], undefined]);
  keep({});
  await clock.advance(1000);
  assert.deepEqual(podNames(), ["z-0"]);
});
