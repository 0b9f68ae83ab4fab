/** The kinds that come with a CustomResourceDefinition: ours, and those of the systems that Zonewise replaces. */
import type { ObjectMeta, Resource } from "./resources.ts";

/** A ZoneAwarePodDisruptionBudget. Users write its `spec`, which may be invalid. */
export interface DisruptionBudget {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec?: unknown;
  readonly status?: {
    readonly disruptedPods?: unknown;
    readonly observedGeneration?: unknown;
    readonly zones?: unknown;
    readonly conditions?: unknown;
  };
}

export const disruptionBudgets: Resource<DisruptionBudget> = {
  group: "rollout-operator.grafana.com",
  version: "v1",
  plural: "zoneawarepoddisruptionbudgets",
};

/** An object that users and earlier operators write, which may be invalid: its capability reads what it needs of it. */
export interface CustomObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** A RolloutGroup: reconciler/group-status decides its `status`, which is valid by the definition's schema. */
export interface RolloutGroup {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec?: { readonly checkpoint?: string; readonly progressDeadlineSeconds?: number };
  readonly status?: unknown;
}

export const rolloutGroups: Resource<RolloutGroup> = { group: "zonewise.dev", version: "v1", plural: "rolloutgroups" };

export const bottlerocketShadows: Resource<CustomObject> = {
  group: "brupop.bottlerocket.aws",
  version: "v2",
  plural: "bottlerocketshadows",
};
export const nodeUpdatePolicies: Resource<CustomObject> = {
  group: "zonewise.dev",
  version: "v1",
  plural: "nodeupdatepolicies",
};
export const phasedRollouts: Resource<CustomObject> = {
  group: "sts.plus",
  version: "v1alpha1",
  plural: "phasedrollouts",
};

export const rolloutGates: Resource<CustomObject> = { group: "zonewise.dev", version: "v1", plural: "rolloutgates" };
