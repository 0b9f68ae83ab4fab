/**
 * The first oracle: what must never happen, judged from the store's history alone. It shares no rule with the product.
 *
 * A pod is *disrupted by us* from the moment a reconciler deletes it, or an eviction of it is allowed, while it is
 * ready, until the pod of its name is ready again or is no longer wanted.
 */
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { dig, type Fields, fieldsOf, textOf } from "../../emulator/objects.ts";
import type { Caller, Review } from "../network.ts";
import { BUDGET, BUDGETS, EVICTION_PATHS, GROUP, NAMESPACE, ordinalOf, PINNING, zoneOf } from "../names.ts";
import { MISJUDGED_MS, misjudgedMs, secondsBetweenOf, type Shape } from "../shape.ts";
import { downscaleOf, isLeftBehind, isPinned, isReady, sizeLeft } from "./stored.ts";

interface SafetyOptions {
  readonly shape: Shape;
  /** Of the zones; that of the installation if undefined. */
  readonly namespace?: string;
  readonly violated: (what: string) => void;
  /** True for the UID of a pod that has confirmed that it prepares for its shutdown. */
  readonly isPrepared: (uid: string) => boolean;
  /** Since when the pod of this UID knows that it goes later. */
  readonly leavingSince: (uid: string) => number | undefined;
  /** What the budget says is disrupted: the UID of a pod by its name, or that of a zone that shrinks. */
  readonly reservations: () => Readonly<Record<string, unknown>>;
  readonly listPods: (zone: string) => readonly KubeObject[];
  readonly now: () => number;
  /** How many milliseconds ago what this actor does now may have been decided. */
  readonly decidedMs?: ((actor: string) => number) | undefined;
  /** True of a pod that begins to end because the webhook has let somebody delete it. */
  readonly isLetGo?: ((event: StoreEvent, caller: Caller) => boolean) | undefined;
}

export interface Safety {
  readonly onEvent: (event: StoreEvent, caller: Caller | undefined) => void;
  /** A request leaves a process, also one to a pod. */
  readonly onSent: (caller: Caller) => void;
  readonly onReview: (review: Review) => void;
  /** A review that the API server gets no answer to. */
  readonly onUnanswered: (path: string, sent: string) => void;
  /** A handshake of the API server with a webhook server for this path; what is wrong with it, if anything. */
  readonly onHandshake: (path: string, problem: string | undefined) => void;
}

interface Disrupted {
  readonly zone: string;
  readonly ordinal: number;
  readonly uid: string;
  readonly by: string;
  readonly isRollout: boolean;
  /** Somebody deletes it, whom the webhook let. */
  readonly isLetGo: boolean;
}

const isEviction = ({ call }: Caller): boolean => call.endsWith("/eviction");
const isReconciler = ({ actor }: Caller): boolean => actor.startsWith("reconciler");

/** Paths of the webhooks that let pods go. */
const [EVICTION, DOWNSCALE] = [PINNING, "/admission/prepare-downscale"];

/** Of a pod: its name, its Service, its namespace. */
const HOST = new RegExp(`^[a-z0-9-]+\\.[a-z0-9-]+\\.${NAMESPACE}\\.svc\\.cluster\\.local\\.?$`);
const PINNED = "/admission/no-downscale";

/** Longer than a process stands still and a call is on its way: who judges has seen that the pod is not ready. */
const SICK_MS = 150_000;
/** So late the status of a StatefulSet may tell that a pod is not ready, also while its controller stands still. */
const [LATE_MS, STALLED_MS] = [2000, 20_000];
/** A write that was sent under the Lease may take so long until it takes effect: as long as the network is slow. */
const IN_FLIGHT_MS = 45_000;
/** For which a write may be on its way until others take it for lost. */
const ON_WAY_MS = 9000;
/** Longer than a webhook has for its answer, and what it allows takes to happen. */
const ASKED_MS = 15_000;
/** A downscale waits no longer for a pod of another zone that is to go as well, and does not come up. */
const GIVEN_UP_MS = 300_000;
/** A pod that is younger was made after its zone was judged. */
const YOUNG_MS = 60_000;

/** Its pods are prepared before they go. Whoever may not shrink at all is asked no further. */
const isToPrepare = (set: KubeObject | undefined): boolean =>
  set?.metadata.labels?.["grafana.com/prepare-downscale"] === "true" && !isPinned(set);

/** Calls `violated` with what happened, in words. */
export function createSafety(options: SafetyOptions): Safety {
  const { shape, violated, isPrepared, leavingSince, reservations, listPods, now, isLetGo } = options;
  const { namespace: own = NAMESPACE, decidedMs = () => SICK_MS } = options;
  /** The place of a pod in its zone, from 0 on. */
  const indexOf = (pod: string): number => ordinalOf(pod) - (shape.firstOrdinal ?? 0);
  const lateMs = shape.faults.controllerStalls > 0 || shape.firstCalls !== undefined ? STALLED_MS : LATE_MS;
  const disrupted = new Map<string, Disrupted>();
  /** Pods that are not ready, by whatever doing, and since when. */
  const sick = new Map<string, number>();
  /** When each zone was last scaled down by us. */
  const shrunkAt = new Map<string, number>();
  /** Since when there is a budget, and since when it is invalid. */
  let [budgetSince, brokenSince]: (number | undefined)[] = [];
  let hadBudget = false;
  /** Since when the budget has been what it is, with its reservations. */
  let keptSince = -Infinity;
  /** When a webhook last allowed something about an object. */
  const reviewed = new Map<string, number>();
  /** Paths of webhooks whose server has been trusted. */
  let trusted = new Set<string>();
  let spoiltAt = -Infinity;
  const replicas = new Map<string, number>(shape.zones.map((zone) => [zone, shape.replicas]));
  /** The most replicas that each zone has had. */
  const most = new Map(replicas);
  /** Zones whose StatefulSet is gone. */
  const gone = new Set<string>();

  function onPod(event: StoreEvent, caller: Caller | undefined): void {
    const { type, object, previous } = event;
    const { name, uid, deletionTimestamp, namespace } = object.metadata;
    const [, zone = "", ordinal = ""] = /^(.*)-(\d+)$/.exec(name) ?? [];
    if (namespace === own) judgeStranger(event, caller);
    if (namespace !== own || !replicas.has(zone)) return;
    const begins = type === "MODIFIED" && deletionTimestamp !== undefined && !previous?.metadata.deletionTimestamp;
    if (begins && caller && previous && isReady(previous)) {
      const wasLetGo = isLetGo?.(event, caller) ?? false;
      if (isReconciler(caller) || isEviction(caller) || wasLetGo)
        disrupt({
          zone,
          ordinal: Number(ordinal),
          uid,
          by: caller.actor,
          isRollout: isReconciler(caller),
          isLetGo: wasLetGo,
        });
    }
    if (type !== "DELETED" && isReady(object)) {
      sick.delete(name);
      if (disrupted.get(name)?.uid !== uid) disrupted.delete(name);
    } else if (!sick.has(name)) sick.set(name, now());
    forgetUnwanted();
  }

  /** A pod that looks like one of a zone, and that no StatefulSet controls. */
  function judgeStranger({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const { name, labels, ownerReferences = [], deletionTimestamp } = object.metadata;
    const isTaken = (type === "DELETED" || deletionTimestamp !== undefined) && !previous?.metadata.deletionTimestamp;
    if (isTaken && caller && isReconciler(caller) && labels?.["app"] === GROUP && ownerReferences.length === 0)
      violated(`${caller.actor} takes ${name}, which no StatefulSet controls`);
  }

  function disrupt(pod: Disrupted): void {
    const name = `${pod.zone}-${pod.ordinal}`;
    const isEvicted = !pod.isRollout && !pod.isLetGo;
    if (!pod.isRollout) {
      if (brokenSince !== undefined && now() - brokenSince > SICK_MS)
        violated(`${name} is ${pod.isLetGo ? "deleted" : "evicted"} although its budget has long been invalid`);
      if (!pod.isLetGo && !wasReviewed(EVICTION, name)) return;
    }
    // What cannot be pinned may reach a pod that has come since.
    if (isEvicted && shape.evictions?.validating && isNew(pod)) return;
    const isKept = pod.isRollout ? keepsReservations() : reservesNow();
    if (isKept && dig(reservations()[name], "uid") !== pod.uid)
      violated(`${name} is taken by ${pod.by} without a reservation`);
    if (!pod.isRollout && !isGuarded()) return;
    const others = [...disrupted.values()].filter(({ zone }) => zone !== pod.zone);
    const conflicting = shape.partitioned ? conflictingPeers(pod, others) : others;
    if (conflicting.length > 0)
      violated(
        `two zones at once: ${name} is taken by ${pod.by} while ${conflicting.map(nameOf).join(", ")} are missing`,
      );
    const sickMs = pod.isRollout ? Math.min(SICK_MS, decidedMs(pod.by) + lateMs) : SICK_MS;
    const ill = [...sick].find(([other, since]) => zoneOf(other) !== pod.zone && now() - since > sickMs);
    if (ill && (pod.isRollout || !shape.partitioned))
      violated(`${name} is taken by ${pod.by} while ${ill[0]} of another zone has long not been ready`);
    disrupted.set(name, pod);
    const own = [...disrupted.values()].filter(
      ({ zone, isRollout }) => zone === pod.zone && (isRollout || !shape.partitioned),
    );
    const limit = Math.max(shape.maxUnavailable, budgetOf(pod.zone));
    if (own.length > limit) violated(`${own.length} pods of ${pod.zone} at once, ${limit} are allowed: ${name}`);
  }

  /** What the budget has allowed to be missing of the zone at most. */
  const budgetOf = (zone: string): number =>
    shape.percent === undefined
      ? (shape.budget ?? 0)
      : Math.max(1, Math.floor((shape.percent * (most.get(zone) ?? 0)) / 100));

  /** By partition a rollout takes one zone at a time, and of the pods of one ordinal the budget may be missing. */
  function conflictingPeers({ ordinal, isRollout }: Disrupted, others: readonly Disrupted[]): readonly Disrupted[] {
    const rolledOut = others.filter((other) => isRollout && other.isRollout);
    const peers = others.filter((other) => other.ordinal === ordinal);
    return rolledOut.length > 0 || peers.length < Math.max(1, shape.budget ?? 1) ? rolledOut : peers;
  }

  /** True if the budget has been there for longer than an eviction is on its way. */
  const isGuarded = (): boolean => budgetSince !== undefined && now() - budgetSince > SICK_MS;

  /** What somebody takes from now on has been reserved on this budget. */
  const keepsReservations = (): boolean => isGuarded() && brokenSince === undefined && now() - keptSince > SICK_MS;

  /** What a webhook lets go now has been reserved on this budget, which it has seen. */
  function reservesNow(): boolean {
    const seen = now() - ASKED_MS;
    const isSeen = (at: number | undefined): boolean => at === -Infinity || (at !== undefined && at < seen);
    return brokenSince === undefined && isSeen(budgetSince) && isSeen(keptSince);
  }

  /** Under `Ignore`, or where somebody has deleted a configuration, the API server may not have asked us. */
  const wasReviewed = (webhook: string, name: string): boolean =>
    (!shape.ignore && shape.certificate === undefined) ||
    now() - (reviewed.get(`${webhook} ${name}`) ?? -Infinity) < IN_FLIGHT_MS;

  /** People spoil certificates and configurations: what trusted each other before need not do so any more. */
  function onSpoilt({ resource, type }: StoreEvent, caller: Caller | undefined): void {
    const isTheirs = caller !== undefined && ["human", "gitops"].includes(caller.actor);
    // A Secret that was deleted is created again with another CA, as late as the next job runs.
    const isMadeAnew = resource === "secrets" && type === "ADDED";
    const isSpoilt = resource === "secrets" || resource.endsWith("webhookconfigurations.admissionregistration.k8s.io");
    if (isMadeAnew || (isTheirs && isSpoilt)) [trusted, spoiltAt] = [new Set(), now()];
  }

  /** An eviction reaches the pod that was judged alone. */
  function onAllowed(request: Fields, response: Fields): void {
    const name = String(request["name"]);
    const isOurs = listPods(zoneOf(name)).some(({ metadata }) => metadata.name === name) && replicas.has(zoneOf(name));
    if (!isOurs || !reservesNow() || dig(request, "object", "deleteOptions", "preconditions", "uid")) return;
    const patch = Buffer.from(textOf(response["patch"]) ?? "", "base64").toString();
    if (!patch.includes('"uid"')) violated(`an eviction of ${name} is allowed for whatever pod has its name`);
  }

  function onBudget({ type, object }: StoreEvent): void {
    if (object.metadata.name !== BUDGET || object.metadata.namespace !== own) return;
    const wasBroken = brokenSince !== undefined;
    if (type === "DELETED") budgetSince = undefined;
    else budgetSince ??= hadBudget ? now() : -Infinity;
    hadBudget = true;
    const isBroken = type !== "DELETED" && dig(object, "spec", "podNamePartitionRegex") === "([";
    brokenSince = isBroken ? (brokenSince ?? now()) : undefined;
    if (type === "DELETED" || isBroken !== wasBroken) keptSince = now();
  }

  function onSet({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const { name, namespace } = object.metadata;
    const before = replicas.get(name);
    if (namespace !== own || before === undefined) return;
    // Who deletes a zone, or replaces it by its manifest, takes our memory of its downscale away.
    const isForgotten = lastDownscaleOf(previous) !== undefined && lastDownscaleOf(object) === undefined;
    if (type === "DELETED" || isForgotten) shrunkAt.delete(name);
    const after = type === "DELETED" ? 0 : Number(dig(object, "spec", "replicas") ?? 1);
    gone.delete(name);
    if (type === "DELETED") gone.add(name);
    replicas.set(name, after);
    most.set(name, Math.max(after, most.get(name) ?? 0));
    forgetUnwanted();
    if (type === "MODIFIED" && after < before && caller && (isReconciler(caller) || isToPrepare(previous)))
      shrink(name, after, caller, isToPrepare(previous));
    if (type !== "MODIFIED" || !caller || !previous) return;
    // Of a Scale the webhook reads the labels, perhaps as they were.
    const isWhole = !caller.call.endsWith("/scale");
    if (isWhole && after < before && isPinned(previous) && shape.downscales?.asOriginal && wasReviewed(PINNED, name))
      violated(`${caller.actor} scales ${name} to ${after}, which must not shrink by its label`);
    const [first, start] = [previous, object].map((set) => Number(dig(set, "spec", "ordinals", "start") ?? 0));
    if (first !== start && before > 0 && isToPrepare(previous) && wasReviewed(DOWNSCALE, name))
      violated(`${caller.actor} gives ${name} the first ordinal ${start}: its pods are not prepared`);
  }

  /** A downscale by the reconciler, or one that the webhook has admitted. */
  function shrink(zone: string, to: number, { actor, sentAt = now() }: Caller, prepares: boolean): void {
    const surplus = listPods(zone).filter(
      (pod) => indexOf(pod.metadata.name) >= to && pod.metadata.deletionTimestamp === undefined && isOld(pod),
    );
    if (!actor.startsWith("reconciler") && !wasReviewed(DOWNSCALE, zone)) return;
    if (prepares && wasReviewed(DOWNSCALE, zone))
      for (const { metadata } of surplus)
        if (!isPrepared(metadata.uid)) violated(`${actor} scales ${zone} to ${to}: ${metadata.name} was not prepared`);
    // Pods may be told otherwise while the write is on its way.
    if (actor.startsWith("reconciler") && now() - sentAt < ON_WAY_MS) tooSoon(zone, to, surplus);
    for (const [other, at] of shrunkAt) {
      // Who scales waits for its own time, a webhook for that of the other zone.
      const betweenMs = 1000 * Math.min(secondsBetweenOf(shape, zone), secondsBetweenOf(shape, other)) - MISJUDGED_MS;
      if (other !== zone && now() - at < betweenMs)
        violated(`${actor} scales ${zone} to ${to} ${now() - at} ms after ${other} was scaled down`);
    }
    shrunkAt.set(zone, now());
    const isReserved = Object.entries(reservations()).some((entry) => downscaleOf(...entry)?.zone === zone);
    if (keepsReservations() && surplus.some(isReady) && !isReserved)
      violated(`${actor} scales ${zone} to ${to} without a reservation`);
    const isGivenUp = (pod: string): boolean => now() - (sick.get(pod) ?? now()) > GIVEN_UP_MS - misjudgedMs(shape);
    const others = [...disrupted.values()].filter((pod) => pod.zone !== zone && !isGivenUp(nameOf(pod)));
    if (others.length > 0 && surplus.some(isReady) && isGuarded() && !shape.partitioned)
      violated(
        `two zones at once: ${actor} scales ${zone} to ${to} while ${others.map(nameOf).join(", ")} are missing`,
      );
  }

  /** Pods that have not been told for long enough that they go. */
  function tooSoon(zone: string, to: number, surplus: readonly KubeObject[]): void {
    const delayMs = shape.mirrored?.delayMs ?? 0;
    if (delayMs === 0) return;
    for (const { metadata } of surplus) {
      const toldMs = now() - (leavingSince(metadata.uid) ?? now());
      if (toldMs < delayMs - misjudgedMs(shape))
        violated(`${zone} is scaled to ${to}: ${metadata.name} has known it for ${toldMs} ms instead of ${delayMs}`);
    }
  }

  /** It was made after an eviction of it that takes effect now may have been judged. */
  const isNew = ({ zone, uid }: Disrupted): boolean => {
    const found = listPods(zone).find(({ metadata }) => metadata.uid === uid);
    return found !== undefined && now() - Date.parse(found.metadata.creationTimestamp) < IN_FLIGHT_MS;
  };

  const isOld = ({ metadata }: KubeObject): boolean => now() - Date.parse(metadata.creationTimestamp) > YOUNG_MS;

  function forgetUnwanted(): void {
    for (const [name, { zone }] of disrupted) if (indexOf(name) >= sizeOf(zone)) disrupted.delete(name);
    for (const name of sick.keys()) if (indexOf(name) >= sizeOf(zoneOf(name))) sick.delete(name);
  }

  /** The pods that a zone is to have; of one whose StatefulSet is gone those that it has left behind tell it. */
  function sizeOf(zone: string): number {
    const size = replicas.get(zone) ?? 0;
    const left = gone.has(zone) ? listPods(zone).filter(isLeftBehind) : [];
    const others = [...replicas].flatMap(([other, count]) => (gone.has(other) ? [] : [count]));
    return left.length > 0
      ? sizeLeft(
          left.map(({ metadata }) => indexOf(metadata.name)),
          others,
        )
      : size;
  }

  return {
    onEvent(event, caller) {
      if (event.resource === "pods") onPod(event, caller);
      if (event.resource === "statefulsets.apps") onSet(event, caller);
      if (event.resource === BUDGETS) onBudget(event);
      onSpoilt(event, caller);
    },
    onSent({ actor, call }) {
      const [, host = "", pod = ""] = /^\w+ http:\/\/(([^./]+)[^/:]*)/.exec(call) ?? [];
      if (replicas.has(zoneOf(pod)) && !HOST.test(host)) violated(`${actor} calls ${host}, which is no host of a pod`);
    },
    onReview({ path, sent, status, answer, lateMs }) {
      if (lateMs > 0) violated(`a webhook answers ${lateMs} ms after its deadline: ${answer}`);
      if (status >= 500) return violated(`a webhook answers ${status}: ${answer}`);
      if (status !== 200) return;
      const request = fieldsOf(dig(JSON.parse(sent), "request"));
      const response = fieldsOf(dig(JSON.parse(answer), "response"));
      if (response["uid"] !== request["uid"]) violated(`a webhook answers another request: ${answer}`);
      if (response["allowed"] !== true) return;
      reviewed.set(`${EVICTION_PATHS.has(path) ? EVICTION : path} ${String(request["name"])}`, now());
      if (path === EVICTION) onAllowed(request, response);
    },
    onUnanswered: (path, sent) =>
      void reviewed.delete(
        `${EVICTION_PATHS.has(path) ? EVICTION : path} ${String(dig(JSON.parse(sent), "request", "name"))}`,
      ),
    onHandshake(path, problem) {
      if (problem === undefined && now() - spoiltAt > SICK_MS) trusted.add(path);
      if (problem?.includes("unknown authority") && trusted.has(path) && isRenewedInTime(shape))
        violated(`a renewal of the certificate has broken ${path}: ${problem}`);
    },
  };
}

/** Its successor is made while it is valid. */
const isRenewedInTime = ({ certificate }: Shape): boolean =>
  typeof certificate === "object" && certificate.spentMinutes <= 40;
const lastDownscaleOf = (set: KubeObject | undefined): string | undefined =>
  set?.metadata.annotations?.["grafana.com/last-downscale"];
const nameOf = ({ zone, ordinal }: Disrupted): string => `${zone}-${ordinal}`;
