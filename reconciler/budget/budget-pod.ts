/** Pods and StatefulSets as a budget sees them. */
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import { readPod, type Pod } from "../model/pod.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import type { Labels, Zone } from "../model/zone.ts";

export interface BudgetPod extends Pod {
  readonly labels: Labels;
  readonly phase: string;
  /** The controller that owns it. */
  readonly controller: { readonly kind: string; readonly name: string } | undefined;
  /** When it became ready, milliseconds since the epoch; undefined without a valid `grafana.com/ready-time`. */
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
    readySince: readReadySince(pod, status),
  };
}

/**
 * The annotation is written at intervals: the pod may have been unready between two ticks, and only its status shows
 * that (§13.4).
 */
function readReadySince({ readyTime }: Pod, status: PodObject["status"]): number | undefined {
  const annotated = parseTimestamp(readyTime ?? "");
  if (annotated === undefined) return undefined;
  const transitions = (status?.conditions ?? [])
    .filter(({ type }) => type === "Ready")
    .map((condition) => condition.lastTransitionTime);
  const started = (status?.containerStatuses ?? []).map((container) => container.state?.running?.startedAt);
  return Math.max(annotated, ...[...transitions, ...started].map((time) => parseTimestamp(time ?? "") ?? annotated));
}
