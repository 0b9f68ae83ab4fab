/** The scheduler: binds a pod to the node of `sim/node`, else to its owner's (owners take nodes in turn), else to any; cordoned nodes are passed over. */
import type { Clock } from "../clock.ts";
import { timestamp, type KubeObject } from "../objects.ts";
import type { Store } from "../store.ts";
import { controllerOf, isTerminating, type Pod } from "./objects.ts";
import { setCondition } from "./pod-status.ts";
import { createQueue } from "./queue.ts";

const REACTION_MS = 1;
/** Labels of the node that the API server copies to the pods bound to it. */
const TOPOLOGY = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/** Runs until the answer is called. */
export function runScheduler(store: Store, clock: Clock): () => void {
  const homes = new Map<string, number>();
  const pending = new Set<string>();

  const nodeFor = (pod: Pod): KubeObject | undefined => {
    const nodes = store.list("nodes");
    const owner = controllerOf(pod)?.uid ?? pod.metadata.uid;
    const home = homes.get(owner) ?? homes.size;
    homes.set(owner, home);
    const wanted = nodes.find((node) => node.metadata.name === pod.metadata.annotations?.["sim/node"]);
    return [wanted, nodes[home % nodes.length], ...nodes].find((node) => node && !isCordoned(node));
  };

  const queue = createQueue(clock, REACTION_MS, (key) => {
    const [namespace, name = ""] = key.split("/");
    const pod = store.get("pods", namespace, name) as Pod | undefined;
    if (!pod || pod.spec.nodeName || isTerminating(pod)) return void pending.delete(key);
    const node = nodeFor(pod);
    const now = timestamp(clock.now());
    if (node) pending.delete(key);
    else pending.add(key);
    store.update("pods", node ? bound(pod, node, now) : unschedulable(pod, store.list("nodes").length, now));
  });

  const unsubscribe = store.subscribe(({ type, resource, object }) => {
    if (resource === "nodes") for (const key of pending) queue.add(key);
    if (resource !== "pods" || type !== "ADDED" || (object as Pod).spec.nodeName) return;
    queue.add(`${object.metadata.namespace}/${object.metadata.name}`);
  });
  for (const { metadata } of store.list("pods")) queue.add(`${metadata.namespace}/${metadata.name}`);
  return () => {
    unsubscribe();
    queue.stop();
  };
}

function isCordoned(node: KubeObject): boolean {
  return (node as KubeObject & { spec?: { unschedulable?: boolean } }).spec?.unschedulable ?? false;
}

function bound(pod: Pod, node: KubeObject, now: string): Pod {
  const topology = TOPOLOGY.flatMap((key) => (node.metadata.labels?.[key] === undefined ? [] : [[key, node.metadata.labels[key]]]));
  const conditions = (pod.status.conditions ?? []).filter(({ type }) => type !== "PodScheduled");
  return {
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...Object.fromEntries(topology) } },
    spec: { ...pod.spec, nodeName: node.metadata.name },
    status: { ...pod.status, conditions: [setCondition([], "PodScheduled", true, now), ...conditions] },
  };
}

function unschedulable(pod: Pod, nodes: number, now: string): Pod {
  const message = `0/${nodes} nodes are available: ${nodes} node(s) were unschedulable.`;
  const { conditions = [] } = pod.status;
  const condition = { ...setCondition(conditions, "PodScheduled", false, now), reason: "Unschedulable", message };
  return { ...pod, status: { ...pod.status, conditions: [condition, ...conditions.filter(({ type }) => type !== "PodScheduled")] } };
}
