/** What oracles read of pods and StatefulSets as they are stored. */
import { dig, isTrue } from "../emulator/objects.ts";
import type { KubeObject } from "../emulator/store.ts";
import { GROUP } from "./names.ts";

/** True of a budget that selects the group's pods. */
export const selectsGroup = (budget: KubeObject): boolean =>
  (dig(budget, "spec", "selector", "matchLabels", "app") ?? GROUP) === GROUP;
export const replicasOf = (set: KubeObject | undefined): number => Number(dig(set, "spec", "replicas") ?? 1);
export const isEnding = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;
export const isReady = (pod: KubeObject): boolean => !isEnding(pod) && isTrue(pod, "Ready");
/** True for a pod that ends and whose StatefulSet was deleted: no other one takes it. */
export const isOrphan = (pod: KubeObject, set: KubeObject | undefined): boolean =>
  isEnding(pod) && !(pod.metadata.ownerReferences ?? []).some(({ uid }) => uid === set?.metadata.uid);
