/**
 * Judges what a reconciler has read before it scales a zone (§2), and before it reserves pods for that. Its last list of
 * the zones is known from its requests, and so is what it says.
 *
 *   list -> as another zone is being deleted: nothing
 *        -> grow: write
 *        -> shrink: list of zones and pods, times, Lease -> reserve -> write -- refused --> release
 */
import { dig, fieldsOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { type DownscaleKnowledge, LEAVING, UNREADY } from "./losses.ts";
import { BUDGETS, GROUP, NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import type { ReadSafety } from "./reads.ts";
import { type Shape, TEMPLATES } from "../shape.ts";
import { isPinned, replicasOf } from "./stored.ts";

export interface ScalingSafetyOptions extends DownscaleKnowledge {
  readonly shape: Pick<Shape, "zones" | "callsPerSecond">;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly reads: Pick<ReadSafety, "listedAt" | "askedAt" | "passedAt" | "heldSince" | "releasedAt" | "unknownAt">;
  /** True if no fault has befallen a call of reconcilers since then, and none of them has stood still. */
  readonly isQuiet: (since: number) => boolean;
}

const SCALED = /^PATCH .*\/statefulsets\/([^/?]+)(?:\?|$)/;
const TRACKER = /^GET .*\/configmaps\//;
const REFERENCE = /^GET .*\/replicatemplates\/[^/]+\/scale/;
/** Refused for its content: nothing was written, and what was read may be as it was. */
const REFUSED: ReadonlySet<number> = new Set([400, 403, 404, 422]);
const [CONFLICT, SERVER_ERROR] = [409, 500];
/** A reservation of a refused write is released within this time. */
const RELEASED_MS = 10_000;
/** Something pins a zone whose replicas stay as they are: who notices that waits for half a minute. */
const PINNED_MS = 28_000;
/** The downscale Lease is given back within this time, and lasts so long if it is not. */
const [GIVEN_BACK_MS, LEASE_MS] = [5000, 10_000];
const LAST_DOWNSCALE = "grafana.com/last-downscale";
/** What a reconciler needs from the list that it decides by to its write. */
const DECIDED_LISTS = 4;
/** A delay, and where pods are told of it: without both there is none. */
const DELAY = "grafana.com/rollout-delayed-downscale";
const DELAY_URL = "grafana.com/rollout-prepare-delayed-downscale-url";
const DURATION = /^(?:\d+(?:ms|[smhdwy]))+$/;
const LEADER = "grafana.com/rollout-downscale-leader";
const MIN_TIME = "grafana.com/min-time-between-zones-downscale";

interface Acts {
  /** When it last sent a write of replicas, and how many: others may change them as they are admitted. */
  asked?: { readonly sentAt: number; readonly replicas: number };
  /** When its last write of replicas that may have taken effect was answered, and of which zone. */
  scaled?: { readonly at: number; readonly zone: string };
  /** When a write of replicas was last answered. */
  answeredAt: number;
  /** When it last read the zone tracker, and the template. */
  trackedAt: number;
  referredAt: number;
  /** By zone when its write was last refused. */
  readonly refusedAt: Map<string, number>;
  /** By zone and replicas when it was answered that the zone stays as it is. */
  readonly pinnedAt: Map<string, number>;
  /** By zone when it sent the write that released its reservation. */
  readonly released: Map<string, number>;
  /** By zone when it reserved its downscale. */
  readonly reserved: Map<string, { readonly at: number; readonly key: string; readonly time: unknown }>;
}

/** A reservation whose write was refused. */
interface Left {
  readonly key: string;
  /** When it was reserved. */
  readonly at: number;
  readonly time: unknown;
  readonly refusedAt: number;
}

/** Of replicas, and how it was answered. */
interface Write {
  readonly zone: string;
  readonly body: unknown;
  readonly status: number;
  /** Until when it may take effect, from when it was sent. */
  readonly limitMs: number;
}

/** So many replicas were asked for. */
interface Asked {
  readonly zone: string;
  readonly to: number;
  readonly status: number;
  readonly sentAt: number;
  readonly call: string;
}

/** A write with the time of a downscale, by the zone before and after it. */
interface Timed {
  readonly set: KubeObject;
  readonly before: KubeObject;
  readonly time: string;
}

const timeOf = (set: KubeObject | undefined): string | undefined => set?.metadata.annotations?.[LAST_DOWNSCALE];

/** Calls `violated` with what happened, in words. */
export function createScalingSafety(options: ScalingSafetyOptions) {
  const { shape, violated, now, losses, reads, setOf, listBudgets, isQuiet } = options;
  const { admittedBut, missedBut, wasInvalid, tooEarly } = options;
  const byActor = new Map<string, Acts>();
  /** By version of a zone when another one took its place. */
  const outdatedAt = new Map<string, number>();
  /** The replicas that the template asks for, and since when. */
  let template: { readonly replicas: number; readonly since: number } | undefined;
  /** Since when a zone is being deleted. */
  const leavingSince = new Map<string, number>();
  const left: Left[] = [];
  /** Leases of refused writes, and times of downscales that did not happen. */
  const kept: { readonly at: number; readonly isKept: () => boolean; readonly what: string }[] = [];
  /** By zone what it was before its last change, and the time of a downscale that happened. */
  const earlier = new Map<string, KubeObject>();
  const happenedAt = new Map<string, unknown>();

  function actsOf(actor: string): Acts {
    const never = { answeredAt: -Infinity, trackedAt: -Infinity, referredAt: -Infinity };
    const found = byActor.get(actor) ?? {
      ...never,
      refusedAt: new Map(),
      pinnedAt: new Map(),
      released: new Map(),
      reserved: new Map(),
    };
    byActor.set(actor, found);
    return found;
  }

  const knownAt = (actor: string): number => reads.askedAt(actor);

  /** Why the zone should not shrink, by what its reconciler has read. */
  function whyNotShrink(set: KubeObject, to: number, actor: string): string | undefined {
    const { name } = set.metadata;
    const before = knownAt(actor);
    const early = tooEarly(name, "reconciler", before);
    if (early !== undefined || !losses.takesServing(name, to, before)) return early;
    if (wasInvalid(before)) return "its budget is invalid";
    // Others may wait for a zone that is not whole: only the webhook makes it wait for all that it refuses.
    const waits = isJudged(set) && losses.isWhole(name, before);
    const under = set.metadata.annotations?.[LEADER] !== undefined || mirrors(set) ? to : undefined;
    const lost = losses.find({ but: name, losses: waits ? UNREADY : LEAVING, under, before });
    const isOutdated = waits && !losses.hasOutdated(name);
    return (
      lost ??
      missedBut(name, to, reads.askedAt(actor)) ??
      (isOutdated ? losses.find({ but: name, losses: ["is outdated"], before }) : undefined)
    );
  }

  /** A reconciler changes the replicas of a zone that it has read in this version. */
  function onScaled(before: KubeObject, after: number, { actor, sentAt = 0 }: Caller): void {
    const { name, annotations = {} } = before.metadata;
    const acts = actsOf(actor);
    const what = `${actor} scales ${name} to ${after}`;
    const leaving = [...leavingSince].find(([, since]) => since < reads.listedAt(actor, DECIDED_LISTS));
    if (leaving) violated(`${what}, and has read that ${leaving[0]} is being deleted`);
    const isMirror = annotations[LEADER] === undefined && mirrors(before);
    const delay = annotations[DELAY_URL] === undefined ? undefined : annotations[DELAY];
    if (isMirror && delay !== undefined && !DURATION.test(delay) && delay !== "0")
      violated(`${what}, whose delay is ${delay}`);
    if (after >= replicasOf(before) || isForced(before)) return;
    if (isMirror && template && template.since < acts.referredAt && after < template.replicas)
      violated(`${what}, and has read that the template has ${template.replicas}`);
    if ((acts.released.get(name) ?? -Infinity) >= sentAt)
      violated(`${what}, and has released its reservation while that was on its way`);
    onShrunk(before, after, actor, sentAt);
  }

  function onShrunk(before: KubeObject, after: number, actor: string, sentAt: number): void {
    const { name } = before.metadata;
    const what = `${actor} shrinks ${name}`;
    const listedAt = reads.askedAt(actor);
    const heldSince = reads.heldSince(actor);
    const needsTimes = before.metadata.labels?.[MIN_TIME] ?? before.metadata.annotations?.[LEADER];
    if (needsTimes !== undefined && actsOf(actor).trackedAt < listedAt)
      violated(`${what} without having read since when others may`);
    const known = isJudged(before) ? listedAt : (heldSince ?? listedAt);
    const admitted = admittedBut(name, known);
    if (admitted !== undefined) violated(`${what}, and has read that ${admitted}`);
    const lost = whyNotShrink(before, after, actor);
    if (lost !== undefined) violated(`${what}, and has read that ${lost}`);
    if (!isJudged(before) && losses.takesServing(name, after, now())) {
      if (heldSince === undefined && reads.releasedAt(actor) < sentAt)
        violated(`${what} without the downscale Lease of its group`);
      else if (reads.releasedAt(actor) > sentAt)
        violated(`${what}, and has given the downscale Lease back while that was on its way`);
      else if (heldSince !== undefined && listedAt < heldSince)
        violated(`${what} by a list from before it took the Lease`);
    }
  }

  /** A write of replicas reaches the API server, which may refuse it. */
  function onWrite({ actor, call, sentAt = now() }: Caller, { zone, body, status, limitMs }: Write): void {
    const to = numberOf(dig(body, "spec", "replicas"));
    if (to === undefined) return;
    const acts = actsOf(actor);
    const listedAt = reads.listedAt(actor);
    if (acts.scaled && listedAt < acts.scaled.at && sentAt > acts.scaled.at)
      violated(`${actor} sends ${call} without another list since it scaled ${acts.scaled.zone}`);
    if (reads.passedAt(actor) < (acts.refusedAt.get(zone) ?? -Infinity))
      violated(`${actor} sends ${call} again in the tick in which it was refused`);
    if (REFUSED.has(status)) acts.refusedAt.set(zone, now());
    acts.answeredAt = now();
    const version = textOf(dig(body, "metadata", "resourceVersion")) ?? "";
    // A zone that grows needs no second look: the write is refused.
    const set = setOf(zone);
    const known = knownAt(actor);
    // What it has read while the write was on its way, or waited for its turn, changes nothing.
    const isPrompt = known <= sentAt && shape.callsPerSecond === undefined;
    if (set && to < replicasOf(set) && isPrompt && (outdatedAt.get(version) ?? Infinity) < known)
      violated(`${actor} sends ${call} by a version that it has read to be outdated`);
    if (status < 300 || status === CONFLICT || status >= SERVER_ERROR) acts.scaled = { at: now(), zone };
    const reserved = acts.reserved.get(zone);
    if (REFUSED.has(status) && reserved) left.push({ ...reserved, refusedAt: now() });
    if (!set) return;
    judgePinned(actor, set, { zone, to, status, sentAt, call });
    const heldSince = reads.heldSince(actor);
    const before = status < 300 ? earlier.get(zone) : set;
    const from = before ? replicasOf(before) : 0;
    const isUnderLease = heldSince !== undefined && to < from && !isJudged(set) && !isForced(set);
    if (isUnderLease && sentAt + limitMs > heldSince + LEASE_MS)
      violated(`${actor} sends ${call}, which may end after its downscale Lease has passed to another`);
    if (isUnderLease && REFUSED.has(status))
      kept.push({
        at: now() + GIVEN_BACK_MS,
        isKept: () => reads.heldSince(actor) === heldSince,
        what: `${actor} keeps the downscale Lease after ${call} was refused`,
      });
    const time = dig(body, "metadata", "annotations", LAST_DOWNSCALE);
    if (status < 300 && before && to < from && typeof time === "string") onTimed(actor, { set, before, time });
  }

  /** What was accepted and changed nothing is not asked for again at once. */
  function judgePinned(actor: string, set: KubeObject, { zone, to, status, sentAt, call }: Asked): void {
    const { pinnedAt } = actsOf(actor);
    const key = `${zone} ${set.metadata.uid} ${to}`;
    const agoMs = sentAt - (pinnedAt.get(key) ?? -Infinity);
    if (agoMs >= 0 && agoMs < PINNED_MS)
      violated(`${actor} sends ${call} again ${agoMs} ms after the zone was left as it is`);
    const before = earlier.get(zone) ?? set;
    const isLeft = to !== replicasOf(set) && replicasOf(before) === replicasOf(set);
    if (status < 300 && isLeft) pinnedAt.set(key, now());
  }

  /** Others may have given it another number than was asked for, or left it as it is. */
  function onTimed(actor: string, { set, before, time }: Timed): void {
    const { name } = set.metadata;
    if (replicasOf(set) < replicasOf(before)) happenedAt.set(name, time);
    else if (timeOf(before) !== time)
      kept.push({
        at: now() + RELEASED_MS,
        isKept: () => timeOf(setOf(name)) === time,
        what: `${actor} leaves the time ${time} of a downscale of ${name} that did not happen`,
      });
  }

  /** What was refused is released by now, if no call has failed. */
  function judgeLeft(): void {
    for (const [i, { at, isKept, what }] of [...kept.entries()].toReversed()) {
      if (now() < at) continue;
      kept.splice(i, 1);
      if (isKept() && isQuiet(at - RELEASED_MS)) violated(what);
    }
    while (left[0] && now() - left[0].refusedAt > RELEASED_MS) {
      const [{ key, time, at, refusedAt }] = left.splice(0, 1) as [Left];
      const isLeft = listBudgets().some((one) => dig(dig(one, "status", "disruptedPods"), key, "time") === time);
      if (isLeft && isQuiet(at))
        violated(`${key} is still reserved ${now() - refusedAt} ms after its write was refused`);
    }
  }

  function onBudget({ object, previous }: StoreEvent, { actor, sentAt = now() }: Caller): void {
    const [before = {}, after = {}] = [previous, object].map((one) => fieldsOf(dig(one, "status", "disruptedPods")));
    const acts = actsOf(actor);
    for (const key of Object.keys({ ...before, ...after })) {
      const [, zone = "", from = ""] = /^(.+)-(\d+)\+$/.exec(key) ?? [];
      const set = setOf(zone);
      const time = dig(after[key], "time");
      if (!set || !shape.zones.includes(zone) || time === dig(before[key], "time")) continue;
      // One that was replaced counts again once its successor is released.
      const isOlder = Date.parse(String(time)) < Date.parse(String(dig(before[key], "time")));
      const isReleased = time === undefined || isOlder;
      const since = acts.reserved.get(zone)?.at ?? Infinity;
      const isOpen = reads.unknownAt() > Math.max(since, acts.answeredAt) && now() - reads.unknownAt() < RELEASED_MS;
      if (isReleased && isOpen && replicasOf(set) > Number(from))
        violated(`${actor} releases ${key}, although its write may still take effect`);
      if (isReleased) acts.released.set(zone, sentAt);
      else acts.reserved.set(zone, { at: now(), key, time });
      const lost = isReleased || isForced(set) ? undefined : whyNotShrink(set, Number(from), actor);
      if (lost !== undefined) violated(`${actor} reserves ${key}, and has read that ${lost}`);
    }
  }

  function onZone({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const { name, deletionTimestamp } = object.metadata;
    if (type === "DELETED") leavingSince.delete(name);
    else if (deletionTimestamp !== undefined && !leavingSince.has(name)) leavingSince.set(name, now());
    if (!previous || type !== "MODIFIED") return;
    outdatedAt.set(previous.metadata.resourceVersion, now());
    earlier.set(name, previous);
    if (!caller || !isReconciler(caller)) return;
    const [had, has] = [previous, object].map((set) => dig(set, "status", "replicas"));
    if (had !== has)
      violated(`${caller.actor} writes that ${name} has ${String(has)} pods, which its controller counts`);
    const isScaled = replicasOf(previous) !== replicasOf(object);
    const { asked } = actsOf(caller.actor);
    // Fewer than it has asked for are not its doing.
    const least = asked?.sentAt === caller.sentAt ? (asked?.replicas ?? 0) : 0;
    if (isScaled) onScaled(previous, Math.max(replicasOf(object), least), caller);
    const [before, after] = [previous, object].map(timeOf);
    const isBack = before !== undefined && !(Date.parse(after ?? "") >= Date.parse(before));
    if (isBack && happenedAt.get(name) === before)
      violated(`${caller.actor} forgets that ${name} was scaled down at ${before}`);
  }

  return {
    /** To be told of an event before what happens by it is known elsewhere. */
    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      const { resource, object } = event;
      judgeLeft();
      if (object.metadata.namespace !== NAMESPACE) return;
      if (resource === "statefulsets.apps" && shape.zones.includes(object.metadata.name)) onZone(event, caller);
      if (resource === BUDGETS && caller && isReconciler(caller)) onBudget(event, caller);
      if (resource !== TEMPLATES || object.metadata.name !== GROUP) return;
      const replicas = Number(dig(object, "spec", "replicas") ?? 0);
      if (template?.replicas !== replicas) template = { replicas, since: now() };
    },
    onSent({ actor, sentAt = now() }: Caller, method: string, path: string, body: string): void {
      if (!actor.startsWith("reconciler") || !SCALED.test(`${method} ${path}`)) return;
      const replicas = numberOf(dig(JSON.parse(body || "{}"), "spec", "replicas"));
      if (replicas !== undefined) actsOf(actor).asked = { sentAt, replicas };
    },
    /** A request reached the API server. */
    onAnswered(caller: Caller, method: string, path: string, body: string, status: number): void {
      if (!isReconciler(caller)) return;
      const request = `${method} ${path}`;
      const acts = actsOf(caller.actor);
      const [, zone] = SCALED.exec(request) ?? [];
      const limitMs = Number(/\btimeout=(\d+)ms/.exec(path)?.[1] ?? Infinity);
      if (zone !== undefined && shape.zones.includes(zone))
        onWrite(caller, { zone, body: JSON.parse(body || "{}"), status, limitMs });
      if (TRACKER.test(request) && (status < 300 || status === 404)) acts.trackedAt = caller.sentAt ?? now();
      if (REFERENCE.test(request) && status < 300) acts.referredAt = caller.sentAt ?? now();
    },
  };
}

const isReconciler = ({ actor }: Caller): boolean => actor.startsWith("reconciler");
/** A webhook judges its downscales; of a zone that must not shrink it refuses them unasked. */
const isJudged = (set: KubeObject): boolean =>
  set.metadata.labels?.["grafana.com/prepare-downscale"] === "true" && !isPinned(set);
const isForced = ({ metadata: { annotations } }: KubeObject): boolean =>
  annotations?.["grafana.com/rollout-force-replicas"] !== undefined;
const mirrors = ({ metadata: { annotations } }: KubeObject): boolean =>
  annotations?.["grafana.com/rollout-mirror-replicas-from-resource-name"] === GROUP;
