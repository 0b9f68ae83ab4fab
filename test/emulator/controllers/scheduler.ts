/** The scheduler: binds a pod to the node of `sim/node`, else to its owner's (owners take nodes in turn), else to any; cordoned nodes are passed over. */
import type { Clock } from "../clock.ts";
import { dig, timestamp } from "../objects.ts";
import type { Store } from "../store.ts";
import { controllerOf, isTerminating, type Pod } from "./objects.ts";
import { find, keyOf, type Controller } from "./queue.ts";

/** Labels of the node that the API server copies to the pods bound to it. */
const TOPOLOGY = /^topology\.kubernetes\.io\/(zone|region)$/;

export function scheduler(store: Store, clock: Clock): Controller {
  const turns = new Map<string, number>();
  return {
    reactionMs: 1,
    concerns: ({ type, resource, object }) => {
      if (resource === "nodes") return (store.list("pods") as Pod[]).filter((pod) => !pod.spec.nodeName).map(keyOf);
      return resource === "pods" && type === "ADDED" ? [keyOf(object)] : [];
    },
    handle: (key) => {
      const pod = find(store, "pods", key) as Pod | undefined;
      if (!pod || pod.spec.nodeName || isTerminating(pod)) return;
      const owner = controllerOf(pod)?.uid ?? pod.metadata.uid;
      const turn = turns.get(owner) ?? turns.size;
      turns.set(owner, turn);
      const nodes = store.list("nodes");
      const wanted = nodes.find(({ metadata }) => metadata.name === pod.metadata.annotations?.["sim/node"]);
      const node = [wanted, nodes[turn % nodes.length], ...nodes].find((one) => one && !dig(one, "spec", "unschedulable"));
      const message = `0/${nodes.length} nodes are available: ${nodes.length} node(s) were unschedulable.`;
      const result = node ? { status: "True" } : { status: "False", reason: "Unschedulable", message };
      const condition = { type: "PodScheduled", ...result, lastTransitionTime: timestamp(clock.now()) };
      const topology = Object.entries(node?.metadata.labels ?? {}).filter(([label]) => TOPOLOGY.test(label));
      store.update("pods", {
        ...pod,
        metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...Object.fromEntries(topology) } },
        spec: { ...pod.spec, ...(node && { nodeName: node.metadata.name }) },
        status: { ...pod.status, conditions: [condition, ...(pod.status.conditions ?? []).filter(({ type }) => type !== condition.type)] },
      });
    },
  };
}
