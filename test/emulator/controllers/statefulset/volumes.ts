/** The volume claims of a StatefulSet's pods: one a template and ordinal, created before the pod and never deleted (policy Retain). */
import type { Store } from "../../store.ts";
import type { PodSpec, StatefulSet } from "../objects.ts";

const CLAIMS = "persistentvolumeclaims";

/** A pod's volumes: its claims, then those of the template that no claim replaces. */
export function volumesOf(set: StatefulSet, podName: string, volumes: PodSpec["volumes"] = []): PodSpec["volumes"] & object {
  const claims = (set.spec.volumeClaimTemplates ?? []).map(({ metadata: { name } }) => name);
  return [
    ...claims.map((name) => ({ name, persistentVolumeClaim: { claimName: `${name}-${podName}` } })),
    ...volumes.filter((volume) => !claims.includes(volume.name)),
  ];
}

export function createClaims(store: Store, set: StatefulSet, podName: string): void {
  const { namespace = "" } = set.metadata;
  for (const template of set.spec.volumeClaimTemplates ?? []) {
    const name = `${template.metadata.name}-${podName}`;
    if (store.get(CLAIMS, namespace, name)) continue;
    const labels = { ...template.metadata.labels, ...set.spec.selector.matchLabels };
    const metadata = { ...template.metadata, name, namespace, labels };
    store.create(CLAIMS, { ...template, apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, status: { phase: "Pending" } });
  }
}
