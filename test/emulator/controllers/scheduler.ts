/**
 * The scheduler binds a pod to the first schedulable node of: the one that its annotation `sim/node` names,
 * its owner's (owners are assigned to nodes in turn), any other. A pod with a `nodeSelector` gets, of the nodes that
 * match, the one with the fewest pods.
 */
import type { Clock } from "../clock.ts";
import { dig, fieldsOf, isTrue, type KubeObject, listOf, textOf, timestamp } from "../objects.ts";
import type { Store } from "../store.ts";
import { controllerOf, isTerminating, type Pod } from "./objects.ts";
import { getByKey, keyOf, type Controller } from "./queue.ts";

/** Node labels that the API server copies to the node's pods. */
const TOPOLOGY = /^topology\.kubernetes\.io\/(zone|region)$/;

/** Names of the claims that its volumes have. */
const claimsOf = ({ spec }: Pod): string[] =>
  listOf(dig(spec, "volumes")).flatMap((volume) => textOf(dig(volume, "persistentVolumeClaim", "claimName")) ?? []);

export function scheduler(store: Store, clock: Clock): Controller {
  const ownerIndexes = new Map<string, number>();
  return {
    latencyMs: 1,
    keysFor: ({ type, resource, object }) => {
      if (resource === "nodes" || resource === "persistentvolumeclaims")
        return (store.list("pods") as Pod[]).filter((pod) => !pod.spec.nodeName).map(keyOf);
      return resource === "pods" && type === "ADDED" ? [keyOf(object)] : [];
    },
    reconcile: (key) => {
      const pod = getByKey(store, "pods", key) as Pod | undefined;
      if (!pod || pod.spec.nodeName || isTerminating(pod)) return;
      const owner = controllerOf(pod)?.uid ?? pod.metadata.uid;
      const index = ownerIndexes.get(owner) ?? ownerIndexes.size;
      ownerIndexes.set(owner, index);
      const nodes = store.list("nodes");
      const requested = nodes.find(({ metadata }) => metadata.name === pod.metadata.annotations?.["sim/node"]);
      const candidates = pod.spec.nodeSelector
        ? byLoad(store, nodes.filter(matches(pod.spec.nodeSelector)))
        : [requested, nodes[index % nodes.length], ...nodes];
      const missing = claimsOf(pod).find((name) => !store.get("persistentvolumeclaims", pod.metadata.namespace, name));
      const node =
        missing === undefined ? candidates.find((candidate) => candidate && takesPods(candidate)) : undefined;
      const why =
        missing === undefined
          ? `${nodes.length} node(s) were unschedulable`
          : `persistentvolumeclaim ${JSON.stringify(missing)} not found`;
      const message = `0/${nodes.length} nodes are available: ${why}.`;
      const result = node ? { status: "True" } : { status: "False", reason: "Unschedulable", message };
      const condition = { type: "PodScheduled", ...result, lastTransitionTime: timestamp(clock.now()) };
      const topology = Object.entries(node?.metadata.labels ?? {}).filter(([label]) => TOPOLOGY.test(label));
      store.update("pods", {
        ...pod,
        metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...Object.fromEntries(topology) } },
        spec: { ...pod.spec, ...(node && { nodeName: node.metadata.name }) },
        status: {
          ...pod.status,
          conditions: [condition, ...(pod.status.conditions ?? []).filter(({ type }) => type !== condition.type)],
        },
      });
    },
  };
}

/** A node that does not say whether it is Ready is. */
const takesPods = (node: KubeObject): boolean =>
  !dig(node, "spec", "unschedulable") && (isTrue(node, "Ready") || dig(node, "status", "conditions") === undefined);

const matches =
  (selector: Readonly<Record<string, string>>) =>
  ({ metadata }: KubeObject): boolean =>
    Object.entries(selector).every(([label, value]) => fieldsOf(metadata.labels)[label] === value);

/** Those with the fewest pods first. */
function byLoad(store: Store, nodes: readonly KubeObject[]): readonly KubeObject[] {
  const pods = store.list("pods");
  const loadOf = ({ metadata }: KubeObject): number =>
    pods.filter((pod) => dig(pod, "spec", "nodeName") === metadata.name).length;
  return nodes.toSorted((a, b) => loadOf(a) - loadOf(b));
}
