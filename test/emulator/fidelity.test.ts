/**
 * What programs of random calls have found a real control plane to do (test/cluster/conformance/programs), as far as
 * tests of the product rely on it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "./clock.ts";
import { createCluster, pod, statefulSet, template } from "./controllers/test-cluster.ts";
import { configMap, CONFIG_MAPS, startFixture } from "./fixture.ts";
import { dig, listOf } from "./objects.ts";
import { add } from "../builders/objects.ts";

const LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const PODS = "/api/v1/namespaces/default/pods";
const BUDGET = "poddisruptionbudgets.policy";
const OTHER_UID = "11111111-2222-3333-4444-555555555555";

const lease = (metadata: object): object => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: { name: "a", ...metadata },
  spec: { holderIdentity: "me" },
});

test("an update creates a Lease that is not there, whatever its resourceVersion; one that is there must name its own", async (t) => {
  const { call } = await startFixture(t);
  assert.equal((await call("PUT", `${LEASES}/a`, lease({ resourceVersion: "7" }))).status, 201);
  assert.equal((await call("PUT", `${LEASES}/a`, lease({}))).status, 422);
  assert.equal((await call("PUT", `${LEASES}/a`, lease({ resourceVersion: "1" }))).status, 409);
  assert.equal((await call("PUT", `${CONFIG_MAPS}/a`, configMap("a"))).status, 404);
});

test("an eviction marks the pod and its budget, which counts it until it is terminating", async (t) => {
  const { emulator, call } = await startFixture(t, { clock: manualClock() });
  const status = {
    disruptionsAllowed: 1,
    currentHealthy: 1,
    desiredHealthy: 0,
    expectedPods: 1,
    observedGeneration: 1,
  };
  const spec = { maxUnavailable: 1, selector: { matchLabels: { app: "z" } } };
  const metadata = { name: "b", namespace: "default" };
  emulator.store.create(BUDGET, { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata, spec, status });
  const conditions = [{ type: "Ready", status: "True" }];
  const { uid } = emulator.store.create("pods", {
    ...pod("a", {}, { nodeName: "n" }),
    status: { phase: "Running", conditions },
  }).metadata;
  const evict = (preconditions: object) =>
    call("POST", `${PODS}/a/eviction`, {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: "a" },
      deleteOptions: { preconditions },
    });
  const inDryRun = await call("POST", `${PODS}/a/eviction?dryRun=All`, {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name: "a" },
    deleteOptions: { preconditions: { uid: OTHER_UID } },
  });
  assert.equal(inDryRun.status, 409, "another pod, in a dry run");
  assert.equal((await evict({ uid: OTHER_UID })).status, 409, "another pod");
  const spent = emulator.store.get(BUDGET, "default", "b");
  assert.deepEqual(dig(spent, "status", "disruptedPods"), { a: "2026-01-01T00:00:00Z" }, "it is spent all the same");
  emulator.store.update(BUDGET, {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata,
    spec,
    status,
  });
  assert.equal((await evict({ uid })).status, 201);
  const evicted = emulator.store.get("pods", "default", "a");
  assert.equal(dig(listOf(dig(evicted, "status", "conditions")).at(-1), "type"), "DisruptionTarget");
});

test("a pod that leaves its StatefulSet's selector is released, and its name stays taken", async () => {
  const { store, clock, pod: get, podNames } = createCluster();
  store.create("statefulsets.apps", statefulSet(2));
  await clock.advance(1000);
  store.update("pods", { ...get("z-0"), metadata: { ...get("z-0").metadata, labels: { app: "debugged" } } });
  await clock.advance(1000);
  assert.equal(get("z-0").metadata.ownerReferences, undefined);
  assert.deepEqual(podNames(), ["z-0", "z-1"]);
});

test("a pod of others at an ordinal keeps those of later batches from being created", async () => {
  const { store, clock, podNames } = createCluster();
  store.create("pods", { ...pod("z-1"), metadata: { name: "z-1", namespace: "default", labels: { app: "other" } } });
  store.create("statefulsets.apps", statefulSet(5));
  await clock.advance(1000);
  assert.deepEqual(podNames(), ["z-0", "z-1", "z-2"]);
});

test("a pod without the labels of its identity gets them back", async () => {
  const { store, clock, pod: get } = createCluster();
  store.create("statefulsets.apps", statefulSet(1));
  await clock.advance(1000);
  store.update("pods", { ...get("z-0"), metadata: { ...get("z-0").metadata, labels: { app: "z" } } });
  await clock.advance(1000);
  assert.equal(get("z-0").metadata.labels?.["statefulset.kubernetes.io/pod-name"], "z-0");
});

test("a StatefulSet that is being deleted keeps its status up, and its pods are left alone", async () => {
  const { store, clock, set, podNames } = createCluster();
  store.create("statefulsets.apps", {
    ...statefulSet(2),
    metadata: { name: "z", namespace: "default", finalizers: ["example.com/hold"] },
  });
  await clock.advance(1000);
  store.remove("statefulsets.apps", "default", "z");
  store.remove("pods", "default", "z-1");
  await clock.advance(1000);
  assert.deepEqual(podNames(), ["z-0"]);
  assert.deepEqual([set().status?.observedGeneration, set().status?.replicas], [2, 1]);
});

test("a budget notices a StatefulSet's replicas with the next change of a pod, and none of a pod that has left it", async () => {
  const { store, clock, change, pod: get } = createCluster();
  const spec = { maxUnavailable: 1, selector: { matchLabels: { app: "z" } } };
  add(store, "PodDisruptionBudget", "b", { spec });
  const expected = (): unknown => dig(store.get(BUDGET, "default", "b"), "status", "expectedPods");
  store.create(
    "statefulsets.apps",
    statefulSet(1, { podManagementPolicy: "OrderedReady", template: template("app:1", { "sim/ready": "false" }) }),
  );
  await clock.advance(1000);
  change({ replicas: 3 });
  await clock.advance(1000);
  assert.equal(expected(), 1);
  store.update("pods", { ...get("z-0"), metadata: { ...get("z-0").metadata, annotations: { n: "1" } } });
  await clock.advance(10);
  assert.equal(expected(), 3);
});
