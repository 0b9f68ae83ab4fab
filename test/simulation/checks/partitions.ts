/**
 * The oracle of the StatefulSet of a PhasedRollout: a reconciler lowers its partition by the version that it has read,
 * deletes no pod that would not go back, claims it and gives it back as it was found, and others are answered with a
 * partition that releases nothing.
 */
import { isDeepStrictEqual } from "node:util";
import { dig, fieldsOf, isTrue, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import type { Caller, Review } from "../network.ts";
import { createSince } from "../oracles/past.ts";
import { isEnding, isReady } from "../oracles/stored.ts";
import { PHASED, PHASED_ROLLOUTS } from "./objects.ts";
import {
  BUDGET_KEY,
  claimOf,
  exprOf,
  findIncurable,
  HELD,
  isGoingBack,
  isObserved,
  isOf,
  isOutdated,
  isRolling,
  isZone,
  knownAt,
  originalOf,
  PHASED_READS,
  type PhasedOptions,
  ROLLOUT_KEY,
  rolloutKey,
  specOf,
  type Versions,
} from "./phased-set.ts";

export interface PartitionOptions extends PhasedOptions {
  /** The query to which the answers are that the step has counted. */
  readonly counted: () => string | undefined;
  /** True if no reconciler has met a fault since then. */
  readonly isQuiet: (since: number) => boolean;
}

/** A success counts for so long, or for two periods. */
const KEPT_MS = 60_000;
/** Who has read so often what it should act on has had the time for it. */
const READS = 4;
/** So many writes in one visit have no effect at most: the one that fails, and those that a lost answer repeats. */
const MAX_VAIN = 4;
/** No StatefulSet has more pods. */
const MAX_PODS = 8;

/** Calls `violated` with what happened, in words. */
export function createPartitionSafety(options: PartitionOptions) {
  const { violated, now, history, reads, counted, misjudgedMs, isQuiet } = options;
  const since = createSince(now);
  /** How many pods there were as the first one was released, and of which StatefulSet and revision. */
  let judged: { readonly of: string; readonly replicas: number } | undefined;

  /** All that the pods of these indexes have been since then. */
  const podsOf = ([from, end]: readonly [number, number], at: number): readonly Versions[] =>
    Array.from({ length: Math.max(0, end - from) }, (_, i) => history.since(`${PHASED}-${from + i}`, at));

  /** A reconciler writes the StatefulSet that it has read in the version before. */
  function onSet(object: KubeObject, previous: KubeObject, { actor, sentAt = now() }: Caller): void {
    const [{ partition: from, replicas }, { partition: to }] = [specOf(previous), specOf(object)];
    const known = knownAt(options, actor, sentAt);
    onClaim(object, previous, known);
    if ((claimOf(previous) ?? PHASED) !== PHASED) return;
    const rollouts = history.since(ROLLOUT_KEY, known);
    const isFree = (rollout: KubeObject | undefined): boolean =>
      rollout === undefined || isEnding(rollout) || dig(rollout, "spec", "skipCheck") === true;
    if (rollouts.length === 0 || rollouts.some(isFree)) return void (judged = undefined);
    if (from === to && claimOf(previous) === claimOf(object)) return;
    if (isZone(previous)) return violated(`${actor} changes ${PHASED}, which is a zone of a group`);
    if (from === to) return;
    if (!isRolling(previous)) return violated(`${actor} changes the partition of ${PHASED}, which does not roll`);
    if (!isObserved(previous) && to !== HELD)
      return violated(`${actor} sets the partition of ${PHASED} to ${to} although its status is older than its spec`);
    const { availableReplicas, updatedReplicas, ...status } = fieldsOf(previous["status"]);
    const isBack = status["updateRevision"] === status["currentRevision"];
    const first = Math.min(from, replicas);
    if (to >= first) return;
    const served = podsOf([to, first], known).find((pods) => pods.every(isServing(previous)));
    if (served?.[0] && isUnderBudget(known))
      violated(`${actor} releases ${served[0].metadata.name}, which its budget does not let go`);
    if (isBack) return;
    const below = podsOf([0, first], known);
    const isIncurable = findIncurable(below, { revision: status["updateRevision"], latest: now() + misjudgedMs });
    const incurable = below.filter((_, i) => isIncurable(i)).length;
    const isThere =
      Number(availableReplicas ?? 0) >= replicas - incurable &&
      Number(status["replicas"] ?? 0) >= replicas - incurable &&
      Number(updatedReplicas ?? 0) >= replicas - first;
    if (!isThere)
      violated(
        `${actor} lowers the partition of ${PHASED} to ${to} while ${String(availableReplicas)} of ${replicas} pods are available`,
      );
    if (!rollouts.some((rollout) => explains(rollout, previous)))
      violated(`${actor} lowers the partition of ${PHASED} to ${to}, and no step at ${first} has passed`);
    const isOther = (rollout: KubeObject | undefined): boolean =>
      exprOf(fieldsOf(rollout?.["spec"])) !== counted() && !isPromoted(rollout);
    if (counted() !== undefined && rollouts.every(isOther))
      violated(`${actor} lowers the partition of ${PHASED} to ${to} by successes of ${counted()}`);
    const readAt = reads.lastBefore(actor, PHASED_READS.rollout, sentAt)?.sentAt ?? -Infinity;
    if (rollouts.every((rollout) => !isPromoted(rollout) && isOld(rollout, readAt)))
      violated(`${actor} lowers the partition of ${PHASED} to ${to} by successes that are old`);
    releasesJudged(previous, to, known);
  }

  const isPromoted = (rollout: KubeObject | undefined): boolean =>
    dig(rollout, "status", "rollingPodStatus", "promoted") === true;

  /** Its last success was too long ago as it was read. */
  function isOld(rollout: KubeObject | undefined, readAt: number): boolean {
    const lastAt = Date.parse(textOf(dig(rollout, "status", "rollingPodStatus", "lastCheckTime")) ?? "");
    const periodMs = 1000 * (numberOf(dig(rollout, "spec", "check", "periodSeconds")) ?? 60);
    return readAt - lastAt > Math.max(KEPT_MS, 2 * periodMs) + misjudgedMs;
  }

  /** A budget that selects these pods alone knows of no other zone, and lets none go. */
  function isUnderBudget(known: number): boolean {
    const budgets = history.since(BUDGET_KEY, known);
    return budgets.length > 0 && budgets.every((budget) => budget !== undefined);
  }

  const isServing =
    (set: KubeObject) =>
    (pod: KubeObject | undefined): boolean =>
      pod !== undefined && isReady(pod) && isOutdated(pod, dig(set, "status", "updateRevision"));

  /** The pods beyond those at the first release came with a scale-out: those that have the template go back before. */
  function releasesJudged(set: KubeObject, to: number, known: number): void {
    const { partition, replicas } = specOf(set);
    const revision = dig(set, "status", "updateRevision");
    const of = `${set.metadata.uid} ${String(revision)}`;
    const least = judged?.of === of ? judged.replicas : replicas;
    const isFirst = partition >= replicas;
    const added = podsOf([least, replicas], known).find((pods) =>
      pods.every((pod) => pod !== undefined && (!isFirst || !isOutdated(pod, revision))),
    );
    if (added?.[0])
      violated(`the partition of ${PHASED} is ${to}, and ${added[0].metadata.name}, which was added, has had no step`);
    if (isFirst) judged = { of, replicas };
  }

  /** Its step is that of the partition, and has passed, and nobody has paused it. */
  function explains(rollout: KubeObject | undefined, set: KubeObject): boolean {
    const { targetUID, updateRevision, rollingPodStatus } = fieldsOf(rollout?.["status"]);
    const { partition, replicas } = specOf(set);
    const { promoted, ...step } = fieldsOf(rollingPodStatus);
    const isOfIt = targetUID === set.metadata.uid && updateRevision === dig(set, "status", "updateRevision");
    const isPaused = rollout?.metadata.annotations?.["sts.plus/pause"] === "true";
    const wanted = Math.max(1, numberOf(dig(rollout, "spec", "check", "successThreshold")) ?? 1);
    const isPassed = !isPaused && (numberOf(step["consecutiveSuccessfulChecks"]) ?? 0) >= wanted;
    return isOfIt && step["partition"] === Math.min(partition, replicas) && (promoted === true || isPassed);
  }

  /** The partition from before the first claim is written down with it, and comes back with the release. */
  function onClaim(object: KubeObject, previous: KubeObject, known: number): void {
    const [from, to] = [claimOf(previous), claimOf(object)];
    if (from === to) return;
    const rollouts = history.since(rolloutKey(to ?? from ?? ""), known);
    const original = originalOf(previous);
    if (to === undefined) {
      const isFrozen = rollouts.some((rollout) => dig(rollout, "spec", "onDelete") === "freeze");
      if (isFrozen || original === undefined || !isRolling(previous)) return;
      if (specOf(object).partition !== Number(original))
        violated(`${from} gives ${PHASED} back with partition ${specOf(object).partition} instead of ${original}`);
      return;
    }
    if (original !== undefined || originalOf(object) === undefined) return;
    const isReady = (rollout: KubeObject | undefined): boolean =>
      dig(rollout, "status", "targetUID") === previous.metadata.uid && isTrue(rollout, "Ready");
    if (from !== undefined || (rollouts.length > 0 && rollouts.every(isReady)))
      violated(`${to} takes the partition ${originalOf(object)}, which ${from ?? to} has set, for that from before`);
  }

  /** A pod that would come back as it is stays; one that serves waits for the others. */
  function onTaken(pod: KubeObject, { actor, sentAt = now() }: Caller): void {
    const { name, creationTimestamp } = pod.metadata;
    const known = knownAt(options, actor, sentAt);
    const sets = history.since(PHASED, known);
    const set = sets.at(-1);
    const isAlone = (one: KubeObject | undefined): boolean =>
      one !== undefined &&
      isObserved(one) &&
      dig(one, "status", "currentRevision") === dig(one, "status", "updateRevision");
    if (!set || claimOf(set) !== PHASED) return;
    if (sets.every((one) => isAlone(one) && !isOutdated(pod, dig(one, "status", "updateRevision"))))
      violated(`${name} is taken by ${actor}, and will come back as it is`);
    const replicas = Math.min(...sets.map((one) => specOf(one).replicas));
    const isDown = (one: KubeObject | undefined): boolean => !one || !isReady(one);
    const down = podsOf([0, replicas], known).findIndex((pods) => pods.length > 0 && pods.every(isDown));
    const own = history.since(name, known);
    if (down !== -1 && own.length > 0 && own.every((one) => !isDown(one)))
      violated(`${name}, which serves, is taken by ${actor} while ${PHASED}-${down} does not`);
    const isWaiting = listOf(dig(pod, "status", "containerStatuses")).some((one) => dig(one, "state", "waiting"));
    if (isWaiting || !isAlone(set) || !isOutdated(pod, dig(set, "status", "updateRevision"))) return;
    if (creationTimestamp <= set.metadata.creationTimestamp)
      violated(`${name} is taken by ${actor}, and is older than its StatefulSet`);
  }

  /** A StatefulSet that another one manages is left alone. */
  function onFinalizer(rollout: KubeObject, { actor, sentAt = now() }: Caller): void {
    const { name } = rollout.metadata;
    const known = knownAt(options, actor, sentAt);
    const sets = history.since(PHASED, known);
    const owners = history.since(ROLLOUT_KEY, known);
    const isTheirs = name !== PHASED && sets.every((set) => set && claimOf(set) === PHASED);
    if (isTheirs && sets.length > 0 && owners.length > 0 && owners.every((owner) => owner !== undefined))
      violated(`${actor} takes ${name} up, although ${PHASED} is managed by another one`);
  }

  /** What others write releases no pod: the webhook raises the partition, where it is asked. */
  function onReview({ path, sent, status, answer }: Review): void {
    if (!path.includes("raise-partition") || status !== 200) return;
    const request = fieldsOf(dig(JSON.parse(sent), "request"));
    const [object, old] = [request["object"], request["oldObject"]].map((one) => one as KubeObject | undefined);
    if (request["operation"] !== "UPDATE" || !object || !old || claimOf(old) === undefined) return;
    if (!isRolling(object) || dig(request, "options", "fieldManager") === "zonewise-reconciler") return;
    const [before, after] = [specOf(old), specOf(object)];
    const isSame = (field: string): boolean =>
      isDeepStrictEqual(...([old, object].map((set) => dig(set, "spec", field)) as [unknown, unknown]));
    const isAnother = !isSame("template") || !isSame("ordinals") || !isRolling(old);
    const adds = after.replicas > before.replicas && before.partition > 0 && after.partition < after.replicas;
    const least = isAnother || adds ? HELD : before.partition;
    if (after.partition >= least) return;
    const patch = Buffer.from(textOf(dig(JSON.parse(answer), "response", "patch")) ?? "", "base64").toString();
    if (!patch.includes(String(least)))
      violated(`a write of ${PHASED} is let through with the partition ${after.partition} instead of ${least}`);
    else if (claimOf(object) === undefined && !patch.includes("phasedRollout"))
      violated(`a write of ${PHASED} is held, and takes the claim of ${claimOf(old)} away`);
  }

  /** Notes what a template that was taken back has left, for reconcilers to act on. */
  function lookBack(): void {
    const [set, rollout] = [PHASED, ROLLOUT_KEY].map((key) => history.since(key, now()).at(-1));
    const { currentRevision, updateRevision } = fieldsOf(set?.["status"]);
    const isManaged = set && claimOf(set) === PHASED && isRolling(set) && !isZone(set) && isObserved(set);
    const isWanted = rollout && !isEnding(rollout) && dig(rollout, "spec", "skipCheck") !== true;
    const isBack = isManaged && isWanted && currentRevision === updateRevision;
    const isParallel = dig(set, "spec", "podManagementPolicy") === "Parallel";
    const isLost = (pod: KubeObject | undefined): boolean =>
      set !== undefined &&
      isOf(pod, set.metadata.uid) &&
      isOutdated(pod, updateRevision) &&
      pod.metadata.creationTimestamp > set.metadata.creationTimestamp &&
      !isTrue(pod, "Ready") &&
      !isEnding(pod);
    const isSpared = history.since(BUDGET_KEY, now()).at(-1) !== undefined;
    const pods = Array.from({ length: MAX_PODS }, (_, i) => history.since(`${PHASED}-${i}`, now()).at(-1));
    for (const [i, pod] of pods.entries())
      since.note(
        `${PHASED}-${i} as it is, which does not serve, and has a template that was taken back`,
        isBack === true && isParallel && !isSpared && isLost(pod),
      );
    const highest = pods.findLastIndex((pod) => pod !== undefined && isOutdated(pod, updateRevision) && isReady(pod));
    since.note(
      "several pods to the StatefulSet controller that have a template which was taken back",
      isBack === true && isGoingBack(rollout) && specOf(set).partition < highest,
    );
  }

  /** The step that knew which pods are judged is gone, or others say by the partition which of them are. */
  function isForgotten(object: KubeObject, previous: KubeObject | undefined): boolean {
    const isRollout = object["kind"] === "PhasedRollout" && object.metadata.name === PHASED;
    if (isRollout) return dig(object, "status", "rollingPodStatus") === undefined;
    return previous !== undefined && specOf(previous).partition !== specOf(object).partition;
  }

  /** Who has written the StatefulSet without any effect, and how often since it has listed PhasedRollouts. */
  let vain = { actor: "", version: "", listedAt: 0, times: 0 };

  /** What others pin is no reason to write it again at once: that is an error, and the next tick tries again. */
  function onPatched({ actor }: Caller, listedAt: number): void {
    const version = history.since(PHASED, now()).at(-1)?.metadata.resourceVersion ?? "";
    const isAgain = vain.actor === actor && vain.version === version && vain.listedAt === listedAt;
    vain = isAgain ? { ...vain, times: vain.times + 1 } : { actor, version, listedAt, times: 0 };
    if (vain.times === MAX_VAIN) violated(`${actor} writes ${PHASED} again and again, and it stays as it is`);
  }

  return {
    onReview,
    onPatched,
    /** A reconciler has read PhasedRollouts again: what it has had the time for has been done. */
    onRead({ actor }: Caller): void {
      lookBack();
      const at = reads.lastBut(actor, PHASED_READS.rollout, READS)?.sentAt;
      if (at === undefined || !isQuiet(at)) return;
      for (const what of since.all.keys()) if (since.before(what, at)) violated(`${actor} leaves ${what}`);
    },
    /** Before the version is noted in the history. */
    onEvent({ type, resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      const isOurs = caller?.actor.startsWith("reconciler") === true;
      lookBack();
      if (isForgotten(object, isOurs ? undefined : previous)) judged = undefined;
      if (type !== "MODIFIED" || !previous || !caller || !isOurs) return;
      const begins = isEnding(object) && !isEnding(previous);
      if (resource === "statefulsets.apps") onSet(object, previous, caller);
      if (resource === "pods" && begins) onTaken(previous, caller);
      const [had, has] = [previous, object].map(({ metadata }) => metadata.finalizers?.length ?? 0);
      if (resource === PHASED_ROLLOUTS && (has ?? 0) > (had ?? 0)) onFinalizer(object, caller);
    },
  };
}
