/**
 * What must never happen to requested evictions, from the store's history alone. The reconciler takes no pod for a
 * request; it hands on only what it has reserved, answers nobody who has given up, and falls silent
 * for no longer than its successor takes. It shares no rule with the product.
 */
import { dig, isTrue } from "../../emulator/objects.ts";
import type { KubeObject, Store, StoreEvent } from "../../emulator/store.ts";
import { BUDGETS, GROUP, NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import type { Shape } from "../shape.ts";
import { reservedOn } from "../oracles/stored.ts";
import { activeOf, EVICTIONS, isOver, RESPONDER, statusOf, targetOf } from "./control.ts";

export interface RequestSafetyOptions {
  readonly shape: Pick<Shape, "zones">;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly store: () => Pick<Store, "get" | "list">;
  /** How many milliseconds ago what this actor does now may have been decided. */
  readonly decidedMs: (actor: string) => number;
  /** True if what is taken from now on has been reserved on the budget. */
  readonly keepsReservations: () => boolean;
}

export interface RequestSafety {
  readonly onEvent: (event: StoreEvent, caller: Caller | undefined) => void;
  /** A request that took effect. */
  readonly onRequest: (caller: Caller, method: string, path: string) => void;
  /** Why the API server has refused an answer. */
  readonly onRefusal: (why: readonly string[]) => void;
  /** Judges what is not said: nothing for longer than this, in milliseconds. */
  readonly look: (silentMs: number) => void;
}

/** A process stands still, and its write is on its way. */
const DECIDED_MS = 150_000;
/** What a call that is on its way for long makes of a time. */
const OF_TIME = /present time|to the past/;

export function createRequestSafety(options: RequestSafetyOptions): RequestSafety {
  const { shape, violated, now, store, decidedMs, keepsReservations } = options;
  /** When each UID was last seen among the reservations. */
  const reservedAt = new Map<string, number>();
  /** The update revisions of the zones, newest last. */
  const revisions = new Map<string, { readonly at: number; readonly revision: unknown }[]>();
  const told = new Set<string>();

  function onBudget({ object, previous }: StoreEvent): void {
    const [before = {}, after = {}] = [previous, object].map(reservedOn);
    for (const one of [...Object.values(before), ...Object.values(after)])
      reservedAt.set(String(dig(one, "uid")), now());
  }

  function onEviction({ type, object, previous }: StoreEvent, { actor }: Caller): void {
    if (!actor.startsWith("reconciler")) return;
    const { name } = object.metadata;
    if (type !== "MODIFIED" || !previous) return violated(`${actor} makes or deletes Eviction ${name}`);
    const before = statusOf(previous);
    if ((before.requesters ?? []).every(({ intent }) => intent === "Withdrawn"))
      violated(`${actor} answers Eviction ${name}, which nobody asks for any more`);
    const [was, is] = [before, statusOf(object)].map(ownOf);
    if (was?.completionTime === undefined && is?.completionTime !== undefined) onHandedOn(object, actor);
  }

  /** A pod that serves is handed on with its place reserved. */
  function onHandedOn(eviction: KubeObject, actor: string): void {
    const target = targetOf(eviction);
    const pod = store().get("pods", NAMESPACE, target.name);
    const isThere = pod?.metadata.uid === target.uid && !pod.metadata.deletionTimestamp && isTrue(pod, "Ready");
    if (!isThere || pod.metadata.labels?.["app"] !== GROUP || !keepsReservations()) return;
    const ms = now() - (reservedAt.get(target.uid) ?? -Infinity);
    if (ms > DECIDED_MS) violated(`${actor} hands the eviction of ${target.name} on, which is not reserved`);
  }

  function onSet({ object }: StoreEvent): void {
    const { name } = object.metadata;
    if (!shape.zones.includes(name)) return;
    const revision = dig(object, "status", "updateRevision");
    const all = revisions.get(name) ?? [];
    if (all.at(-1)?.revision !== revision) revisions.set(name, [...all, { at: now(), revision }]);
  }

  /** A pod that a reconciler takes is on its way to another template. */
  function onTaken(pod: KubeObject, { actor }: Caller): void {
    const all = revisions.get(pod.metadata.labels?.["name"] ?? "") ?? [];
    const from = now() - decidedMs(actor);
    const seen = all.filter((_, i) => (all[i + 1]?.at ?? Infinity) >= from);
    const own = pod.metadata.labels?.["controller-revision-hash"];
    if (seen.length > 0 && seen.every(({ revision }) => revision === own))
      violated(`${actor} deletes ${pod.metadata.name}, which has its zone's template`);
  }

  return {
    onEvent(event, caller) {
      const { resource, object, previous, type } = event;
      if (object.metadata.namespace !== NAMESPACE) return;
      if (resource === BUDGETS && type === "MODIFIED") onBudget(event);
      if (resource === EVICTIONS && caller) onEviction(event, caller);
      if (resource === "statefulsets.apps") onSet(event);
      const begins =
        type === "MODIFIED" && object.metadata.deletionTimestamp && previous?.metadata.deletionTimestamp === undefined;
      if (resource !== "pods" || !begins || !previous || !caller?.actor.startsWith("reconciler")) return;
      if (isTrue(previous, "Ready")) onTaken(previous, caller);
    },
    onRequest({ actor, call }, method, path) {
      if (/^(?:reconciler|webhooks)-/.test(actor) && method === "POST" && path.includes("/eviction"))
        violated(`${actor} evicts by itself: ${call}`);
    },
    onRefusal(why) {
      for (const one of why)
        if (!OF_TIME.test(one)) violated(`the API server refuses an answer to an Eviction: ${one}`);
    },
    look(silentMs) {
      for (const eviction of store().list(EVICTIONS, NAMESPACE)) {
        const why = whyLate(eviction, now(), silentMs);
        const { name } = eviction.metadata;
        if (why !== undefined && !told.has(name)) violated(`Eviction ${name} ${why}`);
        if (why !== undefined) told.add(name);
      }
    },
  };
}

const ownOf = ({ responders = [] }: ReturnType<typeof statusOf>) => responders.find(({ name }) => name === RESPONDER);

/** What nobody says of an Eviction that waits for us, in words. */
function whyLate(eviction: KubeObject, now: number, silentMs: number): string | undefined {
  const status = statusOf(eviction);
  const own = ownOf(status);
  const isAsked = (status.requesters ?? []).some(({ intent }) => intent === "Eviction");
  if (!own || isOver(status) || activeOf(status) !== RESPONDER || own.completionTime !== undefined || !isAsked)
    return undefined;
  const heard = now - Date.parse(own.heartbeatTime ?? own.startTime ?? "");
  if (heard > silentMs) return `has no word for ${heard} ms`;
  const overdue = now - Date.parse(own.expectedCompletionTime ?? "");
  return overdue > silentMs ? `is expected to be over since ${overdue} ms` : undefined;
}

/** Once faults and people have stopped, each Eviction ends, also by itself once its pod is gone. */
export const openEvictions = (store: Pick<Store, "get" | "list">): string[] =>
  store.list(EVICTIONS, NAMESPACE).flatMap((eviction) => {
    const { name, uid } = targetOf(eviction);
    const isGone = store.get("pods", NAMESPACE, name)?.metadata.uid !== uid;
    const whose = activeOf(statusOf(eviction)) ?? "nobody";
    return isOver(statusOf(eviction))
      ? []
      : [`the Eviction of ${name} is not over: ${whose} has its turn${isGone ? ", and the pod is gone" : ""}`];
  });
