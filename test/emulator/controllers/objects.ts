/** Types of the objects that the controllers read and write; the store's objects are untyped. */
import type {
  V1PodSpec,
  V1PodStatus,
  V1PodTemplateSpec,
  V1StatefulSetSpec,
  V1StatefulSetStatus,
} from "@kubernetes/client-node";
import type { Json } from "../../../infra/kubernetes/resources.ts";
import { isTrue, type KubeObject, type OwnerReference } from "../objects.ts";

export const STATEFUL_SETS = "statefulsets.apps";
export const BUDGETS = "poddisruptionbudgets.policy";

export type StatefulSetStatus = Json<V1StatefulSetStatus>;

export interface Pod extends KubeObject {
  spec: Json<V1PodSpec>;
  status: Json<V1PodStatus>;
}

export interface StatefulSet extends KubeObject {
  spec: Json<V1StatefulSetSpec>;
  status?: StatefulSetStatus;
}

export interface Revision extends KubeObject {
  data: { readonly spec: { readonly template: Json<V1PodTemplateSpec> } };
  revision: number;
}

export function isTerminating(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp !== undefined;
}

export function isReady(pod: Pod): boolean {
  return pod.status.phase === "Running" && isTrue(pod, "Ready");
}

/** Whether the pod's phase is terminal. */
export function hasEnded(pod: Pod): boolean {
  return pod.status.phase === "Succeeded" || pod.status.phase === "Failed";
}

/** The reference to the object's controller, if any. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller);
}

/** Builds a reference that makes this object the controller of another. */
export function controllerReference({ apiVersion, kind, metadata: { name, uid } }: KubeObject): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}
