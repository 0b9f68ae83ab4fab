/** What is seen of the group, and how far its rollout has come: pure. */
import { readPod } from "../../reconciler/model/pod.ts";
import { isSettledByStatus, readZone, withPods, type ZoneWithPods } from "../../reconciler/model/zone.ts";
import type { KubeObject, StoreEvent } from "../emulator/store.ts";

/** One rollout: from the first moment the group was not settled to the one when it was again. Times in monotonic milliseconds. */
export interface Progress {
  readonly startedAt: number;
  readonly endedAt?: number;
  /** Zones in the order in which their first outdated pod went. */
  readonly order: readonly string[];
  /** Outdated pods that went. */
  readonly replaced: number;
}

/** The zones of `group` with their pods, by name. */
export function readZones(statefulSets: readonly KubeObject[], pods: readonly KubeObject[], group: string): ZoneWithPods[] {
  const seen = pods.map((pod) => readPod(pod));
  return statefulSets
    .map((object) => readZone(object))
    .filter((zone) => zone.group === group)
    .map((zone) => withPods(zone, seen));
}

export function isSettled(zones: readonly ZoneWithPods[]): boolean {
  return zones.length > 0 && zones.every((zone) => isSettledByStatus(zone) && zone.pods.every((pod) => pod.ready));
}

/** The progress after `event`, with the zones as they are then. */
export function advance(
  earlier: Progress | undefined,
  event: StoreEvent,
  zones: readonly ZoneWithPods[],
  now: number,
): Progress | undefined {
  if (zones.length === 0) return earlier;
  const settled = isSettled(zones);
  const over = earlier?.endedAt !== undefined;
  if (settled && (over || !earlier)) return earlier;
  const current = earlier && !over ? earlier : { startedAt: now, order: [], replaced: 0 };
  return { ...count(current, outdatedZone(event, zones)), ...(settled && { endedAt: now }) };
}

function count(progress: Progress, zone: string | undefined): Progress {
  if (zone === undefined) return progress;
  return { ...progress, replaced: progress.replaced + 1, order: [...new Set([...progress.order, zone])] };
}

/** The zone that an outdated pod has just left. */
function outdatedZone({ type, resource, object }: StoreEvent, zones: readonly ZoneWithPods[]): string | undefined {
  if (type !== "DELETED" || resource !== "pods") return undefined;
  const pod = readPod(object);
  return zones.find((zone) => zone.uid === pod.owner && zone.status.updateRevision !== pod.revision)?.name;
}

/** Milliseconds the rollout has taken so far, or took. */
export function elapsed({ startedAt, endedAt }: Progress, now: number): number {
  return (endedAt ?? now) - startedAt;
}

/** The summary line of a rollout that is over; undefined if it replaced nothing. */
export function summarise({ order, replaced, startedAt, endedAt }: Progress): string | undefined {
  if (endedAt === undefined || replaced === 0) return undefined;
  const zones = order.length === 1 ? "1 zone" : `${order.length} zones`;
  const pods = replaced === 1 ? "1 pod" : `${replaced} pods`;
  return `Rolled out ${zones} (${order.join(", ")}): ${pods} replaced in ${((endedAt - startedAt) / 1000).toFixed(1)} s`;
}
