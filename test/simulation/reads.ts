/**
 * Judges what a reconciler has read and confirmed before it deletes a pod of a zone (§1.5.8, §1.7), or shrinks one (§2):
 *
 *   list of the zones -- at most 1 s --> write without content --> deletion --> list --> deletion --> ...
 *                     -- longer -------> write without content --> list --> deletion
 *   downscale Lease --> list of the zones --> fewer replicas --> list --> ...
 *
 * The write has the version of its zone that was read. So it is known what the reconciler knew, to the second: of its
 * own zone what is true as the write takes effect, of the others what has been true for a second then.
 */
import type { KubeObject, StoreEvent } from "../emulator/store.ts";
import { dig, isTrue, textOf } from "../emulator/objects.ts";
import { NAMESPACE, ordinalOf, zoneOf } from "./names.ts";
import type { Caller } from "./network.ts";
import { createPast } from "./past.ts";
import type { Process } from "./process.ts";
import type { Shape } from "./shape.ts";

interface ReadSafetyOptions {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly processes: () => readonly Process[];
  readonly listPods: (zone: string) => readonly KubeObject[];
}

/** Milliseconds for which what was listed is recent enough for the first pod. */
const FRESH_MS = 1000;
/** Milliseconds from the write without content to the last deletion: a batch lasts 30 s, and its last call 10 s. */
const BATCH_MS = 40_000;
/** In which a process, or its machine, may have stood still. */
const STANDS_MS = 150_000;

const LIST = /^GET \/apis\/apps\/v1\/(?:namespaces\/[^/]+\/)?statefulsets(?:\?|$)/;
const CONFIRMED = /^PATCH .*\/statefulsets\/([^/?]+)\/status/;
const DELETED = /^DELETE .*\/pods\/(([^/?]+)-\d+)(?:\?|$)/;
const DOWNSCALE_LEASE = /\/leases(?:\/zonewise-downscale-|\?|$)/;

interface Acts {
  /** When its last list of StatefulSets was sent. */
  listedAt: number;
  /** By StatefulSet when its last such write took effect, and how old its last list was then. */
  readonly confirmed: Map<string, { readonly at: number; readonly listedMs: number }>;
  /** By StatefulSet when the last deletion of one of its pods took effect. */
  readonly deletedAt: Map<string, number>;
  /** When its last change of a zone's replicas took effect. */
  scaledAt: number;
}

/** What keeps a zone, or its whole group, from losing pods by a rollout. */
const HOLDS: Readonly<Record<string, (set: KubeObject) => boolean>> = {
  "is paused": ({ metadata }) => metadata.annotations?.["grafana.com/rollout-paused"] === "true",
  "is being deleted": ({ metadata }) => metadata.deletionTimestamp !== undefined,
  "has another update strategy than OnDelete": (set) => dig(set, "spec", "updateStrategy", "type") !== "OnDelete",
  "has a status older than its spec": (set) =>
    Number(dig(set, "status", "observedGeneration") ?? 0) < (set.metadata.generation ?? 0),
};
/** A paused zone holds no other. */
const OWN = "is paused";
/** Holds nobody, but pods of other zones go under the downscale Lease of the group. */
const JUDGED = "is scaled down by leave of a webhook";
const isJudged = ({ metadata: { labels } }: KubeObject): boolean =>
  labels?.["grafana.com/prepare-downscale"] === "true";

const replicasOf = (set: KubeObject): number => Number(dig(set, "spec", "replicas") ?? 1);

/** Calls `violated` with what happened, in words. `onRequest` is told of requests that took effect. */
export function createReadSafety({ shape, violated, now, processes, listPods }: ReadSafetyOptions) {
  const byActor = new Map<string, Acts>();
  /** The zones as they are stored. */
  const sets = new Map<string, KubeObject>();
  /** "zone hold" since when. */
  const held = new Map<string, number>();
  const past = createPast(now);
  /** By UID of a pod when it began to end. */
  const endingAt = new Map<string, number>();
  /** Those of them that were ready then: what never served is missed by nobody. */
  const wereReady = new Set<string>();
  /** By name of a pod that is not ready since when. */
  const unreadyAt = new Map<string, number>();
  /** By name of a downscale Lease the process that holds it, and since when. */
  const holders = new Map<string, { readonly actor: string; readonly since: number }>();
  const mayBeStale = shape.faults.stale > 0 || shape.firstCalls !== undefined;

  function actsOf(actor: string): Acts {
    const never = { listedAt: -Infinity, scaledAt: -Infinity };
    const found = byActor.get(actor) ?? { ...never, confirmed: new Map(), deletedAt: new Map() };
    byActor.set(actor, found);
    return found;
  }

  /** What was stored until then was seen by who read at this time. */
  const seen = (at: number): number => (mayBeStale ? past.seenAt(at) : at);

  /** Until when others' objects were seen by who confirmed a zone at this time. */
  const judgedAt = (confirmedAt: number): number => seen(confirmedAt - (shape.suspends ? STANDS_MS : FRESH_MS));

  /** Until when others' objects were seen by who deletes a pod of the zone now. */
  function decidedAt(actor: string, zone: string): number {
    const { confirmed, deletedAt } = actsOf(actor);
    const { at = -Infinity } = confirmed.get(zone) ?? {};
    return Math.max(judgedAt(at), seen(deletedAt.get(zone) ?? -Infinity));
  }

  function onDeletion({ actor, call, sentAt = 0 }: Caller, pod: string, zone: string): void {
    const { uid = "" } = listPods(zone).find(({ metadata }) => metadata.name === pod)?.metadata ?? {};
    // The version of the pod that was read is a precondition: it was read as one that ends.
    if ((endingAt.get(uid) ?? Infinity) < sentAt) violated(`${actor} sends ${call}, which ends already`);
    const { listedAt, confirmed, deletedAt, scaledAt } = actsOf(actor);
    const earlierAt = deletedAt.get(zone) ?? -Infinity;
    const { at, listedMs } = confirmed.get(zone) ?? { at: -Infinity, listedMs: Infinity };
    const process = processes().find(({ name }) => name === actor);
    const mayBeLate = (process?.stoodStillMs(now() - STANDS_MS) ?? 1) > 0;
    if (sentAt - at > BATCH_MS && !mayBeLate) violated(`${actor} sends ${call} of a zone that it has not confirmed`);
    deletedAt.set(zone, now());
    // A StatefulSet of a PhasedRollout is read by itself.
    if (!shape.zones.includes(zone)) return;
    if (listedAt <= Math.max(scaledAt, earlierAt))
      violated(`${actor} sends ${call} without another list of the zones since its last one`);
    if (listedAt < at && listedMs > FRESH_MS && !shape.suspends)
      violated(`${actor} sends ${call} by a list that was ${listedMs} ms old before`);
  }

  /** A pod begins to end by a reconciler. */
  function onTaken(pod: KubeObject, zone: string, actor: string): void {
    const { name: podName } = pod.metadata;
    const { at = -Infinity } = actsOf(actor).confirmed.get(zone) ?? {};
    const othersAt = judgedAt(at);
    for (const [key, since] of held) {
      const [name = "", ...words] = key.split(" ");
      const hold = words.join(" ");
      const isOwn = name === zone;
      if (hold === JUDGED) {
        if (!isOwn && since < othersAt && heldSince(actor) === undefined)
          violated(`${podName} is taken by ${actor} without the downscale Lease of its group`);
      } else if (isOwn ? since <= at : hold !== OWN && since < othersAt)
        violated(`${podName} is taken by ${actor}, which has read that ${name} ${hold}`);
    }
    const set = sets.get(zone);
    const isOld = ({ metadata }: KubeObject): boolean =>
      metadata.labels?.["controller-revision-hash"] !== dig(set, "status", "updateRevision");
    const [first] = isTrue(pod, "Ready")
      ? listPods(zone).filter((one) => isOld(one) && (unreadyAt.get(one.metadata.name) ?? Infinity) < othersAt)
      : [];
    if (first)
      violated(`${podName} is taken by ${actor} before ${first.metadata.name}, which is outdated and not ready`);
  }

  function onPod({ type, object, previous }: StoreEvent): void {
    const { name, uid, deletionTimestamp } = object.metadata;
    if (type === "DELETED") endingAt.delete(uid);
    else if (deletionTimestamp !== undefined && !endingAt.has(uid)) {
      endingAt.set(uid, now());
      if (previous && isTrue(previous, "Ready")) wereReady.add(uid);
    }
    // What ends is none that could go first.
    const isUnready = type !== "DELETED" && deletionTimestamp === undefined && !isTrue(object, "Ready");
    if (!isUnready) unreadyAt.delete(name);
    else if (!unreadyAt.has(name)) unreadyAt.set(name, now());
  }

  /** A downscale Lease is written. */
  function onLease({ actor }: Caller, body: string): void {
    const lease: unknown = JSON.parse(body || "{}");
    const name = textOf(dig(lease, "metadata", "name")) ?? "";
    if (!name.startsWith("zonewise-downscale-")) return;
    if (textOf(dig(lease, "spec", "holderIdentity"))) holders.set(name, { actor, since: now() });
    else holders.delete(name);
  }

  const heldSince = (holder: string): number | undefined =>
    [...holders.values()].find(({ actor }) => actor === holder)?.since;

  /** A reconciler changes the replicas of a zone that it has read in this version. */
  function onScaled(before: KubeObject, after: number, actor: string): void {
    const { name } = before.metadata;
    const acts = actsOf(actor);
    if (acts.listedAt <= acts.scaledAt) violated(`${actor} scales ${name} without another list since the last zone`);
    acts.scaledAt = now();
    const surplus = listPods(name).filter((pod) => ordinalOf(pod.metadata.name) >= after);
    const isForced = before.metadata.annotations?.["grafana.com/rollout-force-replicas"] !== undefined;
    if (after >= replicasOf(before) || isForced || !surplus.some((pod) => isTrue(pod, "Ready"))) return;
    const since = heldSince(actor);
    if (isJudged(before)) return;
    if (since === undefined) violated(`${actor} shrinks ${name} without the downscale Lease of its group`);
    else if (acts.listedAt < since) violated(`${actor} shrinks ${name} by a list from before it took the Lease`);
    const ending = shape.zones
      .filter((zone) => zone !== name)
      .flatMap((zone) => [...listPods(zone)])
      .find(({ metadata: { uid } }) => wereReady.has(uid) && (endingAt.get(uid) ?? Infinity) < seen(acts.listedAt));
    if (ending) violated(`${actor} shrinks ${name}, and has read that ${ending.metadata.name} ends`);
  }

  function onZone({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const { name } = object.metadata;
    sets.set(name, object);
    const [before, after] = [previous, object].map((set) => set && replicasOf(set));
    if (previous && type === "MODIFIED" && after !== undefined && before !== after)
      if (caller?.actor.startsWith("reconciler")) onScaled(previous, after, caller.actor);
    for (const [hold, holds] of Object.entries({ ...HOLDS, [JUDGED]: isJudged })) {
      const key = `${name} ${hold}`;
      if (type === "DELETED" || !holds(object)) held.delete(key);
      else if (!held.has(key)) held.set(key, now());
    }
  }

  return {
    decidedAt,
    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      past.noteWrite();
      const { type, resource, object, previous } = event;
      const { name, namespace, deletionTimestamp } = object.metadata;
      if (namespace !== NAMESPACE) return;
      if (resource === "statefulsets.apps" && shape.zones.includes(name)) onZone(event, caller);
      const zone = zoneOf(name);
      if (resource === "pods" && shape.zones.includes(zone)) onPod(event);
      const begins = type === "MODIFIED" && deletionTimestamp !== undefined && !previous?.metadata.deletionTimestamp;
      if (resource === "pods" && begins && caller?.actor.startsWith("reconciler") && shape.zones.includes(zone))
        onTaken(previous ?? object, zone, caller.actor);
    },
    onRequest(caller: Caller, method: string, path: string, body = ""): void {
      if (method !== "GET" && DOWNSCALE_LEASE.test(path)) onLease(caller, body);
      if (!caller.actor.startsWith("reconciler")) return;
      const request = `${method} ${path}`;
      const acts = actsOf(caller.actor);
      if (LIST.test(request) && !/[?&]watch=/.test(path)) acts.listedAt = caller.sentAt ?? now();
      const [, zone] = CONFIRMED.exec(request) ?? [];
      if (zone !== undefined) acts.confirmed.set(zone, { at: now(), listedMs: now() - acts.listedAt });
      const [, pod = "", set] = DELETED.exec(request) ?? [];
      if (set !== undefined) onDeletion(caller, pod, set);
    },
  };
}
