/** The fields that the controllers read and write, over the store's untyped objects. */
import type { KubeObject, OwnerReference } from "../objects.ts";

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastProbeTime?: null;
  readonly lastTransitionTime?: string;
  readonly observedGeneration?: number;
}

export interface Container {
  readonly name: string;
  readonly image: string;
}

export interface ContainerStatus {
  readonly name: string;
  readonly state: {
    readonly running?: { readonly startedAt: string };
    readonly waiting?: { readonly reason: string; readonly message: string };
  };
  readonly [field: string]: unknown;
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly nodeName?: string;
  readonly readinessGates?: readonly { readonly conditionType: string }[];
  readonly volumes?: readonly { readonly name: string }[];
  readonly [field: string]: unknown;
}

export interface PodStatus {
  readonly phase?: string;
  readonly startTime?: string;
  readonly conditions?: readonly Condition[];
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly [field: string]: unknown;
}

export interface Pod extends KubeObject {
  spec: PodSpec;
  status: PodStatus;
}

export interface Template {
  readonly metadata?: {
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
    readonly finalizers?: string[];
  };
  readonly spec: PodSpec;
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] }[];
}

export interface StatefulSetStatus {
  readonly observedGeneration?: number;
  readonly replicas: number;
  readonly readyReplicas?: number;
  readonly currentReplicas?: number;
  readonly updatedReplicas?: number;
  readonly currentRevision?: string;
  readonly updateRevision?: string;
  readonly collisionCount?: number;
  readonly availableReplicas: number;
}

export interface StatefulSet extends KubeObject {
  spec: {
    readonly replicas?: number;
    readonly selector: LabelSelector;
    readonly serviceName?: string;
    readonly template: Template;
    readonly podManagementPolicy?: string;
    readonly updateStrategy?: { readonly type?: string; readonly rollingUpdate?: { readonly partition?: number } };
    readonly minReadySeconds?: number;
    readonly revisionHistoryLimit?: number;
    readonly ordinals?: { readonly start?: number };
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string; readonly labels?: Record<string, string> } }[];
  };
  status?: StatefulSetStatus;
}

export interface Revision extends KubeObject {
  data: { readonly spec: { readonly template: Template & { readonly $patch: "replace" } } };
  revision: number;
}

export function isTerminating(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp !== undefined;
}

export function isReady(pod: Pod): boolean {
  return pod.status.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") ?? false;
}

/** The owner that manages the object, if any. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller);
}

/** The reference that makes `owner` the manager of an object. */
export function controllerReference(owner: KubeObject): OwnerReference {
  const { apiVersion, kind, metadata } = owner;
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true, blockOwnerDeletion: true };
}
