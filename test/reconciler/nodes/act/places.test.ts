/**
 * Where the pods of a node could go, read from the embedded cluster: claims and volumes, peers, and a right that is
 * missing.
 */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createFreshness } from "../../../../infra/kubernetes/freshness.ts";
import { createPodReader } from "../../../../reconciler/nodes/act/read-pods.ts";
import { readNode } from "../../../../reconciler/nodes/node.ts";
import type { Places } from "../../../../reconciler/nodes/places.ts";
import type { KubeObject } from "../../../emulator/objects.ts";
import { setStage, type Stage } from "../../stage.ts";

const ZONE = "topology.kubernetes.io/zone";
let stage: Stage;
beforeEach(async () => {
  stage = await setStage();
  for (const [name, zone] of [
    ["a1", "a"],
    ["a2", "a"],
    ["b1", "b"],
  ] as const)
    create("nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels: { [ZONE]: zone, "kubernetes.io/hostname": name, own: "true" } },
      spec: {},
      status: { conditions: [{ type: "Ready", status: "True" }] },
    });
});
afterEach(() => stage.close());

const create = (resource: string, object: object): KubeObject =>
  stage.emulator.store.create(resource, object as KubeObject);

/** A pod of a StatefulSet on the node. */
function createPod(
  name: string,
  nodeName: string,
  spec: object = {},
  labels: Readonly<Record<string, string>> = {},
): string {
  const ownerReferences = [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "set", controller: true }];
  const metadata = { name, namespace: "default", labels, ownerReferences };
  const nodeSelector = { own: "true" };
  return create("pods", {
    apiVersion: "v1",
    kind: "Pod",
    metadata,
    spec: { nodeName, nodeSelector, containers: [], ...spec },
    status: { phase: "Running" },
  }).metadata.uid;
}

function createVolume(claim: string, zone?: string): void {
  const volumeName = `pv-${claim}`;
  const matchExpressions = [{ key: ZONE, operator: "In", values: [zone] }];
  create("persistentvolumeclaims", {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: claim, namespace: "default" },
    spec: zone === undefined ? {} : { volumeName },
  });
  if (zone !== undefined)
    create("persistentvolumes", {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: volumeName },
      spec: { nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } } },
    });
}

const claims = (...names: readonly string[]) => ({
  volumes: names.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
});

async function readPods(node: string, { busy = [] as string[], read = ["a1", "a2", "b1"] } = {}) {
  const { cluster, calls } = stage.connect();
  const freshness = createFreshness(stage.clock, { warn: () => {} });
  const nodes = read.map((name) => readNode(stage.emulator.store.get("nodes", undefined, name) as never, undefined));
  const around = { cluster, freshness, now: stage.clock.now(), call: {}, nodes, busy: new Set(busy) };
  return { reading: await createPodReader(around)({ node, drained: [] }), calls };
}

async function placesOf(
  uid: string,
  ...[node = "a1", options]: Partial<Parameters<typeof readPods>>
): Promise<Places | undefined> {
  return (await readPods(node, options)).reading.drain?.places?.get(uid);
}

describe("the places of a node's pods", () => {
  it("are those of the zone that its volume is bound to", async () => {
    createVolume("data", "a");
    createVolume("new");
    const uid = createPod("db-0", "a1", claims("data", "new"));
    assert.deepEqual((await placesOf(uid))?.open, ["a2"]);
  });

  it("are none if the claim, or its volume, is gone", async () => {
    createVolume("data", "a");
    stage.emulator.store.remove("persistentvolumes", undefined, "pv-data");
    const [one, two] = [createPod("db-0", "a1", claims("data")), createPod("db-1", "a1", claims("none"))];
    assert.match((await placesOf(one))?.why ?? "", /claim data is gone/);
    assert.match((await placesOf(two))?.why ?? "", /claim none is gone/);
  });

  for (const [topologyKey, expected] of [
    ["kubernetes.io/hostname", ["a2"]],
    [ZONE, ["a2"]],
    ["rack", ["a2", "b1"]],
  ] as const)
    it(`are apart from peers by ${topologyKey}; pods of the node itself, and those that are over, do not count`, async () => {
      const labelSelector = { matchExpressions: [{ key: "app", operator: "In", values: ["db"] }] };
      const term = { topologyKey, labelSelector };
      const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
      const uid = createPod("db-0", "a1", { affinity }, { app: "db" });
      createPod("db-1", "b1", {}, { app: "db" });
      createPod("db-2", "a1", {}, { app: "db" });
      createPod("web", "a2", {}, { app: "web" });
      const over = createPod("job", "a2", {}, { app: "db" });
      const object = stage.emulator.store.list("pods", "default").find(({ metadata }) => metadata.uid === over);
      if (object) stage.emulator.store.update("pods", { ...object, status: { phase: "Succeeded" } });
      assert.deepEqual((await placesOf(uid))?.open, expected);
    });

  it("are looked for among all nodes where those that have been read do not do", async () => {
    const uid = createPod("db-0", "a1");
    assert.deepEqual((await placesOf(uid, "a1", { busy: ["a2"], read: ["a1", "a2"] }))?.open, ["a2", "b1"]);
    assert.deepEqual((await placesOf(uid, "a1", { read: ["a1", "a2"] }))?.open, ["a2"]);
  });

  it("are not known without the right to read claims or volumes", async () => {
    createVolume("data", "a");
    createPod("db-0", "a1", claims("data"));
    for (const resource of ["persistentvolumeclaims", "persistentvolumes"]) {
      stage.emulator.faults.inject({ verb: "get", resource, effect: { kind: "forbidden" }, times: 1 });
      assert.match((await readPods("a1")).reading.unknown ?? "", /^where its pods could go is not known: /);
    }
    assert.equal((await readPods("a1")).reading.unknown, undefined);
  });

  it("cost no call for pods without claims and peers, and two for each claim once", async () => {
    createPod("db-0", "a1");
    assert.deepEqual(
      (await readPods("a1")).calls.filter((call) => /persistentvolume|labelSelector=app/.test(call)),
      [],
    );
    createVolume("data", "a");
    createPod("db-1", "a1", claims("data"));
    createPod("db-2", "a1", claims("data"));
    assert.equal((await readPods("a1")).calls.filter((call) => /persistentvolume/.test(call)).length, 2);
  });
});
