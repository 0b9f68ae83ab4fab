import assert from "node:assert/strict";
import { test } from "node:test";
import { createCluster, pod, type Cluster } from "./test-cluster.ts";
import { isReady } from "./objects.ts";

const TIMES: readonly { annotations: Record<string, string>; readyAfterMs: number }[] = [
  { annotations: {}, readyAfterMs: 300 },
  { annotations: { "sim/ready-after-ms": "50" }, readyAfterMs: 50 },
  { annotations: { "sim/ready-after-ms": "0" }, readyAfterMs: 0 },
];

for (const { annotations, readyAfterMs } of TIMES)
  test(`a pod annotated ${JSON.stringify(annotations)} is ready ${readyAfterMs} ms after it was bound, plus the controllers' latency`, async () => {
    const { store, clock, pod: get } = createCluster();
    store.create("pods", pod("a", annotations));
    await clock.advance(1);
    assert.equal(get("a").spec.nodeName, "node-1");
    await clock.advance(readyAfterMs - 1);
    assert.equal(isReady(get("a")), false);
    await clock.advance(6);
    assert.equal(isReady(get("a")), true);
    assert.match(String(get("a").status["podIP"]), /^10\.244\.\d+\.\d+$/);
  });

test("a pod whose gate is closed is not ready, and its containers are", async () => {
  const { store, clock, pod: get, annotate } = createCluster();
  store.create("pods", pod("a"));
  await clock.advance(1000);
  annotate("a", { "sim/ready": "gated" });
  await clock.advance(2);
  assert.equal(isReady(get("a")), false);
  assert.equal(
    get("a").status.containerStatuses?.every(({ ready }) => ready),
    true,
  );
});

test("a pod whose last container alone crashes is not ready, and the other one works", async () => {
  const { store, clock, pod: get } = createCluster();
  const containers = ["main", "sidecar"].map((name) => ({ name, image: "app:1" }));
  store.create("pods", pod("a", { "sim/crash": "last" }, { containers }));
  await clock.advance(1000);
  assert.equal(isReady(get("a")), false);
  assert.deepEqual(
    get("a").status.containerStatuses?.map(({ ready, state }) => [ready, state?.waiting?.reason]),
    [
      [true, undefined],
      [false, "CrashLoopBackOff"],
    ],
  );
});

test("an image of a registry that cannot exist is not pulled, again and again, until it is another", async () => {
  const { store, clock, pod: get } = createCluster();
  const image = "registry.invalid/app:2";
  store.create("pods", pod("a", {}, { containers: [{ name: "main", image }] }));
  const seen: string[] = [];
  for (let second = 0; second < 35; second++) {
    await clock.advance(1000);
    seen.push(get("a").status.containerStatuses?.[0]?.state?.waiting?.reason ?? "");
  }
  const starts = seen.flatMap((reason, i) => (reason === seen[i - 1] ? [] : [`${i} ${reason}`]));
  assert.deepEqual(starts, [
    "0 ErrImagePull",
    "2 ImagePullBackOff",
    "10 ErrImagePull",
    "12 ImagePullBackOff",
    "30 ErrImagePull",
    "32 ImagePullBackOff",
  ]);
  const [container] = get("a").status.containerStatuses ?? [];
  assert.deepEqual([container?.["ready"], container?.["imageID"], get("a").status.phase], [false, "", "Pending"]);
  assert.match(
    container?.state?.waiting?.message ?? "",
    /^Back-off pulling image "registry\.invalid\/app:2": ErrImagePull: failed to pull and unpack image /,
  );
  store.update("pods", { ...get("a"), spec: { ...get("a").spec, containers: [{ name: "main", image: "app:1" }] } });
  await clock.advance(1000);
  assert.equal(isReady(get("a")), true);
  assert.equal(get("a").status.phase, "Running");
});

test("no pod is bound to a cordoned node: it is bound to another, or stays Unschedulable until a node is uncordoned", async () => {
  const cluster = createCluster({ nodes: 2 });
  const { store, clock, pod: get } = cluster;
  cordon(cluster, "node-1", true);
  store.create("pods", pod("a", { "sim/node": "node-1" }));
  await clock.advance(1000);
  assert.equal(get("a").spec.nodeName, "node-2");

  cordon(cluster, "node-2", true);
  store.create("pods", pod("b"));
  await clock.advance(1000);
  assert.equal(get("b").status.phase, "Pending");
  const [condition] = get("b").status.conditions ?? [];
  assert.deepEqual([condition?.type, condition?.status, condition?.reason], ["PodScheduled", "False", "Unschedulable"]);
  assert.equal(condition?.message, "0/2 nodes are available: 2 node(s) were unschedulable.");

  cordon(cluster, "node-1", false);
  await clock.advance(1000);
  assert.equal(get("b").spec.nodeName, "node-1");
  assert.equal(get("b").metadata.labels?.["topology.kubernetes.io/zone"], "zone-1");
  assert.equal(isReady(get("b")), true);
});

function cordon({ store }: Cluster, name: string, unschedulable: boolean): void {
  const node = store.get("nodes", undefined, name);
  assert.ok(node);
  store.update("nodes", { ...node, spec: { unschedulable } });
}
