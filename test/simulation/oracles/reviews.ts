/**
 * Judges what a webhook that lets pods go must have known (§5.1, §5.12). It reads after the review has arrived: so it
 * knows what was true before, and is until it answers.
 *
 *   review arrives -> budgets -> StatefulSets and pods -> reservation -> answer
 */
import { dig, fieldsOf, isTrue, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { isAskedAbout } from "../deletions/safety.ts";
import { BUDGET, BUDGETS, EVICTION_PATHS, GROUP, NAMESPACE, ordinalOf, VALIDATING, zoneOf } from "../names.ts";
import type { Caller, Review } from "../network.ts";
import { createSince } from "./past.ts";
import { isDryRun } from "./reservations.ts";
import { delayMs, misjudgedMs, type Shape } from "../shape.ts";
import { isEnding, isReady, replicasOf, reservedOn, selectsGroup } from "./stored.ts";

export interface ReviewSafetyOptions {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  readonly now: () => number;
}

const DELETION = "/admission/pod-deletion";
/** For which what a pod, and a downscale, has reserved counts. */
const [LASTS_MS, DOWNSCALE_LASTS_MS] = [120_000, 90_000];
/** Of processes that let pods go, and never take it back. */
const FOR_GOOD = /^webhook_/;
/** A downscale waits no longer for a pod that is to go as well, and does not come up. */
const GIVEN_UP_MS = 280_000;
/** No zone has more pods. */
const MAX_PODS = 16;
const BUDGETS_READ = /\/zoneawarepoddisruptionbudgets(?:[/?]|$)/;
const PODS_LIST = /\/pods(?:\?|$)/;
/** It denies for pods that it counts, of a zone or a partition, also if it counts none. */
const SPENT = /pods? (?:not ready|unknown|to be removed)|^ in \S/;
/** From the review until what it lets go has gone: a webhook has 30 s, and the API server tries again for 10 s. */
const EFFECT_MS = 40_000;
/** The API server tries again for 10 s, by the name of the pod. */
const AGAIN_MS = 15_000;

const isOfGroup = ({ metadata }: KubeObject): boolean => metadata.labels?.["app"] === GROUP;
const isThere = (pod: KubeObject | undefined): boolean => pod !== undefined && isReady(pod);

/** When somebody began, and then first read the budgets, and the pods. */
interface Read {
  readonly at: number;
  budgetsAt?: number;
  podsAt?: number;
}

/** A request that reached a webhook. */
interface Asked extends Read {
  readonly name: string;
  /** The UID of the pod that it is about; undefined for whatever pod has the name. */
  readonly uid: string | undefined;
  readonly isDry: boolean;
  /** It may reach whatever pod has the name, and nobody can pin it. */
  readonly isUnpinned: boolean;
  readonly server: string;
}

/** Calls `violated` with what happened, in words. */
export function createReviewSafety({ shape, violated, now }: ReviewSafetyOptions) {
  const since = createSince(now);
  const pods = new Map<string, KubeObject>();
  const sets = new Map<string, KubeObject>();
  /** UIDs of pods that have been ready. */
  const served = new Set<string>();
  const budgets = new Map<string, KubeObject>();
  /** What the budget has allowed, and from when on. */
  const limits: { readonly at: number; readonly max: number }[] = [];
  /** By key for whom and by whom it is reserved, and since when at the latest, as its time says or it was written. */
  const reserved = new Map<string, { readonly uid: string; readonly by: string; readonly at: number }>();
  /** By key the time that what is reserved says, and when that was stored. */
  const written = new Map<string, { readonly time: string; readonly at: number }>();
  /** By UID of a pod when it was reserved for what may still take effect. */
  const reservedFor = {
    eviction: new Map<string, number>(),
    unpinned: new Map<string, number>(),
    rollout: new Map<string, number>(),
  };
  /** By name of a pod that is not there since when; of one that is when it came up, and since when it had not been. */
  const wentAt = new Map<string, number>();
  const came = new Map<string, { readonly at: number; readonly wentAt: number }>();
  /** By the UID of a review. */
  const asked = new Map<string, Asked>();
  /** When anything that is counted was last written. */
  let changedAt = -Infinity;

  const zoneNames = (zone: string): readonly string[] => Array.from({ length: MAX_PODS }, (_, i) => `${zone}-${i}`);

  /** True for a pod that its zone lacks, or is to lose; by partition also for one that no zone lacks but its peers. */
  function isAway(name: string): boolean {
    const [set, pod] = [sets.get(zoneOf(name)), pods.get(name)];
    if (!set || !isOfGroup(set) || isEnding(set)) return false;
    const isWanted = ordinalOf(name) < replicasOf(set);
    if (shape.partitioned) return !isWanted || !isThere(pod);
    return isWanted !== isThere(pod);
  }

  function lookAt(zone: string): void {
    const replicas = replicasOf(sets.get(zone));
    for (const name of zoneNames(zone)) {
      const uid = pods.get(name)?.metadata.uid;
      since.note(`${name} away`, isAway(name));
      since.note(`${name} wanted`, ordinalOf(name) < replicas);
      since.note(`${name} not`, ordinalOf(name) >= replicas);
      since.note(`${name} ${uid}`, true);
      since.note(`${name} ${uid} ending`, uid !== undefined && isEnding(pods.get(name) as KubeObject));
      since.note(`${name} untimed`, isUntimed(pods.get(name)));
      const isReserved = uid !== undefined && reserved.get(name)?.uid === uid;
      since.note(`${name} reserved`, isReserved);
      // What was reserved for long has not been missing since then.
      if (isOver(name)) since.note(`${name} away or reserved`, false);
      const isMissing = isAway(name) || (isReserved && !isOver(name));
      since.note(`${name} away or reserved`, isMissing, since.all.get(`${name} away`));
    }
  }

  /** It comes up, a container of it starts again, or it goes. */
  function noteComing(name: string, before: KubeObject | undefined): void {
    const pod = pods.get(name);
    if (!isThere(pod)) {
      came.delete(name);
      if (!wentAt.has(name)) wentAt.set(name, now());
      return;
    }
    const isAnew = before?.metadata.uid !== pod?.metadata.uid || startsOf(before) !== startsOf(pod);
    if (isAnew && came.has(name)) came.set(name, { at: now(), wentAt: now() });
    if (!came.has(name)) came.set(name, { at: now(), wentAt: wentAt.get(name) ?? now() });
    wentAt.delete(name);
  }

  /** True for a pod that has not been ready for as long as its budget wants, as who was asked has read. */
  function isFresh(name: string, { at, podsAt = at }: Read): boolean {
    const set = sets.get(zoneOf(name));
    if (delayMs(shape) === 0 || !set || !isOfGroup(set) || isEnding(set) || ordinalOf(name) >= replicasOf(set))
      return false;
    if (since.before(`${name} untimed`, podsAt)) return true;
    const { at: upAt = -Infinity, wentAt: wasAt = Infinity } = came.get(name) ?? {};
    return wasAt < podsAt && now() - upAt < delayMs(shape) - misjudgedMs(shape);
  }

  /** The key of a reserved downscale that takes this pod, which its zone still has. */
  const shrinkOf = (name: string): string | undefined =>
    [...reserved].find(([key, { uid, at }]) => {
      const [, zone, from] = /^(.+)-(\d+)\+$/.exec(key) ?? [];
      const set = zone === zoneOf(name) ? sets.get(zone) : undefined;
      return (
        set?.metadata.uid === uid &&
        ordinalOf(name) >= Number(from) &&
        replicasOf(set) > Number(from) &&
        now() - at < DOWNSCALE_LASTS_MS - misjudgedMs(shape)
      );
    })?.[0];

  /** True for a pod that has been reserved for too long to count. */
  const isOver = (name: string): boolean =>
    now() - (reserved.get(name)?.at ?? Infinity) >= LASTS_MS - misjudgedMs(shape);
  const isReservedSince = (name: string, at: number): boolean => since.before(`${name} reserved`, at) && !isOver(name);

  /** True for a pod that is not there, or is to go, as who was asked has read. */
  function isMissed(name: string, { at, budgetsAt = at, podsAt = at }: Read): boolean {
    const isWanted = ordinalOf(name) < replicasOf(sets.get(zoneOf(name)));
    const isAwaySince =
      since.before(`${name} away`, podsAt) && since.before(`${name} ${isWanted ? "wanted" : "not"}`, at);
    const key = shrinkOf(name);
    const isShrinking = key !== undefined && since.before(`${key} reserved`, budgetsAt);
    // It was reserved, and has gone since: whoever reads the budget before the pods sees one of both.
    const isGoing = since.before(`${name} away or reserved`, budgetsAt) && isAway(name);
    const read = { at, budgetsAt, podsAt };
    return isAwaySince || isShrinking || isGoing || isReservedSince(name, budgetsAt) || isFresh(name, read);
  }

  /** The most that the budget has allowed since then. */
  function limitSince(at: number): number {
    const from = limits.findLastIndex((one) => one.at < at);
    return Math.max(...limits.slice(Math.max(0, from)).map(({ max }) => max));
  }

  function onAllowed(review: Asked): void {
    const { name, uid } = review;
    const at = review.at;
    const pod = pods.get(name);
    if (review.isUnpinned && pod && isOfGroup(pod) && since.before(`${name} ${pod.metadata.uid} ending`, at))
      if (since.before("one", at)) violated(`a webhook lets whatever pod is ${name} go, which ends already`);
    const isJudged = pod && isOfGroup(pod) && !isEnding(pod) && !/Failed|Succeeded/.test(phaseOf(pod));
    if (!isJudged || (uid !== undefined && uid !== pod.metadata.uid)) return;
    if (!since.before(`${name} ${pod.metadata.uid}`, at)) return;
    const condemn = (why: string): void => violated(`a webhook lets ${name} go, and had read that ${why}`);
    if (since.before("invalid", at)) condemn("its budget is invalid");
    if (since.before("several", at)) condemn("it is under two budgets");
    if (!since.before("one", at)) return;
    const zone = zoneOf(name);
    const limit = limitSince(at);
    if (limit === 0) condemn("its budget allows nothing");
    const found = reserved.get(name);
    if (!review.isDry && (found?.uid !== pod.metadata.uid || !FOR_GOOD.test(found.by)))
      violated(`a webhook lets ${name} go by a reservation ${found ? `of ${found.by}` : "that nobody has made"}`);
    if (!review.isDry && found?.uid === pod.metadata.uid) judgeReserved(review, found.uid);
    const others = shape.zones.filter((other) => other !== zone).flatMap(zoneNames);
    const missed = others.filter((other) => isMissed(other, review));
    if (shape.partitioned) {
      const peers = missed.filter((other) => ordinalOf(other) === ordinalOf(name));
      if (peers.length >= limit) condemn(`${peers.join(", ")} are missing`);
      return;
    }
    if (missed[0] !== undefined) condemn(`${missed[0]} of another zone is missing`);
    const own = zoneNames(zone).filter(
      (other) => other !== name && since.before(`${other} wanted`, at) && isMissed(other, review) && !shrinkOf(other),
    );
    if (own.length >= limit) condemn(`${own.join(", ")} of its zone are missing`);
  }

  /** What it lets go is reserved for as long as it may take, and meets no other disruption of the pod halfway. */
  function judgeReserved({ name, at, isUnpinned }: Asked, uid: string): void {
    const stored = written.get(name)?.at ?? now();
    const skewMs = 2 * misjudgedMs(shape);
    // One that is far ahead counts for longer than its time, until somebody writes it again.
    const leftMs = LASTS_MS - (now() - Math.max(stored, Date.parse(written.get(name)?.time ?? "") || 0));
    if (leftMs < EFFECT_MS - skewMs) violated(`a webhook lets ${name} go, which is reserved for ${leftMs} ms more`);
    if (isUnpinned && stored < at) violated(`a webhook lets whatever pod is ${name} go by an earlier reservation`);
    const { eviction, unpinned, rollout } = reservedFor;
    const isIn = (found: number | undefined, ms: number): boolean =>
      found !== undefined && found < at && now() - found < ms - skewMs;
    if (isIn((isUnpinned ? eviction : unpinned).get(uid), AGAIN_MS))
      violated(`a webhook lets ${name} go twice at once, once whatever pod has the name`);
    if (isUnpinned && isIn(rollout.get(uid), LASTS_MS))
      violated(`a webhook lets whatever pod is ${name} go, which the rollout may delete`);
    eviction.set(uid, stored);
    if (isUnpinned) unpinned.set(uid, stored);
  }

  /** An eviction is denied for pods that are missing, and none is. */
  function onDenied({ name, at }: Asked, message: string): void {
    const waitedMs = delayMs(shape) === 0 ? 0 : delayMs(shape) + misjudgedMs(shape);
    const isOver = [...reserved.keys()].every(
      (key) => now() - (written.get(key)?.at ?? Infinity) > LASTS_MS + 2 * misjudgedMs(shape) + EFFECT_MS,
    );
    // Nobody knows for how long it has been ready.
    const isUntimedOne = waitedMs > 0 && [...pods.values()].some(isUntimed);
    const isQuiet = changedAt + waitedMs < at && isOver && !isUntimedOne && since.before("one", at);
    if (SPENT.test(message) && isQuiet && shape.zones.every(isWhole))
      violated(`a webhook denies to let ${name} go although no pod is missing: ${message}`);
  }

  /** It has the pods that all zones have, all ready, and its status counts them. */
  function isWhole(zone: string): boolean {
    const [set, first] = [sets.get(zone), sets.get(shape.zones[0] ?? "")];
    const ready = zoneNames(zone).filter((name) => isThere(pods.get(name)));
    const [all, counted] = [zoneNames(zone).filter((name) => pods.has(name)), dig(set, "status", "replicas")];
    return (
      set !== undefined &&
      first !== undefined &&
      replicasOf(set) === replicasOf(first) &&
      [all.length, ready.length, Number(counted ?? 0)].every((count) => count === replicasOf(set))
    );
  }

  function onBudget({ type, object }: StoreEvent): void {
    const { name } = object.metadata;
    if (!selectsGroup(object)) return;
    if (type === "DELETED") budgets.delete(name);
    else budgets.set(name, object);
    const isInvalid = [...budgets.values()].some((one) => dig(one, "spec", "podNamePartitionRegex") === "([");
    since.note("invalid", budgets.size === 1 && isInvalid);
    since.note("several", budgets.size > 1);
    since.note("one", budgets.has(BUDGET) && budgets.size === 1 && !isInvalid);
    if (name !== BUDGET) return;
    limits.push({ at: now(), max: Number(dig(object, "spec", "maxUnavailable") ?? 1) });
    if (type === "DELETED") for (const one of Object.values(reservedFor)) one.clear();
    const entries = type === "DELETED" ? {} : reservedOn(object);
    for (const key of reserved.keys()) {
      if (Object.hasOwn(entries, key)) continue;
      const gone = reserved.get(key);
      if (gone && !gone.by.startsWith("webhook_")) reservedFor.rollout.delete(gone.uid);
      reserved.delete(key);
      written.delete(key);
      since.note(`${key} reserved`, false);
    }
    for (const [key, entry] of Object.entries(entries)) {
      const [uid = "", by = ""] = [textOf(dig(entry, "uid")), textOf(dig(entry, "by"))];
      const found = reserved.get(key);
      const time = textOf(dig(entry, "time")) ?? "";
      if (written.get(key)?.time !== time || found?.uid !== uid) {
        written.set(key, { time, at: now() });
        if (!by.startsWith("webhook_")) reservedFor.rollout.set(uid, now());
      }
      // Its own time may be earlier than that at which it was stored.
      const at = Math.min(now(), Date.parse(time) || 0);
      if (found?.uid !== uid || found.by !== by || found.at > at) reserved.set(key, { uid, by, at });
      if (key.endsWith("+")) {
        if (found?.uid !== uid) since.note(`${key} reserved`, false);
        since.note(`${key} reserved`, true);
      }
    }
    for (const zone of shape.zones) lookAt(zone);
  }

  return {
    /**
     * A pod that a zone other than this one has missed since before that time, so that its budget lets this one lose none
     * as it gets so many replicas (§5.11), in words; by partition the peers of a pod that goes.
     */
    missedBut(zone: string, to: number, at: number): string | undefined {
      if (!since.before("one", at)) return undefined;
      const isGivenUp = (name: string): boolean => since.before(`${name} away`, now() - GIVEN_UP_MS);
      // It is to go as well, and is not made; or its zone is not to have it, and it has never served.
      const isNobodys = (name: string): boolean => {
        const pod = pods.get(name);
        if (!pod) return (shape.followers || shape.mirrored !== undefined) && ordinalOf(name) >= to;
        return ordinalOf(name) >= replicasOf(sets.get(zoneOf(name))) && !served.has(pod.metadata.uid);
      };
      const others = shape.zones.filter((other) => other !== zone).flatMap(zoneNames);
      if (shape.partitioned) {
        const isUnready = (name: string): boolean =>
          pods.has(name) &&
          since.before(`${name} wanted`, at) &&
          (since.before(`${name} away`, at) || isReservedSince(name, at) || isFresh(name, { at }));
        const unready = others.filter((name) => isUnready(name) && !isGivenUp(name));
        const goes = (ordinal: number): boolean => ordinal >= to && pods.has(`${zone}-${ordinal}`);
        const limit = Math.max(1, limitSince(at));
        const found = unready.find(
          (name) =>
            goes(ordinalOf(name)) && unready.filter((one) => ordinalOf(one) === ordinalOf(name)).length >= limit,
        );
        return found && `${found} is missing, as many peers as may be`;
      }
      const missed = others.find((name) => isMissed(name, { at }) && !isGivenUp(name) && !isNobodys(name));
      return missed && `${missed} is missing`;
    },
    onEvent(event: StoreEvent): void {
      const { type, resource, object } = event;
      const { name, namespace } = object.metadata;
      const zone = resource === "pods" ? zoneOf(name) : name;
      if (resource === BUDGETS) onBudget(event);
      else if (namespace !== NAMESPACE || !shape.zones.includes(zone)) return;
      else if (resource === "pods" || resource === "statefulsets.apps") {
        const all = resource === "pods" ? pods : sets;
        const before = all.get(name);
        if (type === "DELETED") all.delete(name);
        else all.set(name, object);
        if (resource === "pods" && isReady(object)) served.add(object.metadata.uid);
        if (resource === "pods") noteComing(name, before);
        lookAt(zone);
      } else return;
      changedAt = now();
    },
    /** A review reaches a webhook server. */
    onArrival(path: string, sent: string, server: string): void {
      if (!EVICTION_PATHS.has(path) && path !== DELETION) return;
      const request = fieldsOf(dig(JSON.parse(sent), "request"));
      if (path === DELETION && !isAskedAbout(request)) return;
      const pinned = dig(request, "object", "deleteOptions", "preconditions", "uid");
      const uid = textOf(path === DELETION ? dig(request, "oldObject", "metadata", "uid") : pinned);
      const [name = "", isDry] = [textOf(request["name"]), isDryRun(request)];
      const isUnpinned = path === VALIDATING && uid === undefined;
      asked.set(textOf(request["uid"]) ?? "", { name, uid, isDry, isUnpinned, server, at: now() });
    },
    onRequest({ actor }: Caller, method: string, path: string): void {
      if (method !== "GET") return;
      const [isBudget, isPods] = [BUDGETS_READ.test(path), PODS_LIST.test(path)];
      for (const review of asked.values()) {
        if (review.server !== actor) continue;
        if (isBudget) review.budgetsAt ??= now();
        if (isPods) review.podsAt ??= now();
      }
    },
    onReview({ path, status, sent, answer }: Pick<Review, "path" | "status" | "sent" | "answer">): void {
      if (!EVICTION_PATHS.has(path) && path !== DELETION) return;
      const id = textOf(dig(JSON.parse(sent), "request", "uid")) ?? "";
      const found = asked.get(id);
      asked.delete(id);
      if (!found || status !== 200) return;
      const response = fieldsOf(dig(JSON.parse(answer), "response"));
      if (response["allowed"] === true) onAllowed(found);
      else onDenied(found, textOf(dig(response, "status", "message")) ?? "");
    },
  };
}

const phaseOf = (pod: KubeObject): string => textOf(dig(pod, "status", "phase")) ?? "";

/** When its containers started, as its kubelet says. */
const startsOf = (pod: KubeObject | undefined): string =>
  listOf(dig(pod, "status", "containerStatuses"))
    .map((one) => textOf(dig(one, "state", "running", "startedAt")))
    .join();

/** It is ready, and nothing says since when. */
const isUntimed = (pod: KubeObject | undefined): boolean =>
  isTrue(pod, "Ready") &&
  listOf(dig(pod, "status", "conditions")).some(
    (one) => dig(one, "type") === "Ready" && dig(one, "lastTransitionTime") === undefined,
  );
