/** Pods and StatefulSets as a budget sees them. */
import type { PodObject, PodStatus } from "../../infra/kubernetes/resources.ts";
import { readPod, type Pod } from "../model/pod.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import type { Labels, Zone } from "../model/zone.ts";

export interface BudgetPod extends Pod {
  readonly labels: Labels;
  readonly phase: string;
  /** The controller that owns it. */
  readonly controller: { readonly kind: string; readonly name: string } | undefined;
  /** When it became ready, milliseconds since the epoch; undefined if its Ready condition does not tell (§5.7). */
  readonly readySince: number | undefined;
}

export interface BudgetZone extends Zone {
  /** In the order of their ordinals. */
  readonly pods: readonly BudgetPod[];
}

/** Reads the fields that budgets need of a pod. */
export function readBudgetPod(object: PodObject): BudgetPod {
  const { metadata, status } = object;
  const pod = readPod(object);
  const controller = metadata?.ownerReferences?.find((owner) => owner.controller);
  return {
    ...pod,
    labels: metadata?.labels ?? {},
    phase: status?.phase ?? "",
    controller: controller && { kind: controller.kind, name: controller.name },
    readySince: readReadySince(pod, status ?? {}),
  };
}

/**
 * The latest of the Ready condition's last change, the start of any container, and the pod's creation. The API
 * server's clock sets the time of creation, the node's clock the others: a node whose clock is behind makes a delay
 * shorter, and never starts it before the pod's creation.
 */
function readReadySince(
  { createdAt }: Pod,
  { conditions = [], containerStatuses = [] }: PodStatus,
): number | undefined {
  const turned = parseTimestamp(conditions.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "");
  if (turned === undefined) return undefined;
  const started = containerStatuses.map(({ state }) => state?.running?.startedAt);
  return Math.max(turned, ...[createdAt, ...started].map((time) => parseTimestamp(time ?? "") ?? turned));
}
