/**
 * The first oracle: what must never happen, judged from the store's history alone. It shares no rule with the product.
 *
 * A pod is *disrupted by us* from the moment a reconciler deletes it, or an eviction of it is allowed, while it is
 * ready, until the pod of its name is ready again or is no longer wanted.
 */
import type { KubeObject, StoreEvent } from "../emulator/store.ts";
import { dig, isTrue } from "../emulator/objects.ts";
import type { Caller, Review } from "./network.ts";
import { NAMESPACE, type Shape } from "./shape.ts";

export interface SafetyOptions {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  /** True for the UID of a pod that has confirmed that it prepares for its shutdown. */
  readonly isPrepared: (uid: string) => boolean;
  readonly listPods: (zone: string) => readonly KubeObject[];
  readonly now: () => number;
  /** The identity that holds the reconcilers' Lease, and the milliseconds since it was taken. */
  readonly leader: () => { readonly holder: string; readonly sinceMs: number } | undefined;
}

export interface Safety {
  readonly onEvent: (event: StoreEvent, caller: Caller | undefined) => void;
  /** A request of one of our processes, as it reached the API server. */
  readonly onRequest: (caller: Caller, method: string, path: string, body: string) => void;
  readonly onReview: (review: Review) => void;
}

interface Disrupted {
  readonly zone: string;
  readonly ordinal: number;
  readonly uid: string;
  readonly by: string;
}

const isReady = (pod: KubeObject): boolean => pod.metadata.deletionTimestamp === undefined && isTrue(pod, "Ready");
const isEviction = ({ call }: Caller): boolean => call.endsWith("/eviction");
const isReconciler = ({ actor }: Caller): boolean => actor.startsWith("reconciler");

/** Longer than a process stands still and a call is on its way: who judges has seen that the pod is not ready. */
const SICK_MS = 150_000;
/** A write that was sent under the Lease may take so long until it takes effect: as long as the network is slow. */
const IN_FLIGHT_MS = 45_000;
/** By how much a process may misjudge the API server's time: as long as the last answer took. */
const MISJUDGED_MS = 45_000;
/** A pod that is younger was made after its zone was judged. */
const YOUNG_MS = 60_000;

/** Calls `violated` with what happened, in words. */
export function createSafety({ shape, violated, isPrepared, listPods, now, leader }: SafetyOptions): Safety {
  const disrupted = new Map<string, Disrupted>();
  /** Pods that are not ready, by whatever doing, and since when. */
  const sick = new Map<string, number>();
  /** When each zone was last scaled down by us. */
  const shrunkAt = new Map<string, number>();
  const replicas = new Map<string, number>(shape.zones.map((zone) => [zone, shape.replicas]));

  function onPod({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const { name, uid, deletionTimestamp, namespace } = object.metadata;
    const [, zone = "", ordinal = ""] = /^(.*)-(\d+)$/.exec(name) ?? [];
    if (namespace !== NAMESPACE || !replicas.has(zone)) return;
    const begins = type === "MODIFIED" && deletionTimestamp !== undefined && !previous?.metadata.deletionTimestamp;
    if (begins && caller && previous && isReady(previous) && (isReconciler(caller) || isEviction(caller)))
      disrupt({ zone, ordinal: Number(ordinal), uid, by: caller.actor }, caller);
    if (type !== "DELETED" && isReady(object)) {
      sick.delete(name);
      if (disrupted.get(name)?.uid !== uid) disrupted.delete(name);
    } else if (!sick.has(name)) sick.set(name, now());
    forgetUnwanted();
  }

  function disrupt(pod: Disrupted, caller: Caller): void {
    const name = `${pod.zone}-${pod.ordinal}`;
    const guarded = isReconciler(caller) || shape.budget !== undefined;
    if (!guarded) return;
    const others = [...disrupted.values()].filter(({ zone }) => zone !== pod.zone);
    if (others.length > 0)
      violated(`two zones at once: ${name} is taken by ${pod.by} while ${others.map(nameOf).join(", ")} are missing`);
    const ill = [...sick].find(([other, since]) => zoneOf(other) !== pod.zone && now() - since > SICK_MS);
    if (ill) violated(`${name} is taken by ${pod.by} while ${ill[0]} of another zone has long not been ready`);
    disrupted.set(name, pod);
    const own = [...disrupted.values()].filter(({ zone }) => zone === pod.zone);
    const limit = Math.max(shape.maxUnavailable, shape.budget ?? 0);
    if (own.length > limit) violated(`${own.length} pods of ${pod.zone} at once, ${limit} are allowed: ${name}`);
  }

  function onSet({ type, object }: StoreEvent, caller: Caller | undefined): void {
    const { name, namespace } = object.metadata;
    const before = replicas.get(name);
    if (namespace !== NAMESPACE || before === undefined) return;
    const after = type === "DELETED" ? 0 : Number(dig(object, "spec", "replicas") ?? 1);
    replicas.set(name, after);
    forgetUnwanted();
    if (type === "MODIFIED" && after < before && caller && (isReconciler(caller) || shape.prepared))
      shrink(name, after, caller);
  }

  /** A downscale by the reconciler, or one that the webhook has admitted. */
  function shrink(zone: string, to: number, { actor }: Caller): void {
    const surplus = listPods(zone).filter(
      (pod) => ordinalOf(pod) >= to && pod.metadata.deletionTimestamp === undefined && isOld(pod),
    );
    if (shape.prepared)
      for (const { metadata } of surplus)
        if (!isPrepared(metadata.uid)) violated(`${actor} scales ${zone} to ${to}: ${metadata.name} was not prepared`);
    const earlier = Math.max(...[...shrunkAt].map(([other, at]) => (other === zone ? -Infinity : at)));
    const betweenMs = shape.minutesBetween * 60_000 - MISJUDGED_MS;
    if (now() - earlier < betweenMs)
      violated(`${actor} scales ${zone} to ${to} ${now() - earlier} ms after another zone was scaled down`);
    shrunkAt.set(zone, now());
    const others = [...disrupted.values()].filter((pod) => pod.zone !== zone);
    if (others.length > 0 && surplus.some(isReady) && shape.budget !== undefined)
      violated(
        `two zones at once: ${actor} scales ${zone} to ${to} while ${others.map(nameOf).join(", ")} are missing`,
      );
  }

  const isOld = ({ metadata }: KubeObject): boolean => now() - Date.parse(metadata.creationTimestamp) > YOUNG_MS;

  function forgetUnwanted(): void {
    for (const [name, { zone, ordinal }] of disrupted) if (ordinal >= (replicas.get(zone) ?? 0)) disrupted.delete(name);
    for (const name of sick.keys()) if (ordinalIn(name) >= (replicas.get(zoneOf(name)) ?? 0)) sick.delete(name);
  }

  return {
    onEvent(event, caller) {
      if (event.resource === "pods") onPod(event, caller);
      if (event.resource === "statefulsets.apps") onSet(event, caller);
    },
    onRequest({ actor }, method, path, body) {
      if (!actor.startsWith("reconciler") && !actor.startsWith("webhooks")) return;
      if (method === "DELETE" && /\/pods\//.test(path)) {
        const { preconditions } = JSON.parse(body || "{}") as { preconditions?: Readonly<Record<string, string>> };
        if (!preconditions?.["uid"] || !preconditions["resourceVersion"])
          violated(`${actor} deletes a pod that it may not have judged: ${path} ${body}`);
      }
      const lease = leader();
      if (method !== "GET" && actor.startsWith("reconciler") && /\/(statefulsets|pods)\//.test(path) && lease)
        if (!lease.holder.startsWith(`${actor}_`) && lease.sinceMs > IN_FLIGHT_MS)
          violated(`${actor} writes ${path} ${lease.sinceMs} ms after ${lease.holder} has taken the Lease`);
      if (/\/namespaces\/(?!zonewise\b)/.test(path)) violated(`${actor} calls into another namespace: ${path}`);
    },
    onReview({ sent, status, answer, lateMs }) {
      if (lateMs > 0) violated(`a webhook answers ${lateMs} ms after its deadline: ${answer}`);
      if (status >= 500) return violated(`a webhook answers ${status}: ${answer}`);
      if (status !== 200) return;
      const uid = dig(JSON.parse(sent), "request", "uid");
      if (dig(JSON.parse(answer), "response", "uid") !== uid) violated(`a webhook answers another request: ${answer}`);
    },
  };
}

const zoneOf = (pod: string): string => pod.replace(/-\d+$/, "");
const ordinalIn = (pod: string): number => Number(/\d+$/.exec(pod)?.[0]);
const ordinalOf = ({ metadata }: KubeObject): number => ordinalIn(metadata.name);
const nameOf = ({ zone, ordinal }: Disrupted): string => `${zone}-${ordinal}`;
