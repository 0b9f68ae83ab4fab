/** The kinds that the controllers read and write, over the store's untyped objects. */
import type { V1PodSpec, V1PodStatus, V1PodTemplateSpec, V1StatefulSetSpec, V1StatefulSetStatus } from "@kubernetes/client-node";
import type { Json } from "../../../infra/kubernetes/resources.ts";
import type { KubeObject, OwnerReference } from "../objects.ts";

export const SETS = "statefulsets.apps";
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
  const { phase, conditions = [] } = pod.status;
  return phase === "Running" && conditions.some(({ type, status }) => type === "Ready" && status === "True");
}

/** Whether its containers have ended for good. */
export function hasEnded(pod: Pod): boolean {
  return pod.status.phase === "Succeeded" || pod.status.phase === "Failed";
}

/** The owner that manages the object, if any. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller);
}

/** The reference that makes `owner` the manager of an object. */
export function controllerReference({ apiVersion, kind, metadata: { name, uid } }: KubeObject): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}
