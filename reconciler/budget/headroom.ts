/**
 * Counts the pods of a zone that may be evicted now: the decision of an eviction is repeated until it denies (§5.10).
 */
import { readyHealth } from "../model/health.ts";
import { MAX_ZONES } from "../model/too-many-zones.ts";
import type { Zone } from "../model/zone.ts";
import type { BudgetPod, BudgetZone } from "./budget-pod.ts";
import { decideEviction } from "./decide-eviction.ts";
import type { Reservations } from "./reservation.ts";
import { type EvictionSnapshot, isReady } from "./unavailability.ts";
import type { Budget } from "./zpdb.ts";

export type HeadroomView = Pick<EvictionSnapshot, "now" | "budget" | "zones" | "reservations">;

/** Evictions of a zone that are counted at most: more are not of interest, and each costs a pass over all pods. */
export const MAX_COUNTED = 100;
/** In partition mode each pod is asked about, and each decision reads all pods of all zones. */
const MAX_PODS_BY_PARTITION = 1000;
/** Replicas may be any number, and each becomes an object. */
const MAX_PODS = 10_000;

/**
 * Evictions of ready pods of the zone that would be allowed one after the other, with none of them back; 100 stands for
 * more. Undefined with more than 32 zones, and with more than 10,000 pods, in partition mode 1,000.
 */
export function countAllowedEvictions(zone: BudgetZone, view: HeadroomView): number | undefined {
  const { budget, zones } = view;
  const podsOfZones = zones.map(({ pods }) => pods.length);
  if (!isCountable(budget, podsOfZones)) return undefined;
  const reservations = { ...view.reservations };
  const time = new Date(view.now).toISOString();
  let allowed = 0;
  for (const pod of zone.pods.filter((one) => isReady(one, view))) {
    if (allowed === MAX_COUNTED) break;
    const { reason } = decideEviction({ ...view, reservations, pod });
    if (reason === "Allowed") {
      reservations[pod.name] = { kind: "eviction", uid: pod.uid, pinned: true, time, by: "" };
      allowed++;
    } else if (!budget.partitionOf) break;
  }
  return allowed;
}

/** True if a budget of zones with so many pods each is within the bounds of the count. */
export function isCountable({ partitionOf }: Pick<Budget, "partitionOf">, podsOfZones: readonly number[]): boolean {
  const pods = podsOfZones.reduce((sum, one) => sum + one, 0);
  return podsOfZones.length <= MAX_ZONES && pods <= (partitionOf ? MAX_PODS_BY_PARTITION : MAX_PODS);
}

/** The pods of a zone that should be there, or still are. */
export const expectedPods = ({ replicas, status }: Pick<Zone, "replicas" | "status">): number =>
  Math.max(replicas, status.replicas);

/** True if all its pods, and no others, exist and are ready: only then does the status tell which pods are ready. */
export const isComplete = ({ replicas, status }: Pick<Zone, "replicas" | "status">): boolean =>
  status.replicas === replicas && status.ready === replicas;

/**
 * The zone with the pods that its status counts. The status does not say which of them are not ready; the reserved
 * ones count as not ready first. In zone mode it does not matter which.
 */
export function withCountedPods(zone: Zone, reservations: Reservations): BudgetZone {
  const names = Array.from({ length: expectedPods(zone) }, (_, i) => `${zone.name}-${zone.firstOrdinal + i}`);
  const isReserved = (name: string): boolean => reservations[name] !== undefined;
  const inOrder = [...names.filter((name) => !isReserved(name)), ...names.filter(isReserved)];
  const ready = new Set(inOrder.slice(0, zone.status.ready));
  const pods = names.map((name) => countedPod(name, zone, { uid: reservations[name]?.uid, ready: ready.has(name) }));
  return { ...zone, pods };
}

function countedPod(
  name: string,
  { namespace, uid: owner, name: statefulSet, labels, status }: Zone,
  { uid = name, ready }: { readonly uid: string | undefined; readonly ready: boolean },
): BudgetPod {
  return {
    kind: "Pod",
    namespace,
    name,
    uid,
    resourceVersion: "",
    revision: status.updateRevision,
    owner,
    madeBy: statefulSet,
    createdAt: undefined,
    health: { ...readyHealth(undefined), ...(!ready && { state: "recovering" }) },
    terminating: false,
    ready,
    readyAfterMs: undefined,
    restarts: 0,
    labels,
    phase: "Running",
    controller: { kind: "StatefulSet", name: statefulSet },
    readySince: undefined,
  };
}
