/**
 * Since when zones lose pods, have lost them or are about to, as their pods and StatefulSets show it: what keeps another
 * zone from losing pods (§1.7, §2.3, §4.7). Whoever has read it and has not asked again later knows it.
 */
import { dig, isTrue } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE, ordinalOf, zoneOf } from "../names.ts";
import { isBroken, isEnding, isLeftBehind, isOf, replicasOf, sizeLeft } from "./stored.ts";

export type Loss =
  | "ends"
  | "is missing"
  | "is one more than its zone should have"
  | "has not come up yet"
  | "is no longer ready"
  | "is outdated"
  | "is outdated and not ready"
  | "may still come up with a new template"
  | "has not observed its spec"
  | "has fewer ready pods than it should have";

/** Loses pods now, by a rollout or by a downscale that is under way. */
export const LEAVING: readonly Loss[] = [
  "ends",
  "is missing",
  "is one more than its zone should have",
  "has not come up yet",
  "has not observed its spec",
];
/** Has pods that do not serve, whatever the reason is. */
export const UNREADY: readonly Loss[] = [...LEAVING, "is no longer ready"];

interface Lost {
  readonly zone: string;
  readonly loss: Loss;
  /** The pod, or the zone itself. */
  readonly name: string;
  readonly since: number;
}

export interface LossOptions {
  readonly zones: readonly string[];
  readonly now: () => number;
  readonly listPods: (zone: string) => readonly KubeObject[];
}

export interface LossQuery {
  /** The zone that is not looked at, or the only one that is. */
  readonly but?: string;
  readonly of?: string;
  readonly losses: readonly Loss[];
  /** Missing pods of this ordinal and of later ones are nobody's loss: their zone is to lose them as well. */
  readonly under?: number | undefined;
  /** It has been so since before that time. */
  readonly before: number;
  /** Also what nobody waits for any more. */
  readonly isEver?: boolean;
}

/** A pod that was ready for a shorter time may count as one that never was: its times have whole seconds. */
const SERVED_MS = 2500;
/** A pod that does not come up for longer may be given up: nobody waits for it any more. */
const GIVEN_UP_MS = 280_000;
/** For which a pod that was ready may recover by itself, at least. */
const RECOVERS_MS = 280_000;

const statusOf = (set: KubeObject, field: string): number => Number(dig(set, "status", field) ?? 0);
const revisionOf = ({ metadata }: KubeObject): string | undefined => metadata.labels?.["controller-revision-hash"];

export function createLosses({ zones, now, listPods }: LossOptions) {
  const sets = new Map<string, KubeObject>();
  /** By zone, and in it by "name loss". */
  const lost = new Map<string, Map<string, Lost>>();
  /** By UID since when a pod has been ready, and when one that is not any more was so last. */
  const [readySince, readyUntil] = [new Map<string, number>(), new Map<string, number>()];
  /** By zone since when nothing of it is lost, and its status says so. */
  const wholeSince = new Map<string, number>();
  /** By zone since when no pod of it has been outdated. */
  const updatedSince = new Map<string, number>();
  /** By UID since when a pod has served: it is ready, or was so until lately and may recover. */
  const servesSince = new Map<string, number>();

  const hasServed = ({ metadata: { uid, creationTimestamp } }: KubeObject): boolean =>
    (readySince.has(uid) ? now() : (readyUntil.get(uid) ?? -Infinity)) - Date.parse(creationTimestamp) > SERVED_MS;

  function note({ type, object }: StoreEvent): void {
    const { uid } = object.metadata;
    const isReady = type !== "DELETED" && isTrue(object, "Ready");
    if (isReady && !readySince.has(uid)) readySince.set(uid, now());
    if (!isReady && readySince.delete(uid)) readyUntil.set(uid, now());
    const isThere = type !== "DELETED" && !isEnding(object);
    keep(servesSince, uid, isThere && (isReady || (hasServed(object) && !isBroken(object))));
  }

  function keep(since: Map<string, number>, what: string, holds: boolean): void {
    if (!holds) since.delete(what);
    else if (!since.has(what)) since.set(what, now());
  }

  function lossesOf(pod: KubeObject, set: KubeObject): readonly Loss[] {
    if (!isOf(pod, set) && !isLeftBehind(pod)) return [];
    const wasReady = readySince.has(pod.metadata.uid) || readyUntil.has(pod.metadata.uid);
    const isOwn = ordinalOf(pod.metadata.name) < replicasOf(set);
    const isNew = revisionOf(pod) === dig(set, "status", "updateRevision");
    const isRecorded = dig(set, "status", "currentRevision") === dig(set, "status", "updateRevision");
    const found: Loss[] = [];
    // What comes after it has the new template.
    const tried = isRecorded || !(isOwn || hasServed(pod)) ? [] : (["may still come up with a new template"] as const);
    if (isEnding(pod)) return [...(hasServed(pod) ? (["ends"] as const) : []), ...tried];
    if (!isOwn)
      return hasServed(pod) && statusOf(set, "replicas") > replicasOf(set)
        ? ["is one more than its zone should have"]
        : [];
    if (!isTrue(pod, "Ready")) found.push(wasReady ? "is no longer ready" : "has not come up yet");
    if (!isNew && !isTrue(pod, "Ready")) found.push("is outdated and not ready");
    if (!isNew && statusOf(set, "updatedReplicas") < replicasOf(set)) found.push("is outdated");
    if (isNew && !isTrue(pod, "Ready")) found.push(...tried);
    return found;
  }

  function ofSet(set: KubeObject): readonly Loss[] {
    return [
      ...(statusOf(set, "observedGeneration") < (set.metadata.generation ?? 0)
        ? (["has not observed its spec"] as const)
        : []),
      ...(statusOf(set, "readyReplicas") < replicasOf(set)
        ? (["has fewer ready pods than it should have"] as const)
        : []),
    ];
  }

  /** The ordinals of a zone that have no pod. */
  function missingOf(set: KubeObject, pods: readonly KubeObject[]): readonly number[] {
    if (isEnding(set)) return [];
    const there = new Set(pods.map(({ metadata }) => ordinalOf(metadata.name)));
    return Array.from({ length: replicasOf(set) }, (_, ordinal) => ordinal).filter((ordinal) => !there.has(ordinal));
  }

  /** What pods of a zone show whose StatefulSet is gone: no other one makes them again. */
  function lossesLeft(pod: KubeObject): readonly Loss[] {
    if (isEnding(pod)) return hasServed(pod) ? ["ends"] : [];
    if (isTrue(pod, "Ready")) return [];
    return readyUntil.has(pod.metadata.uid) ? ["is no longer ready"] : ["has not come up yet"];
  }

  function missingLeft(pods: readonly KubeObject[]): readonly number[] {
    const there = new Set(pods.map(({ metadata }) => ordinalOf(metadata.name)));
    const size = sizeLeft(pods, [...sets.values()].map(replicasOf));
    return Array.from({ length: size }, (_, ordinal) => ordinal).filter((ordinal) => !there.has(ordinal));
  }

  function look(zone: string): void {
    const set = sets.get(zone);
    const before = lost.get(zone);
    const found = new Map<string, Lost>();
    const add = (name: string, id: string, losses: readonly Loss[]): void => {
      for (const loss of losses) {
        const key = `${id} ${loss}`;
        found.set(key, before?.get(key) ?? { zone, loss, name, since: now() });
      }
    };
    const pods = set ? listPods(zone) : [];
    if (set) add(zone, set.metadata.uid, ofSet(set));
    if (set) for (const pod of pods) add(pod.metadata.name, pod.metadata.uid, lossesOf(pod, set));
    if (set)
      for (const ordinal of missingOf(set, pods))
        add(`${zone}-${ordinal}`, `${set.metadata.uid} ${ordinal}`, ["is missing"]);
    const left = set ? [] : listPods(zone).filter(isLeftBehind);
    for (const pod of left) add(pod.metadata.name, pod.metadata.uid, lossesLeft(pod));
    if (left.length > 0)
      for (const ordinal of missingLeft(left)) add(`${zone}-${ordinal}`, `left ${ordinal}`, ["is missing"]);
    lost.set(zone, found);
    const isOld = (pod: KubeObject): boolean => revisionOf(pod) !== dig(set, "status", "updateRevision");
    keep(updatedSince, zone, set !== undefined && !pods.some(isOld));
    const isWhole =
      set !== undefined &&
      pods.length === replicasOf(set) &&
      statusOf(set, "replicas") === replicasOf(set) &&
      [...found.values()].every(({ loss }) => loss === "is outdated");
    keep(wholeSince, zone, isWhole);
  }

  return {
    onEvent(event: StoreEvent): void {
      const { type, resource, object } = event;
      const { name, namespace } = object.metadata;
      const zone = resource === "pods" ? zoneOf(name) : name;
      if (namespace !== NAMESPACE || !zones.includes(zone)) return;
      if (resource === "pods") note(event);
      else if (resource !== "statefulsets.apps") return;
      else if (type === "DELETED") sets.delete(zone);
      else sets.set(zone, object);
      look(zone);
    },
    /** What zones have been losing since before that time, in words; undefined for nothing. */
    find({ but, of, losses, under = Infinity, before, isEver = false }: LossQuery): string | undefined {
      const isNobodys = ({ loss, name }: Lost): boolean => loss === "is missing" && ordinalOf(name) >= under;
      const found = [...lost]
        .flatMap(([zone, ones]) => (zone === but || zone !== (of ?? zone) ? [] : [...ones.values()]))
        .filter((one) => losses.includes(one.loss) && !isNobodys(one))
        .find(({ since }) => since < before && (isEver || since > now() - GIVEN_UP_MS));
      return found && `${found.name} ${found.loss}`;
    },
    /** True if the zone has had all its pods ready since before that time, outdated or not. */
    isWhole: (zone: string, before: number): boolean => (wholeSince.get(zone) ?? Infinity) < before,
    /** True if a pod of the zone has been outdated or ill since then, or at any time since. */
    hasOutdated: (zone: string): boolean =>
      [...(lost.get(zone)?.values() ?? [])].some(({ loss }) => loss === "is outdated"),
    /** True if no pod of the zone has been outdated since before that time. */
    isUpdated: (zone: string, before: number): boolean => (updatedSince.get(zone) ?? Infinity) < before,
    /** True if a pod that goes as the zone gets so many replicas has served since before that time. */
    takesServing(zone: string, replicas: number, before: number): boolean {
      const set = sets.get(zone);
      const serves = ({ metadata: { uid } }: KubeObject): boolean =>
        (servesSince.get(uid) ?? Infinity) < before &&
        (readySince.has(uid) || now() - (readyUntil.get(uid) ?? -Infinity) < RECOVERS_MS);
      const goes = ({ metadata }: KubeObject): boolean => ordinalOf(metadata.name) >= replicas;
      return set !== undefined && listPods(zone).some((pod) => goes(pod) && isOf(pod, set) && serves(pod));
    },
  };
}

export type Losses = ReturnType<typeof createLosses>;
