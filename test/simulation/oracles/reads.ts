/**
 * Judges what a reconciler has read and confirmed before it deletes a pod of a zone (§1.5.8, §1.7):
 *
 *   list of the zones -- at most 1 s --> write without content --> deletion --> list --> deletion --> ...
 *                     -- longer -------> write without content --> list --> deletion
 *
 * The write has the version of its zone that was read. So it is known what the reconciler knew, to the second: of its
 * own zone what is true as the write takes effect, of the others what has been true for a second then.
 */
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { dig, fieldsOf, isTrue, numberOf, textOf } from "../../emulator/objects.ts";
import type { Loss, Losses } from "./losses.ts";
import { BUDGETS, GROUP, NAMESPACE, zoneOf } from "../names.ts";
import type { Caller } from "../network.ts";
import { createSince } from "./past.ts";
import type { Process } from "../process.ts";
import { misjudgedMs, type Shape } from "../shape.ts";
import { hasWorking, isBroken, isOrphan, isPinned } from "./stored.ts";

interface ReadSafetyOptions {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly processes: () => readonly Process[];
  readonly listPods: (zone: string) => readonly KubeObject[];
  readonly losses: Losses;
  /** A downscale of another zone that is recorded since before that time, and may still be stored, in words. */
  readonly admittedBut: (zone: string, before: number) => string | undefined;
}

/** Milliseconds for which what was listed is recent enough for the first pod. */
const FRESH_MS = 1000;
/** Milliseconds from the write without content until the last deletion is sent: a batch lasts 30 s. */
const BATCH_MS = 32_000;
/** Two passes in this time may both have led to what happens now; longer than that a process stands still, or just has. */
const [PASS_MS, STOOD_MS] = [6000, 20_000];
/** In which a process, or its machine, may have stood still. */
const STANDS_MS = 150_000;
/** So many lists of a reconciler are remembered. */
const [LISTS, POD_LISTS] = [8, 40];
/** What is sent at once; and the passes of which one has led to what happens now. */
const [AT_ONCE_MS, PASSES] = [5, 4];

const LIST = /^GET \/apis\/apps\/v1\/(?:namespaces\/[^/]+\/)?statefulsets(?:\?|$)/;
/** Of this group alone, its first page: before a pod or a downscale, and nowhere else. */
const OF_GROUP = new RegExp(`[?&]labelSelector=rollout-group(?:=|%3D)${GROUP}(?:&|$)(?!.*continue=)`);
/** Of all groups, its first page: each pass begins with it. */
const OF_ALL = /[?&]labelSelector=rollout-group(?:&|$)(?!.*continue=)/;
/** Of the pods of zones, by their names; and of gates: their first pages. */
const OF_PODS = /^GET .*\/pods\?(?=.*labelSelector=[^&]*name)(?!.*(?:watch|continue)=)/;
const OF_GATES = /^GET .*\/rolloutgates(?:\?|$)(?!.*(?:watch|continue)=)/;
const CONFIRMED = /^PATCH .*\/statefulsets\/([^/?]+)\/status/;
const DELETED = /^DELETE .*\/pods\/(([^/?]+)-\d+)(?:\?|$)/;
/** Whether it takes effect is unknown to who has sent it. */
const UNKNOWN = /^(?:requestLost|answerLost|serverError) at reconciler (DELETE(?= pods$)|PATCH(?= statefulsets$))/;
/** For which a pod is reserved. */
const RESERVED_MS = 120_000;
/** For which a reconciler takes the downscale Lease. */
const LEASE_MS = 10_000;
/** A pod whose readiness ends earlier than that may count as one that has never served. */
const SERVED_MS = 12_000;
const DOWNSCALE_LEASE = /\/leases(?:\/zonewise-downscale-|\?|$)/;

interface Confirmed {
  readonly at: number;
  /** How old the last list was then. */
  readonly listedMs: number;
  /** When the list was sent by which the zone's first pod was chosen, if it is certain which that is. */
  readonly chosenAt: number;
  /** By how much the pods were listed after the zones, if the gates have not been listed again since; 0 otherwise. */
  readonly ungatedMs: number;
}

interface Acts {
  /** When its last lists of StatefulSets were sent, the latest first. */
  lists: readonly number[];
  /** When its last lists of all groups were sent, the latest first. */
  passes: readonly number[];
  /** When its last list of this group alone was sent. */
  askedAt: number;
  /** When its last lists of zones' pods, and of gates, were sent, the latest first. */
  pods: readonly number[];
  gates: readonly number[];
  /** By StatefulSet its last such write, when it took effect. */
  readonly confirmed: Map<string, Confirmed>;
  /** By StatefulSet when the last deletion of one of its pods took effect. */
  readonly deletedAt: Map<string, number>;
  /** The pods that it has taken, by their names, until one of the name is ready. */
  readonly taken: Set<string>;
  /** When it sent the write that gave its last downscale Lease back. */
  releasedAt: number;
}

export type ReadSafety = ReturnType<typeof createReadSafety>;

/** Is not looked at again before each pod. */
const STRATEGY = "has another update strategy than OnDelete";
/** What keeps a zone, or its whole group, from losing pods by a rollout. */
const HOLDS: Readonly<Record<string, (set: KubeObject) => boolean>> = {
  "is paused": ({ metadata }) => metadata.annotations?.["grafana.com/rollout-paused"] === "true",
  "is being deleted": ({ metadata }) => metadata.deletionTimestamp !== undefined,
  [STRATEGY]: (set) => dig(set, "spec", "updateStrategy", "type") !== "OnDelete",
  "has a status older than its spec": (set) =>
    Number(dig(set, "status", "observedGeneration") ?? 0) < (set.metadata.generation ?? 0),
};
/** A paused zone holds no other. */
const OWN = "is paused";
/** What keeps pods that serve where they are, as the zones tell; and pods that may still come up. */
const SHORT: readonly Loss[] = [
  "has fewer ready pods than it should have",
  "ends",
  "is missing",
  "is one more than its zone should have",
];
const TRIED: readonly Loss[] = ["may still come up with a new template"];

/** Holds nobody, but pods of other zones go under the downscale Lease of the group. */
const JUDGED = "is scaled down by leave of a webhook";
const isJudged = (set: KubeObject): boolean =>
  set.metadata.labels?.["grafana.com/prepare-downscale"] === "true" && !isPinned(set);

/** Calls `violated` with what happened, in words. `onRequest` is told of requests that took effect. */
export function createReadSafety(options: ReadSafetyOptions) {
  const { shape, violated, now, processes, listPods, losses, admittedBut } = options;
  const byActor = new Map<string, Acts>();
  /** The zones as they are stored. */
  const sets = new Map<string, KubeObject>();
  /** "zone hold" since when. */
  const held = createSince(now);
  /** By UID of a pod when it began to end. */
  const endingAt = new Map<string, number>();
  /** UIDs of pods that have been ready. */
  const wereReady = new Set<string>();
  /** By UID of a pod that is not ready any more when it was so last. */
  const servedUntil = new Map<string, number>();
  /** By UID of a pod the reconciler that has taken it. */
  const takenBy = new Map<string, string>();
  /** By name of a pod that is not ready since when. */
  const unreadyAt = new Map<string, number>();
  /** When a write of a reconciler to pods or zones last got no answer. */
  let unknown = { at: -Infinity, isDeletion: false };
  /** By name of a downscale Lease the process that holds it, since when, and until when. */
  const holders = new Map<string, { readonly actor: string; readonly since: number; readonly until: number }>();

  function actsOf(actor: string): Acts {
    const never = { lists: [], passes: [], askedAt: -Infinity, pods: [], gates: [], releasedAt: -Infinity };
    const found = byActor.get(actor) ?? {
      ...never,
      confirmed: new Map(),
      deletedAt: new Map(),
      taken: new Set<string>(),
    };
    byActor.set(actor, found);
    return found;
  }

  /** When its last list of StatefulSets was sent, or one before it. */
  const listedAt = (actor: string, nth = 1): number => actsOf(actor).lists[nth - 1] ?? -Infinity;

  /** Until when others' objects were seen by who has confirmed a zone and takes its first pod. */
  function judgedAt(actor: string, zone: string): number {
    const { askedAt, confirmed } = actsOf(actor);
    const { at = -Infinity, chosenAt = -Infinity } = confirmed.get(zone) ?? {};
    // What is older than a second is asked for again.
    const isFresh = askedAt < at;
    return Math.max(at - (shape.suspends ? STANDS_MS : FRESH_MS), isFresh ? chosenAt : -Infinity);
  }

  /**
   * By how much the pods were listed after zones and gates, if no gates were listed since: a pass lists both at once, and
   * its step may go on beside the next passes. 0 unless that is so of all passes that may have led here.
   */
  function ungatedMs(actor: string): number {
    const { passes, pods, gates } = actsOf(actor);
    const isWith = (pass: number) => (at: number) => Math.abs(at - pass) <= AT_ONCE_MS;
    const again = gates.filter((at) => !passes.some((pass) => isWith(pass)(at)));
    const late = passes.slice(0, PASSES).flatMap((pass) => {
      const podsAt = pods.findLast((at) => at > pass);
      if (podsAt === undefined) return [];
      return gates.some(isWith(pass)) && !again.some((at) => at >= podsAt) ? podsAt - pass : 0;
    });
    return late.length > 0 ? Math.min(...late) : 0;
  }

  /** The one list of all groups that may have led to what the process does now; it has not stood still since. */
  function chosenAt(actor: string): number {
    const process = processes().find(({ name }) => name === actor);
    const [last = -Infinity, ...others] = actsOf(actor).passes.filter((at) => at > now() - PASS_MS);
    const isCertain = !shape.suspends && others.length === 0 && process?.stoodStillMs(now() - STOOD_MS) === 0;
    return isCertain && last > now() - FRESH_MS ? last : -Infinity;
  }

  /** Until when others' objects were seen by who deletes a pod of the zone now. */
  function decidedAt(actor: string, zone: string): number {
    const { deletedAt } = actsOf(actor);
    return Math.max(judgedAt(actor, zone), deletedAt.get(zone) ?? -Infinity);
  }

  /** Until when all zones were seen again by who has sent the deletion of a further pod of the zone, after its first. */
  function readAgainAt(actor: string, zone: string, sentAt = Infinity): number {
    const { askedAt, confirmed, deletedAt } = actsOf(actor);
    const firstAt = deletedAt.get(zone) ?? -Infinity;
    return firstAt > (confirmed.get(zone)?.at ?? -Infinity) && askedAt > firstAt && askedAt <= sentAt
      ? askedAt
      : -Infinity;
  }

  function onDeletion({ actor, call, sentAt = 0 }: Caller, path: string, pod: string, zone: string): void {
    const { uid = "" } = listPods(zone).find(({ metadata }) => metadata.name === pod)?.metadata ?? {};
    // The version of the pod that was read is a precondition: it was read as one that ends.
    if ((endingAt.get(uid) ?? Infinity) < sentAt) violated(`${actor} sends ${call}, which ends already`);
    const { confirmed, deletedAt } = actsOf(actor);
    const earlierAt = deletedAt.get(zone) ?? -Infinity;
    const { at, listedMs } = confirmed.get(zone) ?? { at: -Infinity, listedMs: Infinity };
    const process = processes().find(({ name }) => name === actor);
    const mayBeLate = (process?.stoodStillMs(now() - STANDS_MS) ?? 1) > 0;
    if (sentAt - at > BATCH_MS && !mayBeLate) violated(`${actor} sends ${call} of a zone that it has not confirmed`);
    deletedAt.set(zone, now());
    const limitMs = Number(/\btimeout=(\d+)ms/.exec(path)?.[1] ?? 0);
    const { since = Infinity, until = Infinity } = [...holders.values()].find((one) => one.actor === actor) ?? {};
    // Not one that is left to expire, of a zone that it has scaled before.
    const isUnderIt = since <= sentAt && since > at - listedMs;
    if (isUnderIt && sentAt + limitMs > until && !shape.suspends)
      violated(
        `${actor} sends ${call} with a time limit ${sentAt + limitMs - until} ms after its downscale Lease may pass to another`,
      );
    // A StatefulSet of a PhasedRollout is read by itself.
    if (!shape.zones.includes(zone)) return;
    if (listedAt(actor) <= earlierAt)
      violated(`${actor} sends ${call} without another list of the zones since its last one`);
    if (listedAt(actor) < at && listedMs > FRESH_MS && !shape.suspends)
      violated(`${actor} sends ${call} by a list that was ${listedMs} ms old before`);
  }

  /** A pod begins to end by a reconciler. */
  function onTaken(pod: KubeObject, zone: string, caller: Caller): void {
    const { actor } = caller;
    takenBy.set(pod.metadata.uid, actor);
    const { name: podName } = pod.metadata;
    const { at = -Infinity } = actsOf(actor).confirmed.get(zone) ?? {};
    const [othersAt, againAt] = [judgedAt(actor, zone), readAgainAt(actor, zone, caller.sentAt)];
    let isJudgedElsewhere = false;
    for (const [key, since] of held.all) {
      const [name = "", ...words] = key.split(" ");
      const hold = words.join(" ");
      const isOwn = name === zone;
      if (hold === JUDGED) {
        if (!isOwn && since < othersAt) isJudgedElsewhere = true;
      } else if (isOwn ? since <= at : hold !== OWN && since < othersAt)
        violated(`${podName} is taken by ${actor}, which has read that ${name} ${hold}`);
      else if (since < againAt && (isOwn || (hold !== OWN && hold !== STRATEGY && isTrue(pod, "Ready"))))
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
    if (isJudgedElsewhere) underLease(podName, zone, caller);
    const { ungatedMs = 0 } = actsOf(actor).confirmed.get(zone) ?? {};
    const isFirst = (actsOf(actor).deletedAt.get(zone) ?? -Infinity) <= at;
    if (isFirst && isTrue(pod, "Ready") && ungatedMs > FRESH_MS && !shape.suspends)
      violated(`${podName} is taken by ${actor}, which has listed its pods ${ungatedMs} ms after zones and gates`);
    judgeLosses(pod, zone, actor);
    actsOf(actor).taken.add(podName);
  }

  /** What others lose: by the zone's first pod what was read before it was confirmed, by each further one the last list. */
  function judgeLosses(pod: KubeObject, zone: string, actor: string): void {
    const { at = -Infinity } = actsOf(actor).confirmed.get(zone) ?? {};
    const isFurther = (actsOf(actor).deletedAt.get(zone) ?? -Infinity) > at;
    const before = Math.max(judgedAt(actor, zone), isFurther ? actsOf(actor).askedAt : -Infinity);
    const isStalled = hasStalled(pod);
    // Also of a pod that is not ready, a container that works serves.
    const serves = isTrue(pod, "Ready") || hasWorking(pod);
    const mayStart = !wereReady.has(pod.metadata.uid) && !isBroken(pod);
    if (isStalled) judgeLimit(pod, zone, actor);
    if (!serves && ((!mayStart && !isStalled) || isFurther)) return;
    const lost = losses.find({ but: zone, losses: serves ? SHORT : TRIED, before, isEver: isStalled });
    if (lost !== undefined) violated(`${pod.metadata.name} is taken by ${actor}, which has read that ${lost}`);
  }

  /** It has served and is no longer ready, and may come back. */
  const hasStalled = (pod: KubeObject): boolean => {
    const { uid, creationTimestamp } = pod.metadata;
    const servedMs = (servedUntil.get(uid) ?? -Infinity) - Date.parse(creationTimestamp);
    return !isTrue(pod, "Ready") && !isBroken(pod) && servedMs > SERVED_MS;
  };

  /** Such pods go within the limit of their zone, and what the reconciler itself has taken counts until it is back. */
  function judgeLimit({ metadata: { name } }: KubeObject, zone: string, actor: string): void {
    const taken = [...actsOf(actor).taken].filter((other) => other !== name && zoneOf(other) === zone);
    if (taken.length >= shape.maxUnavailable)
      violated(`${name} is taken by ${actor}, which has taken ${taken.join(", ")} of the zone as well`);
  }

  /** A webhook judges downscales of another zone. */
  function underLease(podName: string, zone: string, { actor, sentAt = 0 }: Caller): void {
    const since = heldSince(actor);
    const { releasedAt } = actsOf(actor);
    const what = `${podName} is taken by ${actor}`;
    if (releasedAt > sentAt) violated(`${what}, which has given the downscale Lease back while that was on its way`);
    else if (since === undefined) violated(`${what} without the downscale Lease of its group`);
    const admitted = since === undefined ? undefined : admittedBut(zone, since);
    if (admitted !== undefined) violated(`${what}, which has read that ${admitted}`);
  }

  function onPod({ type, object }: StoreEvent): void {
    const { name, uid, deletionTimestamp } = object.metadata;
    if (isTrue(object, "Ready")) {
      wereReady.add(uid);
      servedUntil.delete(uid);
      if (deletionTimestamp === undefined) for (const { taken } of byActor.values()) taken.delete(name);
    } else if (wereReady.has(uid) && !servedUntil.has(uid)) servedUntil.set(uid, now());
    if (type === "DELETED") endingAt.delete(uid);
    else if (deletionTimestamp !== undefined && !endingAt.has(uid)) endingAt.set(uid, now());
    // What ends is none that could go first.
    const isUnready = type !== "DELETED" && deletionTimestamp === undefined && !isTrue(object, "Ready");
    if (!isUnready) unreadyAt.delete(name);
    else if (!unreadyAt.has(name)) unreadyAt.set(name, now());
  }

  /** What is taken stays reserved while it is there. */
  function onBudget({ object, previous }: StoreEvent, { actor }: Caller): void {
    const [before = {}, after = {}] = [previous, object].map((one) => fieldsOf(dig(one, "status", "disruptedPods")));
    for (const [name, one] of Object.entries(before)) {
      const uid = textOf(dig(one, "uid")) ?? "";
      const isThere = listPods(zoneOf(name)).some(
        (pod) => pod.metadata.uid === uid && !isOrphan(pod, sets.get(zoneOf(name))),
      );
      const isYoung = now() - Date.parse(textOf(dig(one, "time")) ?? "") < RESERVED_MS - misjudgedMs(shape);
      if (after[name] === undefined && isThere && isYoung && takenBy.get(uid) === actor)
        violated(`${actor} releases the reservation of ${name}, which it has taken`);
    }
  }

  /** A downscale Lease is written. */
  function onLease({ actor, sentAt = now() }: Caller, body: string): void {
    const lease: unknown = JSON.parse(body || "{}");
    const name = textOf(dig(lease, "metadata", "name")) ?? "";
    if (!name.startsWith("zonewise-downscale-")) return;
    const durationMs = 1000 * (numberOf(dig(lease, "spec", "leaseDurationSeconds")) ?? Infinity);
    if (textOf(dig(lease, "spec", "holderIdentity")))
      holders.set(name, { actor, since: now(), until: sentAt + durationMs });
    else {
      const since = holders.get(name)?.since ?? Infinity;
      const isOpen = unknown.at > since && (unknown.isDeletion || actsOf(actor).askedAt > since);
      if (isOpen && now() - unknown.at < LEASE_MS)
        violated(`${actor} gives the downscale Lease back, although a write under it may still take effect`);
      holders.delete(name);
      actsOf(actor).releasedAt = sentAt;
    }
  }

  const heldSince = (holder: string): number | undefined =>
    [...holders.values()].find(({ actor }) => actor === holder)?.since;

  function onZone({ type, object }: StoreEvent): void {
    const { name } = object.metadata;
    sets.set(name, object);
    for (const [hold, holds] of Object.entries({ ...HOLDS, [JUDGED]: isJudged })) {
      const key = `${name} ${hold}`;
      held.note(key, type !== "DELETED" && holds(object));
    }
  }

  return {
    /** A fault has befallen a call, by its words. */
    onFault(cell: string): void {
      // It may have befallen a write for a PhasedRollout, which goes without the Lease.
      if (shape.phased) return;
      const verb = UNKNOWN.exec(cell)?.[1];
      if (verb !== undefined) unknown = { at: now(), isDeletion: verb === "DELETE" };
    },
    decidedAt,
    readAgainAt,
    listedAt,
    askedAt: (actor: string): number => actsOf(actor).askedAt,
    /** When its last pass over all groups began. */
    passedAt: (actor: string): number => actsOf(actor).passes[0] ?? -Infinity,
    heldSince,
    /** When a write of a reconciler to a zone last got no answer. */
    unknownAt: (): number => (unknown.isDeletion ? -Infinity : unknown.at),
    releasedAt: (actor: string): number => actsOf(actor).releasedAt,
    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      const { type, resource, object, previous } = event;
      const { name, namespace, deletionTimestamp } = object.metadata;
      if (namespace !== NAMESPACE) return;
      if (resource === "statefulsets.apps" && shape.zones.includes(name)) onZone(event);
      const zone = zoneOf(name);
      if (resource === BUDGETS && type === "MODIFIED" && caller) onBudget(event, caller);
      if (resource === "pods" && shape.zones.includes(zone)) onPod(event);
      const begins = type === "MODIFIED" && deletionTimestamp !== undefined && !previous?.metadata.deletionTimestamp;
      if (resource === "pods" && begins && caller?.actor.startsWith("reconciler") && shape.zones.includes(zone))
        onTaken(previous ?? object, zone, caller);
    },
    onRequest(caller: Caller, method: string, path: string, body = ""): void {
      if (method !== "GET" && DOWNSCALE_LEASE.test(path)) onLease(caller, body);
      if (!caller.actor.startsWith("reconciler")) return;
      const request = `${method} ${path}`;
      const acts = actsOf(caller.actor);
      const isList = LIST.test(request) && !/[?&]watch=/.test(path);
      if (isList && OF_GROUP.test(path)) acts.askedAt = caller.sentAt ?? now();
      if (isList && OF_ALL.test(path)) acts.passes = [caller.sentAt ?? now(), ...acts.passes].slice(0, LISTS);
      const { sentAt = now() } = caller;
      if (OF_GATES.test(request)) acts.gates = [sentAt, ...acts.gates].slice(0, LISTS);
      if (OF_PODS.test(request)) acts.pods = [sentAt, ...acts.pods].slice(0, POD_LISTS);
      if (isList) acts.lists = [caller.sentAt ?? now(), ...acts.lists].slice(0, LISTS);
      const [, zone] = CONFIRMED.exec(request) ?? [];
      if (zone !== undefined)
        acts.confirmed.set(zone, {
          at: now(),
          listedMs: now() - listedAt(caller.actor),
          chosenAt: chosenAt(caller.actor),
          ungatedMs: ungatedMs(caller.actor),
        });
      const [, pod = "", set] = DELETED.exec(request) ?? [];
      if (set !== undefined) onDeletion(caller, path, pod, set);
    },
  };
}
