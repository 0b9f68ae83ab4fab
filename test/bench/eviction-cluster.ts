/** The cluster of the eviction benchmark, in a process of its own: three zones of three pods under a budget that lets a zone go. Prints its kubeconfig. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { startEmulator } from "../emulator/index.ts";
import type { Draft } from "../emulator/objects.ts";

const CRD = new URL("../../infra/manifests/crds/zoneawarepoddisruptionbudgets.yaml", import.meta.url);

const emulator = await startEmulator();
const { store } = emulator;
store.create("customresourcedefinitions.apiextensions.k8s.io", parse(readFileSync(CRD, "utf8")) as Draft);
const group = { "rollout-group": "ingester" };
for (const name of ["zone-a", "zone-b", "zone-c"]) {
  const template = { metadata: { labels: { name, ...group } }, spec: { containers: [{ name: "c", image: "x" }] } };
  const selector = { matchLabels: { name } };
  const spec = {
    serviceName: name,
    replicas: 3,
    podManagementPolicy: "Parallel",
    updateStrategy: { type: "OnDelete" },
    selector,
    template,
  };
  store.create("statefulsets.apps", {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, namespace: "default", labels: group },
    spec,
  });
}
await sleep(2000);
store.create("zoneawarepoddisruptionbudgets.rollout-operator.grafana.com", {
  apiVersion: "rollout-operator.grafana.com/v1",
  kind: "ZoneAwarePodDisruptionBudget",
  metadata: { name: "ingester", namespace: "default" },
  spec: { maxUnavailable: 3, selector: { matchLabels: group } },
});
console.log(JSON.stringify(emulator.kubeconfig()));
