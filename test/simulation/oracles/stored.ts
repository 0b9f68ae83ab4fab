/** What oracles read of pods and StatefulSets as they are stored. */
import { dig, type Fields, fieldsOf, isTrue, textOf } from "../../emulator/objects.ts";
import type { KubeObject, Store } from "../../emulator/store.ts";
import { BUDGET, BUDGETS, LEASES, NAMESPACE } from "../names.ts";

export const replicasOf = (set: KubeObject | undefined): number => Number(dig(set, "spec", "replicas") ?? 1);
const isEnding = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;
export const isReady = (pod: KubeObject): boolean => !isEnding(pod) && isTrue(pod, "Ready");
/** True of a pod that the StatefulSet controls. */
export const isOf = ({ metadata }: KubeObject, set: KubeObject | undefined): boolean =>
  set !== undefined && metadata.ownerReferences?.some(({ uid }) => uid === set.metadata.uid) === true;
/** True of a pod that its StatefulSet has left behind: it is of the zone of its name, until it is adopted or gone. */
export const isLeftBehind = ({ metadata }: KubeObject): boolean => (metadata.ownerReferences ?? []).length === 0;
/** How many pods a zone without a StatefulSet should have: up to its last place, and as many as others have. */
export function sizeLeft(places: readonly number[], others: readonly number[]): number {
  const sizes = others.filter((size) => size > 0);
  return Math.max(sizes.length > 0 ? Math.min(...sizes) : 0, ...places.map((place) => place + 1));
}
/** What is reserved, by pod or by downscale: on a budget, or on the Lease beside it. */
export function reservedOn(object: KubeObject | undefined): Fields {
  const note = textOf(object?.metadata.annotations?.["zonewise/disrupted-pods"]);
  return fieldsOf(note === undefined ? dig(object, "status", "disruptedPods") : readNote(note));
}

/** What is reserved on the budget: where its definition has no field for it, on a Lease beside it. */
export function reservationsOf(store: Pick<Store, "get">, namespace = NAMESPACE): Fields {
  const budget = store.get(BUDGETS, namespace, BUDGET);
  const lease = budget && store.get(LEASES, namespace, `zonewise-budget-${budget.metadata.uid}`);
  return { ...reservedOn(budget), ...reservedOn(lease) };
}

/** The zone and the first ordinal that a reserved downscale is about; undefined for what is reserved for a pod. */
export function downscaleOf(key: string, entry: unknown): { readonly zone: string; readonly from: number } | undefined {
  if (dig(entry, "kind") !== "downscale") return undefined;
  return { zone: key.slice(0, key.lastIndexOf("/")), from: Number(dig(entry, "from")) };
}

/** What somebody else has written there is nothing. */
function readNote(note: string): unknown {
  try {
    return JSON.parse(note);
  } catch {
    return undefined;
  }
}

/** True for a zone that must not shrink, by its label. */
export const isPinned = (set: KubeObject | undefined): boolean =>
  set?.metadata.labels?.["grafana.com/no-downscale"] === "true";
