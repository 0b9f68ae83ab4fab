/** The demands of a pod on its node, the same as those of its controller's next pod: from its stored spec. */
import type { PlacedPod, PodSpec } from "../../infra/kubernetes/scheduling.ts";
import type { LabelSelector } from "../model/label-selector.ts";
import type { NodeTerm } from "./node-selector.ts";
import { parseQuantities } from "./quantity.ts";
import type { Toleration } from "./taints.ts";

/** Pods that must not be in the same domain: required anti-affinity. */
export interface Repelled {
  readonly topologyKey: string;
  /** Undefined selects none. */
  readonly selector: LabelSelector | undefined;
  /** [""] for all. */
  readonly namespaces: readonly string[];
}

export interface PodNeeds {
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Required node affinity; undefined without any. */
  readonly terms: readonly NodeTerm[] | undefined;
  readonly tolerations: readonly Toleration[];
  readonly repels: readonly Repelled[];
  /**
   * Names of its PersistentVolumeClaims. Those of ephemeral volumes are created with each pod, and bind it to no node.
   */
  readonly claims: readonly string[];
  /** In the base unit of each resource. */
  readonly requests: Readonly<Record<string, number>>;
}

/** Reads the demands of the pod. */
export function readNeeds({ metadata, spec = {} }: PlacedPod): PodNeeds {
  const { nodeSelector = {}, affinity: { nodeAffinity, podAntiAffinity } = {}, tolerations = [], volumes = [] } = spec;
  return {
    nodeSelector,
    terms: nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms,
    tolerations,
    repels: readRepelled(podAntiAffinity, metadata?.namespace),
    claims: volumes.flatMap(({ persistentVolumeClaim }) =>
      persistentVolumeClaim ? [persistentVolumeClaim.claimName] : [],
    ),
    requests: readRequests(spec),
  };
}

type AntiAffinity = NonNullable<PodSpec["affinity"]>["podAntiAffinity"];

function readRepelled(antiAffinity: AntiAffinity, own = ""): Repelled[] {
  const terms = antiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  return terms.map(({ topologyKey, labelSelector, namespaces = [], namespaceSelector }) => {
    const named = namespaces.length > 0 ? namespaces : namespaceSelector ? [] : [own];
    return { topologyKey, selector: labelSelector, namespaces: isAll(namespaceSelector) ? [""] : named };
  });
}

/** An empty selector is for all namespaces; one that asks for labels of namespaces is not evaluated. */
const isAll = (selector: LabelSelector | undefined): boolean =>
  selector !== undefined &&
  Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length === 0;

/**
 * The sum of its containers, or the largest init container: what the scheduler reserves, without sidecars and overhead.
 */
function readRequests({ containers = [], initContainers = [] }: PodSpec): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const container of containers)
    for (const [name, amount] of requestsOf(container)) sum[name] = (sum[name] ?? 0) + amount;
  for (const container of initContainers)
    for (const [name, amount] of requestsOf(container)) sum[name] = Math.max(sum[name] ?? 0, amount);
  return sum;
}

const requestsOf = ({ resources }: NonNullable<PodSpec["containers"]>[number]): [name: string, amount: number][] =>
  Object.entries(parseQuantities(resources?.requests ?? {}));
