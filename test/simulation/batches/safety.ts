/**
 * What must never happen where batches grow: as many pods of a zone are missing by its rollout as one more than half of
 * those that have come up with the template allow, from one on. Judged from the store's history alone.
 *
 *   pods of the template that came up, none of them in trouble   0   1 2   3 4 5 6   7 …
 *   pods that may be missing                                     1   2     4         8
 */
import { dig, isTrue, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE, ordinalOf, zoneOf } from "../names.ts";
import type { Caller } from "../network.ts";
import type { Shape } from "../shape.ts";

export interface BatchSafetyOptions {
  readonly shape: Pick<Shape, "zones" | "maxUnavailable">;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly setOf: (zone: string) => KubeObject | undefined;
  readonly listPods: (zone: string) => readonly KubeObject[];
  /** How many milliseconds ago what this actor does now may have been decided. */
  readonly decidedMs: (actor: string) => number;
}

export interface BatchSafety {
  readonly onEvent: (event: StoreEvent, caller: Caller | undefined) => void;
}

/** What the pods of a zone told at a time. */
interface Told {
  readonly at: number;
  readonly revision: string;
  /** Pods of this revision that came up, since the last one that has had trouble; 0 while one has. */
  readonly healthy: number;
}

/** Pods tell whole seconds: of one that was ready for less nobody knows that it was. */
const UNNOTICED_MS = 1000;
/** So much of the past is kept: longer than anything was decided ago. */
const KEPT_MS = 200_000;

export function createBatchSafety(options: BatchSafetyOptions): BatchSafety {
  const { shape, violated, now, setOf, listPods, decidedMs } = options;
  const told = new Map<string, Told[]>();
  /** Since when a pod has been ready, by its UID. */
  const readySince = new Map<string, number>();
  /** UIDs of pods that the rollout has taken, by their names, until another pod of the name is ready. */
  const taken = new Map<string, string>();
  /** Pods of the template that are not ready, though they were, and since when: by their UIDs. */
  const lostSince = new Map<string, number>();

  function look(zone: string): void {
    const set = setOf(zone);
    const revision = textOf(dig(set, "status", "updateRevision")) ?? "";
    const own = listPods(zone).filter((pod) => revisionOf(pod) === revision && isStaying(pod));
    const troubled = own.filter((pod) => isLost(pod) || restartsOf(pod) > 0);
    const since = Math.max(-Infinity, ...troubled.map(cameUpAt));
    const healthy = own.filter((pod) => !troubled.includes(pod) && isTrue(pod, "Ready") && cameUpAt(pod) > since);
    const before = told.get(zone) ?? [];
    const last = before.at(-1);
    if (last?.revision === revision && last.healthy === healthy.length) return;
    const kept = before.filter((_, i) => (before[i + 1]?.at ?? Infinity) > now() - KEPT_MS);
    told.set(zone, [...kept, { at: now(), revision, healthy: healthy.length }]);
  }

  const isLost = (pod: KubeObject): boolean => lostSince.has(pod.metadata.uid) || isCrashing(pod);
  /** One that is not up ends the row for now. */
  const cameUpAt = ({ metadata: { uid } }: KubeObject): number =>
    lostSince.has(uid) ? Infinity : (readySince.get(uid) ?? Infinity);

  function note({ type, object }: StoreEvent): void {
    const { uid, name } = object.metadata;
    if (type === "DELETED") {
      readySince.delete(uid);
      lostSince.delete(uid);
    } else if (isTrue(object, "Ready")) {
      // Another row begins with it once it is ready again.
      if (!readySince.has(uid) || lostSince.has(uid)) readySince.set(uid, now());
      lostSince.delete(uid);
      if (isStaying(object) && taken.get(name) !== uid) taken.delete(name);
    } else if (now() - (readySince.get(uid) ?? -Infinity) < UNNOTICED_MS) readySince.delete(uid);
    else if (readySince.has(uid) && !lostSince.has(uid)) lostSince.set(uid, now());
  }

  function onTaken(pod: KubeObject, zone: string, { actor }: Caller): void {
    taken.set(pod.metadata.name, pod.metadata.uid);
    const since = now() - decidedMs(actor);
    const replicas = Number(dig(setOf(zone), "spec", "replicas") ?? 0);
    const history = told.get(zone) ?? [];
    // What was decided then was about another template than the pod's own.
    const views = history.filter(
      ({ revision }, i) => revision !== revisionOf(pod) && (history[i + 1]?.at ?? Infinity) >= since,
    );
    if (views.length === 0) return;
    const healthy = Math.max(...views.map((view) => view.healthy));
    const allowed = Math.min(shape.maxUnavailable, limitAfter(healthy));
    const byRollout = [...taken.keys()].filter((name) => zoneOf(name) === zone && ordinalOf(name) < replicas);
    const [latest] = views.slice(-1);
    const lost = listPods(zone).filter(
      (one) =>
        revisionOf(one) === latest?.revision &&
        isStaying(one) &&
        (lostSince.get(one.metadata.uid) ?? Infinity) < since &&
        !taken.has(one.metadata.name),
    );
    const missing = [...byRollout, ...lost.map(({ metadata }) => metadata.name)];
    if (missing.length > allowed)
      violated(
        `${missing.length} pods of ${zone} are missing by its growing batches (${missing.join(", ")}), ` +
          `${allowed} are allowed after ${healthy} that came up: ${pod.metadata.name} is taken by ${actor}`,
      );
  }

  return {
    onEvent(event, caller) {
      const { resource, type, object, previous } = event;
      const { name, namespace, deletionTimestamp } = object.metadata;
      if (namespace !== NAMESPACE || (resource !== "pods" && resource !== "statefulsets.apps")) return;
      const zone = resource === "pods" ? zoneOf(name) : name;
      if (!shape.zones.includes(zone)) return;
      if (resource === "pods") note(event);
      const begins = type === "MODIFIED" && deletionTimestamp !== undefined && !previous?.metadata.deletionTimestamp;
      if (
        resource === "pods" &&
        begins &&
        previous &&
        isTrue(previous, "Ready") &&
        caller?.actor.startsWith("reconciler")
      )
        onTaken(previous, zone, caller);
      look(zone);
    },
  };
}

function limitAfter(healthy: number): number {
  let limit = 1;
  while (2 * limit <= healthy + 1) limit *= 2;
  return limit;
}

const isStaying = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined;
const revisionOf = ({ metadata }: KubeObject): string => metadata.labels?.["controller-revision-hash"] ?? "";
const containerOf = (pod: KubeObject): unknown => {
  const statuses = dig(pod, "status", "containerStatuses");
  return Array.isArray(statuses) ? statuses[0] : undefined;
};
const restartsOf = (pod: KubeObject): number => Number(dig(containerOf(pod), "restartCount") ?? 0);
const isCrashing = (pod: KubeObject): boolean =>
  textOf(dig(containerOf(pod), "state", "waiting", "reason")) === "CrashLoopBackOff";
