/**
 * The cluster of the eviction bench in a process of its own: three zones under a budget, with pods of 8 kB. Without
 * controllers only requests change objects. It prints its kubeconfig.
 *
 *   eviction-cluster.ts 100      pods per zone
 */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { startEmulator } from "../emulator/index.ts";
import type { Draft } from "../emulator/objects.ts";
import { podJson } from "./pod-list.ts";
import { add } from "../builders.ts";

const CRD = new URL("../../infra/manifests/crds/zoneawarepoddisruptionbudgets.yaml", import.meta.url);
const NAMESPACE = "default";
const labels = { "rollout-group": "ingester" };

const { store, kubeconfig } = await startEmulator({ controllers: false });
store.create("customresourcedefinitions.apiextensions.k8s.io", parse(readFileSync(CRD, "utf8")) as Draft);
const replicas = Number(process.argv[2]);
for (const zone of ["zone-a", "zone-b", "zone-c"]) createZone(zone);
add(store, "ZoneAwarePodDisruptionBudget", "ingester", {
  namespace: NAMESPACE,
  spec: { maxUnavailable: replicas, selector: { matchLabels: labels } },
});
console.log(JSON.stringify(kubeconfig()));

function createZone(zone: string): void {
  const created = add(store, "StatefulSet", zone, {
    namespace: NAMESPACE,
    labels,
    spec: {
      serviceName: zone,
      replicas,
      updateStrategy: { type: "OnDelete" },
      selector: { matchLabels: { name: zone } },
      template: {},
    },
    status: { replicas, readyReplicas: replicas, observedGeneration: 1 },
  });
  const { uid } = created.metadata;
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: zone, uid, controller: true };
  for (let ordinal = 0; ordinal < replicas; ordinal++) {
    const { metadata, spec, status } = JSON.parse(podJson(ordinal)) as Record<"metadata" | "spec" | "status", object>;
    const { uid: _uid, resourceVersion: _version, ...described } = metadata as Draft["metadata"];
    const own = {
      name: `${zone}-${ordinal}`,
      namespace: NAMESPACE,
      labels: { ...labels, name: zone },
      ownerReferences: [owner],
    };
    store.create("pods", { apiVersion: "v1", kind: "Pod", metadata: { ...described, ...own }, spec, status });
  }
}
