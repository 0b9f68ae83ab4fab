/** What oracles read of pods and StatefulSets as they are stored. */
import { dig, isTrue } from "../emulator/objects.ts";
import type { KubeObject } from "../emulator/store.ts";

export const replicasOf = (set: KubeObject | undefined): number => Number(dig(set, "spec", "replicas") ?? 1);
export const isEnding = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;
export const isReady = (pod: KubeObject): boolean => !isEnding(pod) && isTrue(pod, "Ready");
/** True for a pod that ends and whose StatefulSet was deleted without it: no other one takes it. */
export const isOrphan = (pod: KubeObject): boolean =>
  isEnding(pod) && (pod.metadata.ownerReferences ?? []).length === 0;
/** Cannot come up by itself: it is replaced at once. */
export const isBroken = (pod: KubeObject): boolean =>
  dig(pod, "status", "phase") === "Failed" ||
  /"reason":"(?:\w*BackOff|Err\w+|\w+Error|InvalidImageName|Unschedulable)"/.test(JSON.stringify(pod["status"] ?? {}));
/** True for a zone that must not shrink, by its label. */
export const isPinned = (set: KubeObject | undefined): boolean =>
  set?.metadata.labels?.["grafana.com/no-downscale"] === "true";
