/** The kinds that decide where a pod can run, with the fields that are read. */
import type { PodObject, Resource } from "./resources.ts";

/** The labels that a selector asks for. */
interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly Requirement[];
}

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

interface NodeSelector {
  readonly nodeSelectorTerms?: readonly {
    readonly matchExpressions?: readonly Requirement[];
    readonly matchFields?: readonly Requirement[];
  }[];
}

interface AffinityTerm {
  readonly topologyKey: string;
  readonly labelSelector?: LabelSelector;
  readonly namespaces?: readonly string[];
  readonly namespaceSelector?: LabelSelector;
}

export interface PodSpec {
  readonly nodeName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: {
    readonly nodeAffinity?: { readonly requiredDuringSchedulingIgnoredDuringExecution?: NodeSelector };
    readonly podAntiAffinity?: { readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly AffinityTerm[] };
  };
  readonly tolerations?: readonly {
    readonly key?: string;
    readonly operator?: string;
    readonly value?: string;
    readonly effect?: string;
  }[];
  readonly volumes?: readonly { readonly persistentVolumeClaim?: { readonly claimName: string } }[];
  readonly containers?: readonly Container[];
  readonly initContainers?: readonly Container[];
}

interface Container {
  readonly resources?: { readonly requests?: Readonly<Record<string, string>> };
}

/** A pod with the fields that its scheduling depends on. */
export interface PlacedPod extends Omit<PodObject, "spec"> {
  readonly spec?: PodSpec;
}

/** Listed in JSON: the pods of a node, or those that an anti-affinity term of a pod selects. */
export const placedPods: Resource<PlacedPod> = { group: "", version: "v1", plural: "pods", pageSize: 100 };

export const volumeClaims: Resource<{ readonly spec?: { readonly volumeName?: string } }> = {
  group: "",
  version: "v1",
  plural: "persistentvolumeclaims",
};

export const volumes: Resource<{ readonly spec?: { readonly nodeAffinity?: { readonly required?: NodeSelector } } }> = {
  group: "",
  version: "v1",
  plural: "persistentvolumes",
};
