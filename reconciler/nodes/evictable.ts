/**
 * Which pods of a node a drain evicts, in the original's order of rules: pods with emptyDir and pods without a
 * controller go, too. Unlike the original's, a drain does not wait for what runs nothing: static pods that have ended,
 * and deleted pods that have, whose finalizers may never be removed.
 */
import type { PodObject } from "../../infra/kubernetes/resources.ts";

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
