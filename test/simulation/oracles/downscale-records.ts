/**
 * Judges what the downscale Lease of the group records (§4.3, §13.5): before a pod is prepared its downscale is written
 * there, and it goes only once everything that it stands for is known or undone.
 *
 *   a downscale that may still be stored       others lose no pods meanwhile: whoever has the Lease has read it
 *   a pod that is prepared and stays           has a record of its zone, which reaches down to it
 *   a zone whose downscales are never stored   rests after its turn, which the record tells
 *   a time of a downscale that is written     other zones wait for it, also if nobody can read it
 *   a downscale that happened by its record    the record goes once the StatefulSet, or the zone tracker, has its time
 */
import { isDeepStrictEqual } from "node:util";
import { dig, fieldsOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { LEASES, NAMESPACE, ordinalOf } from "../names.ts";
import type { Caller } from "../network.ts";
import { createSince } from "./past.ts";
import { readNote, replicasOf } from "./stored.ts";

export interface DownscaleRecordOptions {
  readonly zones: readonly string[];
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly setOf: (zone: string) => KubeObject | undefined;
  readonly listPods: (zone: string) => readonly KubeObject[];
  /** True for the UID of a pod that has confirmed that it prepares for its shutdown. */
  readonly isPrepared: (uid: string) => boolean;
  /** What the zone tracker tells of a zone. */
  readonly trackedOf: (zone: string) => string | undefined;
  /** By how much a process may misjudge the time. */
  readonly misjudgedMs: number;
  /** Where it does, or people delete its configuration, a downscale may be stored that no webhook has admitted. */
  readonly failsOpen: boolean;
  /** True if all processes have the API server's time. */
  readonly hasTrueClocks: boolean;
}

const LEASE = /^zonewise-downscale-/;
const MIN_TIME = "grafana.com/min-time-between-zones-downscale";
const LAST_DOWNSCALE = "grafana.com/last-downscale";
/** What is recorded as admitted may be stored for so long. */
const STORED_MS = 90_000;
/** A zone is admitted downscales that are never stored for so long, and then waits for so long after the last one. */
const [TURN_MS, REST_MS] = [90_000, 120_000];
/** The time of a downscale is that of its admission: by another clock, and before it is stored. */
const APART_MS = 100_000;

/** Calls `violated` with what happened, in words. */
export function createDownscaleRecords(options: DownscaleRecordOptions) {
  const { zones, violated, now, setOf, listPods, isPrepared, trackedOf } = options;
  const { misjudgedMs, failsOpen, hasTrueClocks } = options;
  /** By zone what the Lease records. */
  let records: Readonly<Record<string, unknown>> = {};
  /** By zone since when its record has been as it is. */
  const recordedAt = new Map<string, number>();
  /** UIDs of pods that were to go since they were prepared, or whose StatefulSet was: nobody has to tell them. */
  const gone = new Set<string>();
  /** By zone when a downscale that is recorded was stored. */
  const shrunkAt = new Map<string, number>();
  /** By zone when its turn began, whatever its record says of that. */
  const turns = new Map<string, number>();
  /** "zone time" of all last downscales that are written, and since when. */
  const times = createSince(now);

  /** The record of the zone as it is; undefined for one of an earlier StatefulSet. */
  function recordOf(zone: string): unknown {
    const record = records[zone];
    return dig(record, "uid") === setOf(zone)?.metadata.uid ? record : undefined;
  }

  /** A downscale of another zone that is recorded since before that time, and may still be stored. */
  function admittedBut(zone: string, before: number): string | undefined {
    const found = zones.find((other) => {
      const record = recordOf(other);
      const set = setOf(other);
      if (other === zone || !set || record === undefined || dig(record, "refused") === true) return false;
      const [generation = 0, to = 0] = [dig(record, "generation"), dig(record, "to")].map(numberOf);
      const isOpen = (set.metadata.generation ?? 0) <= generation && replicasOf(set) > to;
      const leftMs = Date.parse(textOf(dig(record, "at")) ?? "") + STORED_MS - now();
      return isOpen && (recordedAt.get(other) ?? Infinity) < before && leftMs > misjudgedMs;
    });
    return found && `a downscale of ${found} is admitted, and may still be stored`;
  }

  const timesOf = (zone: string): readonly string[] => {
    const annotated = setOf(zone)?.metadata.annotations?.[LAST_DOWNSCALE];
    const tracked = trackedOf(zone);
    const entry = tracked === undefined ? undefined : (/"lastDownscaled":"([^"]*)"/.exec(tracked)?.[1] ?? tracked);
    return [annotated, entry].filter((text) => text !== undefined);
  };

  /** Another zone was scaled down at a time that nobody can read, or too lately for this one (§2.2, §4.7c). */
  function tooEarly(zone: string, by: "webhook" | "reconciler", before: number): string | undefined {
    for (const other of zones.filter((one) => one !== zone && setOf(one))) {
      const { metadata } = setOf(by === "webhook" ? other : zone) ?? {};
      const minTime = metadata?.annotations?.[MIN_TIME] ?? metadata?.labels?.[MIN_TIME];
      // Without it a webhook does not wait, and of reconcilers only the followers do, which know no time to wait for.
      const minMs = 1000 * Number(/^(\d+)s$/.exec(minTime ?? "")?.[1] ?? 0);
      for (const text of timesOf(other).filter((one) => times.before(`${other} ${one}`, before))) {
        const at = Date.parse(text);
        const needsTime = by === "webhook" || minTime !== undefined;
        if (Number.isNaN(at) && needsTime) return `nobody can read when ${other} was scaled down: ${text}`;
        if (now() - at < minMs - (hasTrueClocks ? 0 : misjudgedMs)) return `${other} was scaled down at ${text}`;
      }
    }
    return undefined;
  }

  function noteTimes(zone: string): void {
    const written = new Set(timesOf(zone).map((text) => `${zone} ${text}`));
    for (const key of times.all.keys()) if (key.startsWith(`${zone} `) && !written.has(key)) times.note(key, false);
    for (const key of written) times.note(key, true);
  }

  /** Others have their turn before a zone of which no downscale is ever stored: by its earlier record, and those before. */
  function judgeTurn(zone: string, before: unknown, actor: string): void {
    const after = records[zone];
    const isAdmitted = after !== undefined && dig(after, "refused") !== true && !isReconciler(actor);
    const recorded = sinceOf(zone, before);
    const restsMs = Date.parse(textOf(dig(before, "at")) ?? "") + REST_MS - now();
    if (recorded === undefined || restsMs < 2 * misjudgedMs) {
      if (isAdmitted) turns.set(zone, now());
      else turns.delete(zone);
      return;
    }
    const turnMs = now() - Math.min(Date.parse(recorded), turns.get(zone) ?? Infinity);
    if (after === undefined && isReconciler(actor))
      violated(`${actor} forgets that ${zone} has had its turn, ${restsMs} ms before the next one`);
    const isFurther = isAdmitted && dig(after, "at") !== dig(before, "at");
    if (isFurther && turnMs > TURN_MS + 2 * misjudgedMs)
      violated(`${actor} records a further downscale of ${zone}, whose turn has lasted ${turnMs} ms`);
  }

  /** Since when the zone has had its turn, by its record; undefined if it has none, or its downscale has happened. */
  function sinceOf(zone: string, record: unknown): string | undefined {
    const set = setOf(zone);
    if (!set || dig(record, "uid") !== set.metadata.uid) return undefined;
    const isRefused = dig(record, "refused") === true;
    const [generation = 0, from = 0, to = 0] = ["generation", "from", "to"].map((field) =>
      numberOf(dig(record, field)),
    );
    const changes = (set.metadata.generation ?? 0) - generation;
    const isChanged = changes > 1 || (changes === 1 && replicasOf(set) < from);
    if (replicasOf(set) <= to || (!isRefused && isChanged)) return undefined;
    return textOf(dig(record, "since")) ?? (isRefused ? undefined : textOf(dig(record, "at")));
  }

  function judgePrepared(zone: string, actor: string): void {
    // Pods of a StatefulSet that was made again may be prepared for an earlier one.
    const first = numberOf(dig(records[zone], "prepared", "start")) ?? Infinity;
    for (const { metadata } of listPods(zone)) {
      if (!isPrepared(metadata.uid) || gone.has(metadata.uid) || ordinalOf(metadata.name) >= first) continue;
      gone.add(metadata.uid);
      violated(`${actor} keeps no record of the downscale of ${zone}, and ${metadata.name} is prepared and stays`);
    }
  }

  function judgeTime(zone: string, actor: string): void {
    const at = shrunkAt.get(zone);
    const record = recordOf(zone);
    if (at === undefined || (record !== undefined && dig(record, "refused") !== true)) return;
    const annotated = setOf(zone)?.metadata.annotations?.[LAST_DOWNSCALE];
    const tracked = /\d{4}-[^,"]*/.exec(trackedOf(zone) ?? "")?.[0];
    const times = [annotated, tracked, textOf(dig(record, "earlier"))];
    if (times.some((time) => Date.parse(time ?? "") >= at - APART_MS)) return;
    shrunkAt.delete(zone);
    violated(
      `${actor} keeps no record of the downscale of ${zone}, stored ${now() - at} ms ago, and nothing else tells its time`,
    );
  }

  function onLease({ type, object }: StoreEvent, { actor }: Caller): void {
    const text = type === "DELETED" ? undefined : object.metadata.annotations?.["zonewise/pending-downscales"];
    const earlier = records;
    records = fieldsOf(readNote(text ?? "{}"));
    for (const zone of zones) {
      if (!isDeepStrictEqual(earlier[zone], records[zone])) recordedAt.set(zone, now());
      judgeTurn(zone, earlier[zone], actor);
      judgePrepared(zone, actor);
      judgeTime(zone, actor);
    }
  }

  function onZone({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const { name } = object.metadata;
    const [before, after] = [previous, type === "DELETED" ? undefined : object].map((set) =>
      set ? replicasOf(set) : 0,
    );
    const wanted = type === "MODIFIED" ? (after ?? 0) : 0;
    for (const pod of listPods(name)) if (ordinalOf(pod.metadata.name) >= wanted) gone.add(pod.metadata.uid);
    const timeOf = (set: KubeObject | undefined): string | undefined =>
      textOf(dig(set?.metadata.annotations, LAST_DOWNSCALE));
    const isForgotten = timeOf(previous) !== undefined && timeOf(object) === undefined;
    if (type !== "MODIFIED" || failsOpen || isForgotten || caller?.actor === "gitops")
      return void shrunkAt.delete(name);
    const to = numberOf(dig(recordOf(name), "to"));
    if (after !== undefined && before !== undefined && after < before && to !== undefined && after <= to)
      shrunkAt.set(name, now());
  }

  const isReconciler = (actor: string): boolean => actor.startsWith("reconciler");

  return {
    admittedBut,
    tooEarly,
    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      const { resource, object } = event;
      const { name, namespace } = object.metadata;
      if (namespace !== NAMESPACE) return;
      if (resource === "statefulsets.apps" || resource === "configmaps") for (const zone of zones) noteTimes(zone);
      if (resource === "statefulsets.apps" && zones.includes(name)) onZone(event, caller);
      if (resource === LEASES && LEASE.test(name) && caller) onLease(event, caller);
    },
  };
}
