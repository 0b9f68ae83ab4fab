/** A real API server's lists of pods: the protobuf that we read is the same as its JSON. */
import assert from "node:assert/strict";
import { connectCluster } from "../../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../../infra/kubernetes/connection.ts";
import { createPodListDecoder } from "../../../infra/kubernetes/protobuf.ts";
import { type PodObject, pods } from "../../../infra/kubernetes/resources.ts";
import { isTerminating } from "../../../reconciler/model/health.ts";
import { type Pod, readPod } from "../../../reconciler/model/pod.ts";
import { remove } from "../stage/client.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

scenario("pods in protobuf are those in JSON: ready, crashing, terminating and annotated ones", async (stage) => {
  const { call, create, annotatePod, deletePod, namespace } = stage;
  await create(["zone-a", "zone-b"].map((name) => ({ group: "cache", name })));
  await annotatePod("zone-a-0", {
    "grafana.com/ready-time": "2026-01-02T03:04:05Z",
    "example.com/text": "zöne €",
    "example.com/none": "",
  });
  await annotatePod("zone-a-1", { "sim/crash": "true" });
  await annotatePod("zone-b-0", { "sim/exit-after-ms": "600000" });
  stage.defer(() => remove(stage.admin, `/api/v1/namespaces/${namespace}/pods/zone-b-0?gracePeriodSeconds=0`));
  await deletePod("zone-b-0");

  const connection = await loadConnection({ kubeconfig: process.env["KUBECONFIG"] ?? "" });
  stage.defer(() => connection.close());
  const cluster = connectCluster(connection, { timeoutMs: 60_000 });
  let decoded = 0;
  const counted: typeof pods = {
    ...pods,
    createListDecoder() {
      const { read, end } = createPodListDecoder();
      return { read, end: () => (decoded++, end()) };
    },
  };
  const readJson = async () =>
    (await call<{ items: PodObject[] }>("GET", `/api/v1/namespaces/${namespace}/pods`)).items.map(readPod);
  const readProtobuf = async () => {
    const all: Pod[] = [];
    for await (const { items } of cluster.list(counted, { namespace })) all.push(...items.map(readPod));
    return all;
  };
  const versions = (list: readonly { resourceVersion: string }[]): string =>
    list.map((pod) => pod.resourceVersion).join();
  let [inJson, inProtobuf]: [Pod[], Pod[]] = [[], []];
  // Pods may change between two lists; then both are read again.
  await until("both lists are of the same pods", async () => {
    [inJson, inProtobuf] = [await readJson(), await readProtobuf()];
    return versions(inJson) === versions(inProtobuf);
  });
  assert.deepEqual(inProtobuf, inJson);
  assert.equal(inProtobuf.length, 6);
  assert.ok(inProtobuf.some(isTerminating));
  assert.ok(decoded >= 1, "the server answered in JSON");

  const refused = cluster.list(pods, { namespace, fieldSelector: "nobody=1" }).next();
  await assert.rejects(refused, { code: "Invalid", status: 400, message: /field label not supported: nobody/ });
});
