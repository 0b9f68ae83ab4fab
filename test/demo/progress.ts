/** The progress of the group's rollout; pure. */
import { isReady } from "../../reconciler/model/health.ts";
import { readPod } from "../../reconciler/model/pod.ts";
import { isSettledByStatus, readZone, withPods, type ZoneWithPods } from "../../reconciler/model/zone.ts";
import type { KubeObject, StoreEvent } from "../emulator/store.ts";

/**
 * One rollout: from the moment the group is not settled until it is settled again. Times in monotonic
 * milliseconds.
 */
export interface Progress {
  readonly startedAt: number;
  readonly endedAt?: number;
  /** Zones in the order in which their first outdated pod was removed. */
  readonly order: readonly string[];
  /** The number of outdated pods that were removed. */
  readonly replaced: number;
}

/** The zones of `group` with their pods, by name. */
export function readZones(
  statefulSets: readonly KubeObject[],
  pods: readonly KubeObject[],
  group: string,
): ZoneWithPods[] {
  const readPods = pods.map((pod) => readPod(pod));
  return statefulSets
    .map((object) => readZone(object))
    .filter((zone) => zone.group === group)
    .map((zone) => withPods(zone, readPods));
}

export function isSettled(zones: readonly ZoneWithPods[]): boolean {
  return zones.length > 0 && zones.every((zone) => isSettledByStatus(zone) && zone.pods.every(isReady));
}

/** Returns the progress after `event`, with the zones as they are after it. */
export function advance(
  previous: Progress | undefined,
  event: StoreEvent,
  { zones, now }: { readonly zones: readonly ZoneWithPods[]; readonly now: number },
): Progress | undefined {
  if (zones.length === 0) return previous;
  const settled = isSettled(zones);
  const ended = previous?.endedAt !== undefined;
  if (settled && (ended || !previous)) return previous;
  const current = previous && !ended ? previous : { startedAt: now, order: [], replaced: 0 };
  return { ...countReplaced(current, outdatedZone(event, zones)), ...(settled && { endedAt: now }) };
}

function countReplaced(progress: Progress, zone: string | undefined): Progress {
  if (zone === undefined) return progress;
  return { ...progress, replaced: progress.replaced + 1, order: [...new Set([...progress.order, zone])] };
}

/** The zone of the outdated pod that the event removes, if it does. */
function outdatedZone({ type, resource, object }: StoreEvent, zones: readonly ZoneWithPods[]): string | undefined {
  if (type !== "DELETED" || resource !== "pods") return undefined;
  const pod = readPod(object);
  return zones.find((zone) => zone.uid === pod.owner && zone.status.updateRevision !== pod.revision)?.name;
}

/** Milliseconds since the rollout began, or its duration. */
export function elapsed({ startedAt, endedAt }: Progress, now: number): number {
  return (endedAt ?? now) - startedAt;
}

/** The summary line of a completed rollout; undefined if the rollout is not complete, or replaced no pod. */
export function summarise({ order, replaced, startedAt, endedAt }: Progress): string | undefined {
  if (endedAt === undefined || replaced === 0) return undefined;
  const zones = order.length === 1 ? "1 zone" : `${order.length} zones`;
  const pods = replaced === 1 ? "1 pod" : `${replaced} pods`;
  return `Rolled out ${zones} (${order.join(", ")}): ${pods} replaced in ${((endedAt - startedAt) / 1000).toFixed(1)} s`;
}
