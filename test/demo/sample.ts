/** The sample that the demonstration rolls out, and the change that sets it off. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { type Resource, statefulSets } from "../../infra/kubernetes/resources.ts";

export const SAMPLE = join(import.meta.dirname, "../../examples/three-zones.yaml");

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const RESOURCES: Readonly<Record<string, Resource>> = {
  Service: { group: "", version: "v1", plural: "services" },
  StatefulSet: statefulSets,
};

/** Creates all objects of the file in `namespace`; answers the names of its StatefulSets. */
export async function applySample(cluster: Cluster, namespace: string): Promise<string[]> {
  const manifests = parseAllDocuments(await readFile(SAMPLE, "utf8")).map((document) => document.toJS() as Manifest);
  for (const manifest of manifests) {
    const resource = RESOURCES[manifest.kind];
    if (!resource) throw new Error(`${SAMPLE}: the demonstration has no use for a ${manifest.kind}`);
    await cluster.create(resource, namespace, manifest);
  }
  return manifests.filter(({ kind }) => kind === "StatefulSet").map(({ metadata }) => metadata.name);
}

/** What `kubectl set image` does. */
export async function setImage(
  cluster: Cluster,
  namespace: string,
  names: readonly string[],
  container: string,
  image: string,
): Promise<void> {
  const body = { spec: { template: { spec: { containers: [{ name: container, image }] } } } };
  for (const name of names) await cluster.patch(statefulSets, { namespace, name }, "strategic", body);
}

/** What `kubectl scale` does. */
export async function setReplicas(cluster: Cluster, namespace: string, name: string, replicas: number): Promise<void> {
  await cluster.patch(statefulSets, { namespace, name }, "merge", { spec: { replicas } });
}
