/**
 * The scheduler binds a pod to the first schedulable node of: the one that its annotation `sim/node` names,
 * its owner's (owners are assigned to nodes in turn), any other.
 */
import type { Clock } from "../clock.ts";
import { dig, timestamp } from "../objects.ts";
import type { Store } from "../store.ts";
import { controllerOf, isTerminating, type Pod } from "./objects.ts";
import { getByKey, keyOf, type Controller } from "./queue.ts";

/** Node labels that the API server copies to the node's pods. */
const TOPOLOGY = /^topology\.kubernetes\.io\/(zone|region)$/;

export function scheduler(store: Store, clock: Clock): Controller {
  const ownerIndexes = new Map<string, number>();
  return {
    latencyMs: 1,
    keysFor: ({ type, resource, object }) => {
      if (resource === "nodes") return (store.list("pods") as Pod[]).filter((pod) => !pod.spec.nodeName).map(keyOf);
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
      const candidates = [requested, nodes[index % nodes.length], ...nodes];
      const node = candidates.find((candidate) => candidate && !dig(candidate, "spec", "unschedulable"));
      const message = `0/${nodes.length} nodes are available: ${nodes.length} node(s) were unschedulable.`;
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
