/**
 * Simulates the StatefulSet controller and the kubelets, as if they had time to finish: pods that are gone come back
 * at the update revision, surplus ones go, and every pod that can become ready is ready. A pod that cannot come up
 * stays as it is.
 */
import type { BudgetPod, BudgetZone } from "../budget/budget-pod.ts";
import { readyHealth } from "../model/health.ts";
import type { World } from "./world.ts";

/** The world after that, and the milliseconds that it took; undefined if nothing is left for them to do. */
export function settle(world: World): { readonly world: World; readonly tookMs: number } | undefined {
  const pending = world.zones.filter((zone) => !zone.terminating && isPending(zone));
  if (pending.length === 0) return undefined;
  const waits = pending.filter(isStarting).map(({ uid }) => world.readyMs.get(uid) ?? 0);
  const tookMs = Math.max(0, ...waits);
  const now = world.now + tookMs;
  const zones = world.zones.map((zone) => (pending.includes(zone) ? settleZone(zone, now) : zone));
  return { tookMs, world: { ...world, zones, now } };
}

const canStart = (pod: BudgetPod): boolean => !pod.ready && pod.health.fault === undefined;
const isStarting = (zone: BudgetZone): boolean => zone.pods.some(canStart) || zone.pods.length < zone.replicas;

function isPending(zone: BudgetZone): boolean {
  return !zone.observed || isStarting(zone) || zone.pods.length > zone.replicas || !hasCounts(zone, countPods(zone));
}

function settleZone(zone: BudgetZone, now: number): BudgetZone {
  const there = new Map(zone.pods.map((pod) => [pod.name, pod]));
  const pods = Array.from({ length: zone.replicas }, (_, i) => {
    const name = `${zone.name}-${zone.firstOrdinal + i}`;
    const pod = there.get(name);
    if (!pod || pod.terminating) return createPod(zone, name, { uid: `${pod?.uid ?? name}'`, now });
    return canStart(pod) ? { ...pod, ready: true, health: readyHealth(now), readySince: now } : pod;
  });
  return withCounts({ ...zone, pods, observed: true, observedGeneration: zone.generation });
}

/** The zone with a status that counts its pods. */
export function withCounts(zone: BudgetZone): BudgetZone {
  return { ...zone, status: { ...zone.status, ...countPods(zone) } };
}

function countPods({ pods, status }: BudgetZone) {
  const count = (matches: (pod: BudgetPod) => boolean): number => pods.filter(matches).length;
  const at = (revision: string): number => count((pod) => pod.revision === revision && !pod.terminating);
  return {
    replicas: pods.length,
    ready: count(({ ready }) => ready),
    updated: at(status.updateRevision),
    current: status.currentRevision === status.updateRevision ? 0 : at(status.currentRevision),
  };
}

function hasCounts({ status }: BudgetZone, { replicas, ready, updated }: ReturnType<typeof countPods>): boolean {
  return status.replicas === replicas && status.ready === ready && status.updated === updated;
}

function createPod(
  zone: BudgetZone,
  name: string,
  { uid, now }: { readonly uid: string; readonly now: number },
): BudgetPod {
  return {
    kind: "Pod",
    namespace: zone.namespace,
    name,
    uid,
    resourceVersion: "",
    revision: zone.status.updateRevision,
    owner: zone.uid,
    madeBy: zone.name,
    createdAt: undefined,
    health: readyHealth(now),
    terminating: false,
    ready: true,
    readyAfterMs: undefined,
    restarts: 0,
    labels: zone.podLabels,
    phase: "Running",
    controller: { kind: "StatefulSet", name: zone.name },
    readySince: now,
  };
}
