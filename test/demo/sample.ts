/** The demonstration's sample manifests, and the changes to them. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { disruptionBudgets } from "../../infra/kubernetes/custom-resources.ts";
import { type Resource, statefulSets } from "../../infra/kubernetes/resources.ts";

export const SAMPLE = join(import.meta.dirname, "../../examples/three-zones.yaml");

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const RESOURCES: Readonly<Record<string, Resource>> = {
  Service: { group: "", version: "v1", plural: "services" },
  StatefulSet: statefulSets,
  ZoneAwarePodDisruptionBudget: disruptionBudgets,
};

/** Creates all objects of the sample in `namespace`; returns the names of its StatefulSets. */
export async function applySample(cluster: Cluster, namespace: string): Promise<string[]> {
  const manifests = parseAllDocuments(await readFile(SAMPLE, "utf8")).map((document) => document.toJS() as Manifest);
  for (const manifest of manifests) {
    const resource = RESOURCES[manifest.kind];
    if (!resource) throw new Error(`${SAMPLE}: the demonstration does not support kind ${manifest.kind}`);
    await cluster.create(resource, { namespace, body: manifest });
  }
  return manifests.filter(({ kind }) => kind === "StatefulSet").map(({ metadata }) => metadata.name);
}

interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

/** Patches a StatefulSet as `kubectl set image` does. */
export async function setImage(
  cluster: Cluster,
  statefulSet: ObjectName,
  container: { name: string; image: string },
): Promise<void> {
  await cluster.patch(statefulSets, {
    ...statefulSet,
    type: "strategic",
    body: { spec: { template: { spec: { containers: [container] } } } },
  });
}

/** Scales a StatefulSet as `kubectl scale` does. */
export async function setReplicas(cluster: Cluster, statefulSet: ObjectName, replicas: number): Promise<void> {
  await cluster.patch(statefulSets, { ...statefulSet, type: "merge", body: { spec: { replicas } } });
}
