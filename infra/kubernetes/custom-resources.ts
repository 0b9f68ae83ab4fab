/** The kinds that come with a CustomResourceDefinition: ours, and kinds of the systems that Zonewise replaces. */
import { type ObjectMeta, type Resource, resourceOf } from "./resources.ts";

/** Users write its `spec`, and others may write its `status`: both may be invalid, and are read where they are used. */
export interface CustomObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec?: unknown;
  readonly status?: unknown;
}

export interface DisruptionBudget extends CustomObject {
  readonly status?: {
    readonly disruptedPods?: unknown;
    readonly observedGeneration?: unknown;
    readonly zones?: unknown;
    readonly conditions?: unknown;
  };
}

/** Its `spec` is valid by the definition's schema. */
export interface RolloutGroup extends CustomObject {
  readonly spec?: { readonly checkpoint?: string; readonly progressDeadlineSeconds?: number };
}

export const disruptionBudgets: Resource<DisruptionBudget> = resourceOf(
  "rollout-operator.grafana.com/v1",
  "zoneawarepoddisruptionbudgets",
);
export const rolloutGroups: Resource<RolloutGroup> = resourceOf("zonewise.dev/v1", "rolloutgroups");
export const rolloutGates: Resource<CustomObject> = resourceOf("zonewise.dev/v1", "rolloutgates");
export const nodeUpdatePolicies: Resource<CustomObject> = resourceOf("zonewise.dev/v1", "nodeupdatepolicies");
export const phasedRollouts: Resource<CustomObject> = resourceOf("sts.plus/v1alpha1", "phasedrollouts");
export const bottlerocketShadows: Resource<CustomObject> = resourceOf(
  "brupop.bottlerocket.aws/v2",
  "bottlerocketshadows",
);
