/**
 * The scheduler's choice for a pod, as a pure function. Resources, taints and affinity between pods are not looked at.
 * The first of these that applies:
 *
 *   a claim of it is missing: none -> named by its affinity (a DaemonSet's pods), cordoned or not
 *     -> the emptiest with the labels of its nodeSelector -> named by `sim/node` -> the node of its owner (owners take nodes in turn) -> any that takes pods
 */
import { dig, fieldsOf, isTrue, type KubeObject, listOf, textOf, timestamp } from "../objects.ts";
import type { Step } from "./changes.ts";
import type { Pod } from "./objects.ts";
import { annotation } from "./run-pod.ts";

/** Nodes with this label, "true", have a kubelet of their own; pods ask for them by nodeSelector. */
export const REAL = "sim/real";

/**
 * Nodes with this label, "true", take only pods with a nodeSelector: they go with their test, and their pods with them.
 */
export const RESERVED = "sim/reserved";

interface Nodes {
  readonly nodes: readonly KubeObject[];
  /** Names of the nodes that pods are bound to, each as often as it has pods. */
  readonly bound: () => readonly (string | undefined)[];
  /** The owner's place in the order in which owners came. */
  readonly turn: number;
}

/** The name of the node; undefined if there is none. */
export function pickNode(pod: Pod, { nodes, bound, turn }: Nodes): string | undefined {
  const named = nodeOfAffinity(pod);
  if (named !== undefined) return nodes.find(({ metadata }) => metadata.name === named)?.metadata.name;
  const selector = Object.entries(pod.spec.nodeSelector ?? {});
  const fitting = nodes.filter(({ metadata }) => {
    const labels = fieldsOf(metadata.labels);
    return (
      (labels[REAL] === "true") === asksForReal(pod) &&
      (labels[RESERVED] !== "true" || selector.length > 0) &&
      selector.every(([label, value]) => labels[label] === value)
    );
  });
  const requested = nodes.find(({ metadata }) => metadata.name === annotation(pod, "node"));
  const candidates =
    selector.length > 0 ? byLoad(fitting, bound()) : [requested, fitting[turn % fitting.length], ...fitting];
  return candidates.find((node) => node && takesPods(node))?.metadata.name;
}

export const asksForReal = (pod: Pod): boolean => pod.spec.nodeSelector?.[REAL] === "true";

function nodeOfAffinity({ spec }: Pod): string | undefined {
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const field = terms.flatMap(({ matchFields = [] }) => matchFields).find(({ key }) => key === "metadata.name");
  return field?.values?.[0];
}

/** A node that does not say whether it is Ready is. */
const takesPods = (node: KubeObject): boolean =>
  !dig(node, "spec", "unschedulable") && (isTrue(node, "Ready") || dig(node, "status", "conditions") === undefined);

/** Those with the fewest pods first. */
function byLoad(nodes: readonly KubeObject[], bound: readonly (string | undefined)[]): readonly KubeObject[] {
  const loadOf = ({ metadata }: KubeObject): number => bound.filter((name) => name === metadata.name).length;
  return nodes.toSorted((a, b) => loadOf(a) - loadOf(b));
}

/** Node labels that the API server copies to the node's pods. */
const TOPOLOGY = /^topology\.kubernetes\.io\/(zone|region)$/;

/** Names of the claims that its volumes have. */
const claimsOf = ({ spec }: Pod): string[] =>
  listOf(dig(spec, "volumes")).flatMap((volume) => textOf(dig(volume, "persistentVolumeClaim", "claimName")) ?? []);

/** Binds the pod, or says why not; `now` in milliseconds since the epoch. */
export function schedule(
  pod: Pod,
  { hasClaim, now, ...view }: Nodes & { readonly hasClaim: (name: string) => boolean; readonly now: number },
): Step {
  const missing = claimsOf(pod).find((name) => !hasClaim(name));
  const picked = missing === undefined ? pickNode(pod, view) : undefined;
  const why =
    missing === undefined
      ? `${view.nodes.length} node(s) were unschedulable`
      : `persistentvolumeclaim ${JSON.stringify(missing)} not found`;
  const message = `0/${view.nodes.length} nodes are available: ${why}.`;
  const result = picked ? { status: "True" } : { status: "False", reason: "Unschedulable", message };
  const type = "PodScheduled";
  const before = pod.status.conditions?.find(
    (condition) => condition.type === type && condition.status === result.status,
  );
  const condition = { type, ...result, lastTransitionTime: before?.lastTransitionTime ?? timestamp(now) };
  const node = view.nodes.find(({ metadata }) => metadata.name === picked);
  const topology = Object.entries(node?.metadata.labels ?? {}).filter(([label]) => TOPOLOGY.test(label));
  const object = {
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...Object.fromEntries(topology) } },
    spec: { ...pod.spec, ...(picked && { nodeName: picked }) },
    status: {
      ...pod.status,
      conditions: [condition, ...(pod.status.conditions ?? []).filter((other) => other.type !== type)],
    },
  };
  return { changes: [{ verb: "update", resource: "pods", object }] };
}
