/**
 * The pods of a node that is to be drained, and which of them a drain evicts, in the original's order of rules: pods
 * with emptyDir and pods without a controller go, too. Unlike the original's, a drain does not wait for pods that run
 * nothing: static pods that have ended, and deleted pods that have ended, whose finalizers may never be removed.
 */
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import { isTerminating } from "../model/health.ts";
import { type Pod, readPod } from "../model/pod.ts";

export interface NodePod extends Pod {
  /** A drain evicts it. */
  readonly evictable: boolean;
}

export function readNodePod(pod: PodObject): NodePod {
  return { ...readPod(pod), evictable: findEvictable([pod]).length > 0 };
}

const isOver = ({ phase }: Pick<NodePod, "phase">): boolean => phase === "Succeeded" || phase === "Failed";

/** A drain evicts it, and its controller makes another one, which needs a place. */
export const needsPlace = (pod: NodePod): boolean =>
  pod.evictable && pod.controller !== undefined && !isOver(pod) && !isTerminating(pod);

const MIRROR = "kubernetes.io/config.mirror";

/**
 * The pods that have to leave the node before it reboots. A pod that has ended is evicted also if it is a DaemonSet's.
 */
export function findEvictable<P extends Pick<PodObject, "metadata" | "status">>(pods: readonly P[]): readonly P[] {
  return pods.filter((pod) => !isMirror(pod) && (hasEnded(pod) ? !isDeleted(pod) : !isOfDaemonSet(pod)));
}

const hasEnded = ({ status }: Pick<PodObject, "status">): boolean =>
  status?.phase === "Failed" || status?.phase === "Succeeded";

const isDeleted = ({ metadata }: Pick<PodObject, "metadata">): boolean => metadata?.deletionTimestamp !== undefined;

function isOfDaemonSet({ metadata }: Pick<PodObject, "metadata">): boolean {
  return (metadata?.ownerReferences ?? []).some(({ kind, controller }) => kind === "DaemonSet" && controller === true);
}

/** A static pod: the kubelet recreates it whatever the API says. */
const isMirror = ({ metadata }: Pick<PodObject, "metadata">): boolean => metadata?.annotations?.[MIRROR] !== undefined;
