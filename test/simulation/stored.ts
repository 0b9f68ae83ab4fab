/** What oracles read of pods and StatefulSets as they are stored. */
import { dig, isTrue } from "../emulator/objects.ts";
import type { KubeObject } from "../emulator/store.ts";

export const replicasOf = (set: KubeObject | undefined): number => Number(dig(set, "spec", "replicas") ?? 1);
export const isEnding = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;
export const isReady = (pod: KubeObject): boolean => !isEnding(pod) && isTrue(pod, "Ready");
/** True for a pod that ends and whose StatefulSet was deleted without it: no other one takes it. */
export const isOrphan = (pod: KubeObject): boolean =>
  isEnding(pod) && (pod.metadata.ownerReferences ?? []).length === 0;
/** True for a pod that ends and whose StatefulSet was made again since: it is none of the new one. */
export const isOfEarlier = (pod: KubeObject, set: KubeObject | undefined): boolean =>
  isEnding(pod) &&
  set !== undefined &&
  !(pod.metadata.ownerReferences ?? []).some(({ uid }) => uid === set.metadata.uid);
