/**
 * What must never happen where zones have windows: outside them no reconciler takes a pod that is ready, but for the way
 * back of a template. Judged from the store alone, by the minutes that the window was drawn with.
 */
import { dig, fieldsOf, isTrue, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE, zoneOf } from "../names.ts";
import type { Caller } from "../network.ts";
import { FREEZES, OF_MINUTES, OPEN_MINUTES, PREFIX, SPOILT, WINDOW } from "./shape.ts";

export interface WindowSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly setOf: (zone: string) => KubeObject | undefined;
  /** How many milliseconds ago what this actor does now may have been decided. */
  readonly decidedMs: (actor: string) => number;
}

export interface WindowSafety {
  readonly onEvent: (event: StoreEvent, caller: Caller | undefined) => void;
}

/** By how much a process may misjudge the time, a call on its way included. */
const MISJUDGED_MS = 45_000;
/** So much of the past is kept: longer than anything was decided ago. */
const KEPT_MS = 200_000;
const MINUTE_MS = 60_000;

/** What a zone said from a time on. */
interface Said {
  readonly from: number;
  readonly text: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** The revision that all its pods get without a question; undefined if it is on no way back. */
  readonly back: string | undefined;
}

export function createWindowSafety({ violated, now, setOf, decidedMs }: WindowSafetyOptions): WindowSafety {
  const said = new Map<string, Said[]>();

  function onSet({ type, object }: StoreEvent): void {
    const { name, annotations: all = {} } = object.metadata;
    const annotations = Object.fromEntries(Object.entries(all).filter(([key]) => key.startsWith(PREFIX)));
    const { currentRevision, updateRevision } = fieldsOf(dig(object, "status"));
    const back = currentRevision === updateRevision ? textOf(updateRevision) : undefined;
    const text = JSON.stringify([type, annotations, back]);
    const before = said.get(name) ?? [];
    if (before.at(-1)?.text === text) return;
    const kept = before.filter((_, i) => (before[i + 1]?.from ?? Infinity) > now() - KEPT_MS);
    said.set(name, [...kept, { from: now(), text, annotations, back }]);
  }

  /** Closed by all that the zone has said since this may have been decided. */
  function onTaken(pod: KubeObject, zone: string, { actor: by }: Caller): void {
    const since = now() - decidedMs(by);
    const all = said.get(zone) ?? [];
    const seen = all.filter((_, i) => (all[i + 1]?.from ?? Infinity) >= since);
    const revision = pod.metadata.labels?.["controller-revision-hash"];
    // The StatefulSet was made anew around it.
    const isForeign = Date.parse(pod.metadata.creationTimestamp) < Date.parse(createdAt(zone));
    const why = seen.map(({ annotations, back }) =>
      back !== undefined && back !== revision && !isForeign ? undefined : startBlocker(annotations),
    );
    const [first] = why;
    if (first !== undefined && !why.includes(undefined)) violated(`${pod.metadata.name} is taken by ${by} ${first}`);
  }

  const createdAt = (zone: string): string => setOf(zone)?.metadata.creationTimestamp ?? "";

  function startBlocker(annotations: Said["annotations"]): string | undefined {
    if (SPOILT.some((spoilt) => Object.entries(spoilt).every(([name, text]) => annotations[name] === text)))
      return "by a window that nobody can read";
    if (isFrozen(annotations[FREEZES])) return "in a freeze";
    return isClosed(annotations) ? "outside the window" : undefined;
  }

  function isFrozen(freeze: string | undefined): boolean {
    const [from = Number.NaN, to = Number.NaN] = (freeze ?? "").split("/").map((time) => Date.parse(time));
    return now() - from > MISJUDGED_MS && to - now() > MISJUDGED_MS;
  }

  function isClosed(annotations: Said["annotations"]): boolean {
    const ms = now() % (OF_MINUTES * MINUTE_MS);
    const isSure = ms > OPEN_MINUTES * MINUTE_MS + MISJUDGED_MS && ms < OF_MINUTES * MINUTE_MS - MISJUDGED_MS;
    return isSure && annotations[WINDOW] !== undefined;
  }

  return {
    onEvent(event, caller) {
      const { resource, type, object, previous } = event;
      const { name, namespace, deletionTimestamp } = object.metadata;
      if (namespace !== NAMESPACE) return;
      if (resource === "statefulsets.apps") return onSet(event);
      const begins = type === "MODIFIED" && deletionTimestamp !== undefined && !previous?.metadata.deletionTimestamp;
      if (resource !== "pods" || !begins || !previous || !isTrue(previous, "Ready")) return;
      if (caller?.actor.startsWith("reconciler")) onTaken(previous, zoneOf(name), caller);
    },
  };
}
