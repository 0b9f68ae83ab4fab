/**
 * What must never happen where zones have windows: outside them no reconciler takes a pod that is ready, but for the way
 * back of a template. Judged from the store alone, by the minutes that the window was drawn with.
 */
import { dig, fieldsOf, isTrue } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import { FREEZES, OF_MINUTES, OPEN_MINUTES } from "./shape.ts";

export interface WindowSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly setOf: (zone: string) => KubeObject | undefined;
}

export interface WindowSafety {
  readonly onEvent: (event: StoreEvent, caller: Caller | undefined) => void;
}

/** By how much a process may misjudge the time, a call on its way included. */
const MISJUDGED_MS = 45_000;
/** Longer than a read is old, and a process stands still: who judges has seen what was changed. */
const SEEN_MS = 150_000;
const MINUTE_MS = 60_000;

export function createWindowSafety({ violated, now, setOf }: WindowSafetyOptions): WindowSafety {
  /** When the StatefulSet of a zone was last made or written by somebody, but for its status. */
  const changedAt = new Map<string, number>();

  function onSet({ type, object, previous }: StoreEvent): void {
    const told = ({ metadata, ["spec"]: spec }: KubeObject): string => JSON.stringify([spec, metadata.annotations]);
    if (type !== "MODIFIED" || !previous || told(previous) !== told(object)) changedAt.set(object.metadata.name, now());
  }

  function onTaken(pod: KubeObject, zone: string, by: string): void {
    const set = setOf(zone);
    const annotations = set?.metadata.annotations ?? {};
    if (!set || now() - (changedAt.get(zone) ?? -Infinity) < SEEN_MS || isWayBack(pod, set)) return;
    const why = isFrozen(annotations[FREEZES]) ? "in a freeze" : isClosed(annotations) ? "outside the window" : "";
    if (why !== "") violated(`${pod.metadata.name} is taken by ${by} ${why}`);
  }

  function isFrozen(freeze: string | undefined): boolean {
    const [from = Number.NaN, to = Number.NaN] = (freeze ?? "").split("/").map((time) => Date.parse(time));
    return now() - from > MISJUDGED_MS && to - now() > MISJUDGED_MS;
  }

  function isClosed(annotations: Readonly<Record<string, string>>): boolean {
    const ms = now() % (OF_MINUTES * MINUTE_MS);
    const isSure = ms > OPEN_MINUTES * MINUTE_MS + MISJUDGED_MS && ms < OF_MINUTES * MINUTE_MS - MISJUDGED_MS;
    return isSure && annotations["zonewise.dev/rollout-window"] !== undefined;
  }

  return {
    onEvent(event, caller) {
      const { resource, type, object, previous } = event;
      const { name, namespace, deletionTimestamp } = object.metadata;
      if (namespace !== NAMESPACE) return;
      if (resource === "statefulsets.apps") return onSet(event);
      const begins = type === "MODIFIED" && deletionTimestamp !== undefined && !previous?.metadata.deletionTimestamp;
      if (resource !== "pods" || !begins || !previous || !isTrue(previous, "Ready")) return;
      if (caller?.actor.startsWith("reconciler")) onTaken(previous, name.replace(/-\d+$/, ""), caller.actor);
    },
  };
}

/** The StatefulSet made the pod of a template that it has given up again. */
function isWayBack(pod: KubeObject, set: KubeObject): boolean {
  const { currentRevision, updateRevision } = fieldsOf(dig(set, "status"));
  const isOlder = Date.parse(pod.metadata.creationTimestamp) < Date.parse(set.metadata.creationTimestamp);
  return currentRevision === updateRevision && !isOlder;
}
