/**
 * The pods of a node: which of them a drain evicts, whether one cannot start, and whether the work is back after the
 * reboot.
 *
 * A drain evicts in the original's order of rules: pods with emptyDir and pods without a controller go, too. Unlike the
 * original's, it does not wait for pods that run nothing: static pods that have ended, and deleted pods that have ended,
 * whose finalizers may never be removed.
 */
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import { isReady, isTerminating } from "../model/health.ts";
import { type Pod, readPod } from "../model/pod.ts";
import type { Workload } from "./policy.ts";

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

/** The known state of a controller; undefined if it is gone. */
export type WorkloadNow =
  | (Pick<Workload, "kind" | "namespace" | "name" | "uid"> & { readonly desired: number; readonly ready: number })
  | undefined;

/** Pods that cannot start on the node, by name; undefined if there is none. */
export function whyUnfit(pods: readonly NodePod[]): string | undefined {
  const broken = pods.filter(({ health: { fault } }) => fault !== undefined && fault !== "Failed");
  return broken.length === 0 ? undefined : broken.slice(0, 3).map(describeBroken).join(", ");
}

const describeBroken = ({ namespace, name, health: { fault = "" } }: NodePod): string =>
  `${namespace}/${name} ${fault}`;

export interface ReturnedWork {
  /** All pods on the node. */
  readonly pods: readonly NodePod[];
  /** The controllers of those pods, by UID. */
  readonly owners: ReadonlyMap<string, WorkloadNow>;
  /** The controllers whose pods were drained, with the known state of each. */
  readonly drained: readonly (readonly [before: Workload, now: WorkloadNow])[];
}

/**
 * Why the work has not come back: a DaemonSet's pod is not ready, a pod is broken here that is healthy elsewhere, or a
 * drained controller has fewer ready pods.
 */
export function whyWorkMissing({ pods, owners, drained }: ReturnedWork): string | undefined {
  const daemon = pods.find((pod) => pod.controller?.kind === "DaemonSet" && !isReady(pod) && !isTerminating(pod));
  if (daemon) return `${daemon.namespace}/${daemon.name} of a DaemonSet is not ready`;
  const broken = pods.find((pod) => pod.health.fault !== undefined && (owners.get(pod.owner ?? "")?.ready ?? 0) > 0);
  if (broken)
    return `${describeBroken(broken)}, while other pods of ${broken.controller?.name ?? "its controller"} are healthy`;
  const missing = drained.find(
    ([before, after]) => after && after.uid === before.uid && after.ready < Math.min(before.ready, after.desired),
  );
  if (missing)
    return `${missing[0].kind} ${missing[0].namespace}/${missing[0].name} has ${missing[1]?.ready ?? 0} ready pods, and had ${missing[0].ready}`;
  return undefined;
}
