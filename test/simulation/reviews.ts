/**
 * Judges what a webhook that lets pods go must have known (§5.1, §5.12). It reads after the review has arrived: so it
 * knows what was true before, and is until it answers.
 *
 *   review arrives -> budgets -> StatefulSets and pods -> reservation -> answer
 */
import { dig, fieldsOf, textOf } from "../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../emulator/store.ts";
import { isAskedAbout } from "./deletions/safety.ts";
import { BUDGET, BUDGETS, GROUP, NAMESPACE, ordinalOf, zoneOf } from "./names.ts";
import type { Caller, Review } from "./network.ts";
import { createPast, createSince } from "./past.ts";
import { isDryRun } from "./reservations.ts";
import { mayBeStale, misjudgedMs, type Shape } from "./shape.ts";
import { isEnding, isReady, replicasOf } from "./stored.ts";

export interface ReviewSafetyOptions {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  readonly now: () => number;
}

const [EVICTION, DELETION] = ["/admission/mutate-pod-eviction", "/admission/pod-deletion"];
/** For which what a pod, and a downscale, has reserved counts. */
const [LASTS_MS, DOWNSCALE_LASTS_MS] = [120_000, 90_000];
/** Of processes that let pods go, and never take it back. */
const FOR_GOOD = /^webhook_(?!responder_)/;
/** A downscale waits no longer for a pod that is to go as well, and does not come up. */
const GIVEN_UP_MS = 280_000;
/** No zone has more pods. */
const MAX_PODS = 16;
const BUDGETS_READ = /\/zoneawarepoddisruptionbudgets(?:[/?]|$)/;
const PODS_LIST = /\/pods(?:\?|$)/;
const SPENT = /pods? (?:not ready|unknown|to be removed)/;

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
  readonly server: string;
}

/** Calls `violated` with what happened, in words. */
export function createReviewSafety({ shape, violated, now }: ReviewSafetyOptions) {
  const past = createPast(now, mayBeStale(shape));
  const since = createSince(now);
  const pods = new Map<string, KubeObject>();
  const sets = new Map<string, KubeObject>();
  const budgets = new Map<string, KubeObject>();
  /** What the budget has allowed, and from when on. */
  const limits: { readonly at: number; readonly max: number }[] = [];
  /** By key for whom and by whom it is reserved, and since when at the latest, as its time says or it was written. */
  const reserved = new Map<string, { readonly uid: string; readonly by: string; readonly at: number }>();
  /** By the UID of a review. */
  const asked = new Map<string, Asked>();
  /** When anything that is counted was last written. */
  let changedAt = -Infinity;

  const seen = past.seenAt;
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
      const isReserved = uid !== undefined && reserved.get(name)?.uid === uid;
      since.note(`${name} reserved`, isReserved);
      since.note(`${name} away or reserved`, isReserved || isAway(name));
    }
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

  const isReservedSince = (name: string, at: number): boolean =>
    since.before(`${name} reserved`, at) && now() - (reserved.get(name)?.at ?? 0) < LASTS_MS - misjudgedMs(shape);

  /** True for a pod that is not there, or is to go, as who was asked has read. */
  function isMissed(name: string, { at, budgetsAt = at, podsAt = at }: Read): boolean {
    const isWanted = ordinalOf(name) < replicasOf(sets.get(zoneOf(name)));
    const isAwaySince =
      since.before(`${name} away`, seen(podsAt)) && since.before(`${name} ${isWanted ? "wanted" : "not"}`, seen(at));
    const key = shrinkOf(name);
    const isShrinking = key !== undefined && since.before(`${key} reserved`, seen(budgetsAt));
    // It was reserved, and has gone since: whoever reads the budget before the pods sees one of both.
    const isGoing = !mayBeStale(shape) && since.before(`${name} away or reserved`, budgetsAt) && isAway(name);
    return isAwaySince || isShrinking || isGoing || isReservedSince(name, seen(budgetsAt));
  }

  /** The most that the budget has allowed since then. */
  function limitSince(at: number): number {
    const from = limits.findLastIndex((one) => one.at < at);
    return Math.max(...limits.slice(Math.max(0, from)).map(({ max }) => max));
  }

  function onAllowed(review: Asked): void {
    const { name, uid } = review;
    const at = seen(review.at);
    const pod = pods.get(name);
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

  /** An eviction is denied for pods that are missing, and none is. */
  function onDenied({ name, at }: Asked, message: string): void {
    const isQuiet = changedAt < seen(at) && reserved.size === 0 && since.before("one", seen(at));
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
    if (type === "DELETED") budgets.delete(name);
    else budgets.set(name, object);
    const isInvalid = [...budgets.values()].some((one) => dig(one, "spec", "podNamePartitionRegex") === "([");
    since.note("invalid", budgets.size === 1 && isInvalid);
    since.note("several", budgets.size > 1);
    since.note("one", budgets.has(BUDGET) && budgets.size === 1 && !isInvalid);
    if (name !== BUDGET) return;
    limits.push({ at: now(), max: Number(dig(object, "spec", "maxUnavailable") ?? 1) });
    const entries = type === "DELETED" ? {} : fieldsOf(dig(object, "status", "disruptedPods"));
    for (const key of reserved.keys()) {
      if (Object.hasOwn(entries, key)) continue;
      reserved.delete(key);
      since.note(`${key} reserved`, false);
    }
    for (const [key, entry] of Object.entries(entries)) {
      const [uid = "", by = ""] = [textOf(dig(entry, "uid")), textOf(dig(entry, "by"))];
      const found = reserved.get(key);
      // Its own time may be earlier than that at which it was stored.
      const at = Math.min(now(), Date.parse(textOf(dig(entry, "time")) ?? "") || 0);
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
      if (!since.before("one", seen(at))) return undefined;
      const isGivenUp = (name: string): boolean => since.before(`${name} away`, now() - GIVEN_UP_MS);
      // It is to go as well, and is not made.
      const isNobodys = (name: string): boolean =>
        (shape.followers || shape.mirrored !== undefined) && ordinalOf(name) >= to && !pods.has(name);
      const others = shape.zones.filter((other) => other !== zone).flatMap(zoneNames);
      if (shape.partitioned) {
        const isUnready = (name: string): boolean =>
          pods.has(name) && since.before(`${name} away`, seen(at)) && since.before(`${name} wanted`, seen(at));
        const unready = others.filter((name) => isUnready(name) && !isGivenUp(name));
        const goes = (ordinal: number): boolean => ordinal >= to && pods.has(`${zone}-${ordinal}`);
        const limit = Math.max(1, limitSince(seen(at)));
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
      past.noteWrite();
      const { type, resource, object } = event;
      const { name, namespace } = object.metadata;
      const zone = resource === "pods" ? zoneOf(name) : name;
      if (resource === BUDGETS) onBudget(event);
      else if (namespace !== NAMESPACE || !shape.zones.includes(zone)) return;
      else if (resource === "pods" || resource === "statefulsets.apps") {
        const all = resource === "pods" ? pods : sets;
        if (type === "DELETED") all.delete(name);
        else all.set(name, object);
        lookAt(zone);
      } else return;
      changedAt = now();
    },
    /** A review reaches a webhook server. */
    onArrival(path: string, sent: string, server: string): void {
      if (path !== EVICTION && path !== DELETION) return;
      const request = fieldsOf(dig(JSON.parse(sent), "request"));
      if (path === DELETION && !isAskedAbout(request)) return;
      const pinned = dig(request, "object", "deleteOptions", "preconditions", "uid");
      const uid = textOf(path === DELETION ? dig(request, "oldObject", "metadata", "uid") : pinned);
      const [name = "", isDry] = [textOf(request["name"]), isDryRun(request)];
      asked.set(textOf(request["uid"]) ?? "", { name, uid, isDry, server, at: now() });
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
      if (path !== EVICTION && path !== DELETION) return;
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
