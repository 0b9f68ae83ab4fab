/** What makes a pod the n-th of its StatefulSet. Source: pkg/controller/statefulset/stateful_set_utils.go. */
import type { Draft } from "../../objects.ts";
import { controllerReference, type Pod, type Revision, type StatefulSet, type Template } from "../objects.ts";

const POD_NAME = "statefulset.kubernetes.io/pod-name";
const POD_INDEX = "apps.kubernetes.io/pod-index";
const REVISION = "controller-revision-hash";

/** The pod template as the revision has it. */
export function templateOf(revision: Revision): Template {
  const { $patch: _, ...template } = revision.data.spec.template;
  return template;
}

/** The ordinal in the pod's name, if the name is one of the set's. */
export function ordinalOf(set: StatefulSet, pod: Pod): number | undefined {
  const [, parent, ordinal] = /^(.*)-(\d+)$/.exec(pod.metadata.name) ?? [];
  return parent === set.metadata.name ? Number(ordinal) : undefined;
}

/** Name of the ControllerRevision that the pod was made from; "" if it says none. */
export function revisionOf(pod: Pod): string {
  return pod.metadata.labels?.[REVISION] ?? "";
}

export function hasIdentity(pod: Pod): boolean {
  return pod.metadata.labels?.[POD_NAME] === pod.metadata.name;
}

/** The pod with the labels that it lost. */
export function withIdentity(set: StatefulSet, pod: Pod): Pod {
  return {
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...identityLabels(pod.metadata.name, ordinalOf(set, pod) ?? 0) } },
  };
}

/** The pod of an ordinal as its revision has it, not yet created: it has no phase. */
export function newPod(set: StatefulSet, revision: Revision, ordinal: number): Pod {
  const { metadata, spec } = templateOf(revision);
  const name = `${set.metadata.name}-${ordinal}`;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      generateName: `${set.metadata.name}-`,
      namespace: set.metadata.namespace ?? "",
      labels: { ...metadata?.labels, ...identityLabels(name, ordinal), [REVISION]: revision.metadata.name },
      ...(metadata?.annotations && { annotations: metadata.annotations }),
      ...(metadata?.finalizers && { finalizers: metadata.finalizers }),
      ownerReferences: [controllerReference(set)],
    },
    spec: { ...spec, hostname: name, subdomain: set.spec.serviceName },
    status: {},
  } satisfies Draft as Draft as Pod;
}

function identityLabels(name: string, ordinal: number): Record<string, string> {
  return { [POD_NAME]: name, [POD_INDEX]: String(ordinal) };
}
