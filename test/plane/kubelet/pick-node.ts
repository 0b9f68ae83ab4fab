/** The scheduler's choice. Resources, taints and affinity between pods are not looked at. */
import { controllerOf, type Pod } from "../../emulator/controllers/objects.ts";
import { annotation } from "../../emulator/controllers/kubelet.ts";

/** Nodes with this label, "true", have a kubelet of their own; pods ask for them by nodeSelector. */
export const REAL = "sim/real";

/**
 * Nodes with this label, "true", take only pods with a nodeSelector: they go with their test, and their pods with them.
 */
export const RESERVED = "sim/reserved";

export interface NodeFacts {
  readonly isSchedulable: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** Pods that are bound to it, or about to be. */
  readonly podCount: number;
}

type Nodes = ReadonlyMap<string, NodeFacts>;

export function asksForReal(pod: Pod): boolean {
  return pod.spec.nodeSelector?.[REAL] === "true";
}

/**
 * Picks the node of a pod, the first of these that applies; undefined if there is none:
 *
 *   named by its affinity (a DaemonSet's pods), cordoned or not
 *     -> the emptiest with the labels of its nodeSelector -> named by `sim/node` -> the node of its owner (owners take nodes in turn) -> any that is schedulable
 */
export function createScheduler(): (pod: Pod, nodes: Nodes) => string | undefined {
  const homes = new Map<string, string>();
  return (pod, nodes) => {
    const named = nodeOfAffinity(pod);
    if (named !== undefined) return nodes.has(named) ? named : undefined;
    const selector = Object.entries(pod.spec.nodeSelector ?? {});
    const fitting = [...nodes].filter(
      ([, { labels }]) =>
        (labels[REAL] === "true") === asksForReal(pod) &&
        (labels[RESERVED] !== "true" || selector.length > 0) &&
        selector.every(([label, value]) => labels[label] === value),
    );
    const names = fitting.map(([name]) => name);
    const isOpen = (name: string | undefined): boolean => name !== undefined && nodes.get(name)?.isSchedulable === true;
    if (selector.length > 0) {
      return fitting.toSorted(([, a], [, b]) => a.podCount - b.podCount).find(([name]) => isOpen(name))?.[0];
    }
    const owner = controllerOf(pod)?.uid ?? pod.metadata.uid;
    const home = homes.get(owner) ?? names[homes.size % names.length];
    if (home !== undefined) homes.set(owner, home);
    return [annotation(pod, "node"), home, ...names].find(isOpen);
  };
}

function nodeOfAffinity({ spec }: Pod): string | undefined {
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const field = terms.flatMap(({ matchFields = [] }) => matchFields).find(({ key }) => key === "metadata.name");
  return field?.values?.[0];
}
