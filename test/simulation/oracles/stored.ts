/** What oracles read of pods and StatefulSets as they are stored. */
import { dig, type Fields, fieldsOf, isTrue, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { GROUP, ordinalOf } from "../names.ts";

/** True of a budget that selects the group's pods. */
export const selectsGroup = (budget: KubeObject): boolean =>
  (dig(budget, "spec", "selector", "matchLabels", "app") ?? GROUP) === GROUP;
export const replicasOf = (set: KubeObject | undefined): number => Number(dig(set, "spec", "replicas") ?? 1);
export const isEnding = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;
export const isReady = (pod: KubeObject): boolean => !isEnding(pod) && isTrue(pod, "Ready");
/** True of a pod that the StatefulSet controls. */
export const isOf = ({ metadata }: KubeObject, set: KubeObject | undefined): boolean =>
  set !== undefined && metadata.ownerReferences?.some(({ uid }) => uid === set.metadata.uid) === true;
/** True of a pod that its StatefulSet has left behind: it is of the zone of its name, until it is adopted or gone. */
export const isLeftBehind = ({ metadata }: KubeObject): boolean => (metadata.ownerReferences ?? []).length === 0;
/** The ordinals that a zone without a StatefulSet should have: those up to its last pod, and as many as others have. */
export function sizeLeft(pods: readonly KubeObject[], others: readonly number[]): number {
  const sizes = others.filter((size) => size > 0);
  return Math.max(sizes.length > 0 ? Math.min(...sizes) : 0, ...pods.map((pod) => ordinalOf(pod.metadata.name) + 1));
}
/** True for a pod that ends and whose StatefulSet was deleted, or made anew, without it: no other one takes it. */
export const isOrphan = (pod: KubeObject, set: KubeObject | undefined): boolean => isEnding(pod) && !isOf(pod, set);

/** True of a pod of which a container is ready, whatever else it waits for. */
export const hasWorking = (pod: KubeObject): boolean =>
  !isEnding(pod) && listOf(dig(pod, "status", "containerStatuses")).some((one) => dig(one, "ready") === true);

/** The UID of the budget whose reservations a Lease keeps, by the Lease's name; undefined for any other Lease. */
export const budgetOfLease = (name: string): string | undefined => /^zonewise-budget-(.+)$/.exec(name)?.[1];

/** What is reserved, by pod or by downscale: on a budget, or on the Lease beside it. */
export function reservedOn(object: KubeObject | undefined): Fields {
  const note = textOf(object?.metadata.annotations?.["zonewise/disrupted-pods"]);
  return fieldsOf(note === undefined ? dig(object, "status", "disruptedPods") : readNote(note));
}

/** What somebody else has written there is nothing. */
export function readNote(note: string): unknown {
  try {
    return JSON.parse(note);
  } catch {
    return undefined;
  }
}

/** Cannot come up by itself: it is replaced at once. */
export const isBroken = (pod: KubeObject): boolean =>
  dig(pod, "status", "phase") === "Failed" ||
  /"reason":"(?:\w*BackOff|Err\w+|\w+Error|InvalidImageName|Unschedulable)"/.test(JSON.stringify(pod["status"] ?? {}));
/** True for a zone that must not shrink, by its label. */
export const isPinned = (set: KubeObject | undefined): boolean =>
  set?.metadata.labels?.["grafana.com/no-downscale"] === "true";
