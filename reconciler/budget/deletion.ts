/**
 * Decides which deletions of pods ask the disruption budget (§5.12): those of a running pod of a rollout group, by
 * anyone who is no controller of the cluster. The conditions of the webhook say the same without a call
 * (infra/manifests/pod-deletion-webhook), so that a configuration without them stops no controller. Pure.
 */
import { firstOf, type Rule } from "../../infra/rules.ts";
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS, LABELS } from "../model/annotations.ts";

/** The path of the webhook. */
export const DELETION_PATH = "/admission/pod-deletion";

export interface Deletion {
  /** The user who deletes, as the API server knows it. */
  readonly username: string;
  readonly groups: readonly string[];
  readonly pod: PodObject;
}

/** The reasons why a deletion does not ask the budget. */
export type NotAsked =
  | "NoRolloutGroup"
  | "NoStatefulSet"
  | "GoneAlready"
  | "ByController"
  | "ByKubelet"
  | "ByReconciler"
  | "ByHand";

type ByPod = Rule<[deletion: Pick<Deletion, "pod">], NotAsked>;
type ByUser = Rule<[deletion: Deletion], NotAsked>;

const inGroup: ByPod = ({ pod }) =>
  pod.metadata?.labels?.[LABELS.rolloutGroup] === undefined ? "NoRolloutGroup" : undefined;

/** Pods of a StatefulSet of another API group are others' to guard. */
const ofStatefulSet: ByPod = ({ pod }) => {
  const controller = pod.metadata?.ownerReferences?.find((owner) => owner.controller);
  return controller?.kind === "StatefulSet" && controller.apiVersion.startsWith("apps/") ? undefined : "NoStatefulSet";
};

/**
 * The deletion makes nothing unavailable: the pod is being deleted already, or no longer runs. A kubelet ends each
 * deletion by another one.
 */
const stillThere: ByPod = ({ pod: { metadata, status } }) =>
  metadata?.deletionTimestamp !== undefined || ["Succeeded", "Failed"].includes(status?.phase ?? "")
    ? "GoneAlready"
    : undefined;

/**
 * The StatefulSet, namespace and job controllers, garbage collectors, taint eviction: with one account each, or one
 * for all.
 */
const byController: ByUser = ({ username }) =>
  username.startsWith("system:serviceaccount:kube-system:") ||
  ["system:kube-controller-manager", "system:kube-scheduler", "system:apiserver"].includes(username)
    ? "ByController"
    : undefined;

const byKubelet: ByUser = ({ groups }) => (groups.includes("system:nodes") ? "ByKubelet" : undefined);

/** The reconciler, in any namespace (`NAMESPACES`): it has asked the budget, and reserved the pod. */
const byReconciler: ByUser = ({ username }) =>
  /^system:serviceaccount:[^:]+:zonewise-reconciler$/.test(username) ? "ByReconciler" : undefined;

const byHand: ByPod = ({ pod }) =>
  pod.metadata?.annotations?.[ANNOTATIONS.deleteByHand] === "true" ? "ByHand" : undefined;

/** The rules about the pod alone. */
const podNotAsked = firstOf<[Pick<Deletion, "pod">], NotAsked>([inGroup, ofStatefulSet, stillThere, byHand]);

/** The first rule that lets the deletion pass unasked; undefined if the budget decides. */
export const whyNotAsked = firstOf<[Deletion], NotAsked>([podNotAsked, byController, byKubelet, byReconciler]);

/**
 * The command that lets a person delete a guarded pod. Its successor lacks the annotation, unless the template has it.
 */
export const deleteByHand = (namespace: string, pod: string): string =>
  `kubectl -n ${namespace} annotate pod ${pod} ${ANNOTATIONS.deleteByHand}=true`;
