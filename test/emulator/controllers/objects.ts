/** The kinds that the controllers read and write, over the store's untyped objects. */
import type { V1LabelSelector, V1PodCondition, V1PodSpec, V1PodStatus, V1PodTemplateSpec } from "@kubernetes/client-node";
import type { V1StatefulSetSpec, V1StatefulSetStatus } from "@kubernetes/client-node";
import type { Json } from "../../../infra/resources.ts";
import { isTrue } from "../objects.ts";
import type { KubeObject, OwnerReference } from "../objects.ts";

export type Condition = Json<V1PodCondition>;
export type PodStatus = Json<V1PodStatus>;
export type Template = Json<V1PodTemplateSpec>;
export type LabelSelector = Json<V1LabelSelector>;
export type StatefulSetStatus = Json<V1StatefulSetStatus>;

export interface Pod extends KubeObject {
  spec: Json<V1PodSpec>;
  status: PodStatus;
}

export interface StatefulSet extends KubeObject {
  spec: Json<V1StatefulSetSpec>;
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
  return isTrue(pod, "Ready");
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
