/** Judges whether a node is fit to be updated, and whether it is healthy after its update. */
import { parseTimestamp } from "../../infra/timestamp.ts";
import { isInFuture } from "../checks/check.ts";
import type { UpdateNode } from "./node.ts";
import type { NodePod } from "./node-pod.ts";
import type { ActiveNode, Workload } from "./policy-status.ts";
import { isReady, isTerminating } from "../model/health.ts";

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

interface ReturnedNode {
  readonly now: number;
  readonly node: UpdateNode;
  readonly entry: ActiveNode;
  readonly minReadySeconds: number;
}

/**
 * Why the node itself is not well yet: wrong boot or version, not Ready, or not for long enough. A quick reboot never
 * shows NotReady, so the report counts as well.
 */
export function whyNotReturned({ now, node, entry, minReadySeconds }: ReturnedNode): string | undefined {
  const { current_version: version = "nothing" } = node.shadow?.status ?? {};
  if (entry.bootId !== "" && node.bootId === entry.bootId) return "the node has not been rebooted";
  if (version !== entry.to) return `the node runs ${version}, not ${entry.to}`;
  if (!node.ready) return "the node is not Ready";
  return now < wellSince(node, entry, now) + minReadySeconds * 1000
    ? `the node must be Ready for ${minReadySeconds} s`
    : undefined;
}

/**
 * Milliseconds; the entry's phase began after the node had reported. It also stands for a time that is ahead, such as
 * that of a host that became Ready before its clock was set.
 */
function wellSince({ shadow, readySince = 0 }: UpdateNode, { since }: ActiveNode, now: number): number {
  const began = parseTimestamp(since) ?? 0;
  const reported = parseTimestamp(shadow?.status?.boot_reported_at ?? "") ?? began;
  return Math.max(...[readySince, reported].map((at) => (isInFuture(at, now) ? began : at)));
}

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
