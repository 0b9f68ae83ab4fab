/** Pods and StatefulSets as a budget sees them. */
import type { Pod as PodObject } from "../../infra/kubernetes/resources.ts";
import { readPod, type Pod } from "../model/pod.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import type { Labels, Zone } from "../model/zone.ts";

export interface Member extends Pod {
  readonly labels: Labels;
  readonly phase: string;
  /** The controller that owns it. */
  readonly controller: { readonly kind: string; readonly name: string } | undefined;
  /** Since when it has been ready, milliseconds since the epoch; undefined if `grafana.com/ready-time` does not tell. */
  readonly readySince: number | undefined;
}

export interface BudgetZone extends Zone {
  readonly pods: readonly Member[];
}

export function readMember(object: PodObject): Member {
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

/** The annotation is written at intervals: the pod may have been unready between two looks at it, and only its own status tells (§13.4). */
function readReadySince({ readyTime }: Pod, status: PodObject["status"]): number | undefined {
  const noted = parseTimestamp(readyTime ?? "");
  if (noted === undefined) return undefined;
  const turned = (status?.conditions ?? []).filter(({ type }) => type === "Ready").map((condition) => condition.lastTransitionTime);
  const started = (status?.containerStatuses ?? []).map((container) => container.state?.running?.startedAt);
  return Math.max(noted, ...[...turned, ...started].map((time) => parseTimestamp(time ?? "") ?? noted));
}
