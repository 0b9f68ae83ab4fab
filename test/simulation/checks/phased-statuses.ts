/**
 * The oracle of what a PhasedRollout's status says, and of the partition that goes with it. Both are written with the
 * version that was read. The status names the generation of the StatefulSet that it is about.
 *
 *   PhasedRollout is read -> its StatefulSet -> pods are listed -> Prometheus is asked -> the status or the partition is written
 */
import { isDeepStrictEqual } from "node:util";
import { dig, type Fields, fieldsOf, isTrue, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import type { Caller, Review } from "../network.ts";
import type { History, Reads } from "./history.ts";
import { PHASED, PHASED_ROLLOUTS } from "./objects.ts";
import type { Told } from "./prometheus.ts";

export interface PhasedStatusOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** Versions of the PhasedRollout, its StatefulSet and its pods. */
  readonly history: History;
  readonly reads: Reads;
  /** Until when what was stored was seen by who read at this time. */
  readonly seen: (at: number) => number;
  readonly toldOf: (expr: string) => readonly Told[];
}

/** Words of the paths of reads. */
export const PHASED_READS = { rollout: "phasedrollouts", pods: "pods" } as const;
export const ROLLOUT_KEY = `${PHASED_ROLLOUTS} ${PHASED}`;

/** No replicas reach it. */
const HELD = 2_147_483_647;
const CLAIM = "sts.plus/phasedRollout";
const ROLLS = new Set(["Rolling", "Stalled"]);
/** What a step waits for once its pods are updated. */
const UPDATED = new Set(["WaitForAllPodsToBeAvailable", "WaitForInitialDelay", "WaitForChecks", "PrometheusError"]);
const CHECKED = new Set(["WaitForInitialDelay", "WaitForChecks", "PrometheusError"]);

interface Write {
  readonly spec: Fields;
  readonly before: Fields;
  readonly after: Fields;
  /** When the status before was stored. */
  readonly storedAt: number;
  /** All that its pods have been since then was seen. */
  readonly knownAt: number;
  /** The StatefulSet in the generation that the status is about. */
  readonly set: KubeObject | undefined;
  readonly step: Fields;
  /** The partition of the step; undefined without one. */
  readonly at: number | undefined;
}

type Rule = (write: Write) => string | undefined;

const specOf = (set: unknown) => ({
  replicas: numberOf(dig(set, "spec", "replicas")) ?? 1,
  partition: numberOf(dig(set, "spec", "updateStrategy", "rollingUpdate", "partition")) ?? 0,
});
const exprOf = (spec: Fields): string => textOf(dig(spec, "check", "query", "expr")) ?? "";
const isOutdated = (pod: KubeObject | undefined, revision: unknown): boolean =>
  pod?.metadata.labels?.["controller-revision-hash"] !== revision;
const isOf = (pod: KubeObject | undefined, uid: unknown): pod is KubeObject =>
  listOf(pod?.metadata.ownerReferences).some((owner) => dig(owner, "uid") === uid);
const isZone = (set: KubeObject | undefined): boolean => set?.metadata.labels?.["rollout-group"] !== undefined;
const isRolling = (set: KubeObject | undefined): boolean =>
  (dig(set, "spec", "updateStrategy", "type") ?? "RollingUpdate") === "RollingUpdate";
const isObserved = (set: KubeObject): boolean =>
  (numberOf(dig(set, "status", "observedGeneration")) ?? 0) >= (set.metadata.generation ?? 0);
const isPassed = ({ spec, before }: Pick<Write, "spec" | "before">): boolean => {
  const step = fieldsOf(before["rollingPodStatus"]);
  const wanted = Math.max(1, numberOf(dig(spec, "check", "successThreshold")) ?? 1);
  return step["promoted"] === true || (numberOf(step["consecutiveSuccessfulChecks"]) ?? 0) >= wanted;
};

/** Calls `violated` with what a status or a partition says that cannot be. */
export function createPhasedStatusSafety({ violated, now, history, reads, seen, toldOf }: PhasedStatusOptions) {
  /** The StatefulSet by its UID and generation. */
  const generations = new Map<string, KubeObject>();
  /** The query to which the answers are that the step has counted. */
  let counted: string | undefined;

  const RULES: readonly Rule[] = [
    isAboutPartition,
    isHeldAtFirst,
    beginsHeld,
    beginsWithPods,
    goesDownByPasses,
    goesBackAlone,
    isUpdatedWithPods,
    countsAnswers,
    waitsForPods,
    managesNoOther,
    decidesAboutObserved,
  ];

  const podsOf = ({ set, knownAt }: Write, from: number): readonly (readonly (KubeObject | undefined)[])[] => {
    const { replicas } = specOf(set);
    return Array.from({ length: Math.max(0, replicas - from) }, (_, i) =>
      history.since(`${PHASED}-${from + i}`, knownAt),
    );
  };

  /** A step is that of the partition; after all pods are updated, one is checked at partition 0. */
  const isFinal = ({ spec, set, at }: Write): boolean =>
    spec["finalCheck"] === true && at === 0 && specOf(set).partition >= specOf(set).replicas;

  function isAboutPartition(write: Write): string | undefined {
    const { set, at } = write;
    if (!set || at === undefined || isFinal(write)) return undefined;
    const { partition, replicas } = specOf(set);
    return at === Math.min(partition, replicas)
      ? undefined
      : `has a step of partition ${at}, and the StatefulSet ${partition}`;
  }

  function isHeldAtFirst(write: Write): string | undefined {
    const { set, at } = write;
    if (!set || at === undefined || isFinal(write)) return undefined;
    const { partition, replicas } = specOf(set);
    return replicas === 0 || partition < replicas || partition === HELD
      ? undefined
      : `begins with partition ${partition}, which a scale-out reaches`;
  }

  const isOfOne = ({ before, after }: Write): boolean =>
    ROLLS.has(String(before["phase"])) &&
    before["targetUID"] === after["targetUID"] &&
    before["updateRevision"] === after["updateRevision"];

  /** Another template than that of the status before is released to no pod. */
  function beginsHeld(write: Write): string | undefined {
    const { before, after, set, at } = write;
    const wasOurs = ROLLS.has(String(before["phase"])) || before["phase"] === "Updated";
    if (!set || at === undefined || !wasOurs || before["targetUID"] !== after["targetUID"]) return undefined;
    const isOther = before["updateRevision"] !== undefined && before["updateRevision"] !== after["updateRevision"];
    return !isOther || specOf(set).partition === HELD
      ? undefined
      : `begins another template at partition ${specOf(set).partition}`;
  }

  /** A partition of 0 that nobody has explained is raised. */
  function beginsWithPods(write: Write): string | undefined {
    const { before, after, set, at } = write;
    if (!set || at !== 0 || isFinal(write)) return undefined;
    if (isOfOne(write) && before["rollingPodStatus"] !== undefined) return undefined;
    const isLeft = podsOf(write, 0).some(
      (pods) => pods.length > 0 && pods.every((pod) => isOutdated(pod, after["updateRevision"])),
    );
    return isLeft ? "begins at partition 0 although pods are outdated" : undefined;
  }

  /** A lower partition than that of the step before follows a step that has passed. */
  function goesDownByPasses(write: Write): string | undefined {
    const { before, set, at } = write;
    const earlier = numberOf(dig(before, "rollingPodStatus", "partition"));
    if (!set || at === undefined || earlier === undefined || !isOfOne(write) || isFinal(write)) return undefined;
    return specOf(set).partition >= earlier || isPassed(write)
      ? undefined
      : `goes on at partition ${specOf(set).partition} although the step at ${earlier} has not passed`;
  }

  /** Pods that are older than their StatefulSet have never had its revision: they do not go back. */
  function goesBackAlone(write: Write): string | undefined {
    const { after, set } = write;
    const isBack = listOf(after["conditions"]).some(
      (one) => dig(one, "type") === "Updated" && dig(one, "reason") === "RollingBack",
    );
    if (!isBack || !set) return undefined;
    const uid = after["targetUID"];
    const foreign = podsOf(write, 0).find((pods) =>
      pods.every(
        (pod) =>
          isOf(pod, uid) &&
          isOutdated(pod, after["updateRevision"]) &&
          pod.metadata.creationTimestamp <= set.metadata.creationTimestamp,
      ),
    );
    return foreign?.[0] ? `goes back, and ${foreign[0].metadata.name} is older than the StatefulSet` : undefined;
  }

  function isUpdatedWithPods(write: Write): string | undefined {
    const { after, set } = write;
    if (after["phase"] !== "Updated" || !isTrue({ status: after }, "Updated") || !set) return undefined;
    const old = podsOf(write, 0).find((pods) =>
      pods.every((pod) => isOf(pod, after["targetUID"]) && isOutdated(pod, after["updateRevision"])),
    );
    return old?.[0] ? `is updated, and ${old[0].metadata.name} is not` : undefined;
  }

  /** Answers to one query are counted; a success has been answered since the status before. */
  function countsAnswers({ spec, before, storedAt, step }: Write): string | undefined {
    const earlier = fieldsOf(before["rollingPodStatus"]);
    const [was, is] = [earlier, step].map((one) => one["lastAttemptTime"]);
    const [fewer = 0, more = 0] = [earlier, step].map((one) => numberOf(one["consecutiveSuccessfulChecks"]) ?? 0);
    if (was === is) return undefined;
    const [other, expr] = [was === undefined ? undefined : counted, exprOf(spec)];
    counted = is === undefined ? undefined : expr;
    if (is === undefined) return undefined;
    if (other !== undefined && other !== expr) return `adds an answer to ${expr} to those to ${other}`;
    if (more > fewer + 1) return "counts an answer twice";
    const isAnswered = toldOf(expr).some(({ at, verdict }) => at >= storedAt && verdict === "Success");
    return more === 0 || isAnswered ? undefined : `counts a success of ${expr} that nobody has answered`;
  }

  /** A step goes on once its pods are updated and all are ready. */
  function waitsForPods(write: Write): string | undefined {
    const { after, set, step, at } = write;
    const status = textOf(step["status"]) ?? "";
    if (!set || at === undefined) return undefined;
    const uid = after["targetUID"];
    const isMissing = (pod: KubeObject | undefined): boolean =>
      !isOf(pod, uid) || isOutdated(pod, after["updateRevision"]);
    if (UPDATED.has(status) && podsOf(write, at).some((pods) => pods.every(isMissing)))
      return `says ${status} at partition ${at}, and a pod is not updated`;
    const isDown = (pod: KubeObject | undefined): boolean =>
      !pod || pod.metadata.deletionTimestamp !== undefined || !isTrue(pod, "Ready");
    if (CHECKED.has(status) && podsOf(write, 0).some((pods) => pods.every(isDown)))
      return `says ${status} at partition ${at}, and a pod is not ready`;
    return undefined;
  }

  /** A zone of a group, or a StatefulSet of another strategy, is not managed. */
  function managesNoOther({ after, knownAt }: Write): string | undefined {
    if (String(after["phase"]).startsWith("Error")) return undefined;
    const sets = history.since(PHASED, knownAt);
    const isNone = (set: KubeObject | undefined): boolean => set !== undefined && (isZone(set) || !isRolling(set));
    return sets.length > 0 && sets.every(isNone)
      ? `is ${String(after["phase"])} about what it cannot manage`
      : undefined;
  }

  /** Of a spec that the controller has not observed nothing is decided. */
  function decidesAboutObserved({ before, after, step, knownAt }: Write): string | undefined {
    if (after["rollingPodStatus"] === undefined) return undefined;
    if (JSON.stringify(step) === JSON.stringify(before["rollingPodStatus"])) return undefined;
    const sets = history.since(PHASED, knownAt);
    return sets.length > 0 && sets.every((set) => set && !isObserved(set))
      ? "goes on about a spec that is not observed"
      : undefined;
  }

  /** Since when all that the process has read was true. */
  function knownAt(actor: string, sentAt: number): number {
    const read = reads.lastBefore(actor, PHASED_READS.rollout, sentAt);
    return read ? seen(read.sentAt) : -Infinity;
  }

  function onStatus(object: KubeObject, previous: KubeObject, { actor, sentAt = now() }: Caller): void {
    const [before, after] = [fieldsOf(previous["status"]), fieldsOf(object["status"])];
    const step = fieldsOf(after["rollingPodStatus"]);
    const write: Write = {
      spec: fieldsOf(previous["spec"]),
      before,
      after,
      storedAt: history.storedAt(ROLLOUT_KEY),
      knownAt: knownAt(actor, sentAt),
      set: generations.get(`${String(after["targetUID"])} ${String(after["targetObservedGeneration"])}`),
      step,
      at: numberOf(step["partition"]),
    };
    for (const rule of RULES) {
      const what = rule(write);
      if (what !== undefined) violated(`the PhasedRollout ${what}, by ${actor}`);
    }
  }

  /** A reconciler writes the StatefulSet that it has read in the version before. */
  function onSet(object: KubeObject, previous: KubeObject, { actor, sentAt = now() }: Caller): void {
    const [{ partition: from, replicas }, { partition: to }] = [specOf(previous), specOf(object)];
    const rollouts = history.since(ROLLOUT_KEY, knownAt(actor, sentAt));
    const isFree = (rollout: KubeObject | undefined): boolean =>
      rollout === undefined ||
      rollout.metadata.deletionTimestamp !== undefined ||
      dig(rollout, "spec", "skipCheck") === true;
    if (rollouts.length === 0 || rollouts.some(isFree)) return;
    const claims = [previous, object].map((set) => set.metadata.annotations?.[CLAIM]);
    if (from === to && claims[0] === claims[1]) return;
    if (isZone(previous)) return violated(`${actor} changes ${PHASED}, which is a zone of a group`);
    if (from === to) return;
    if (!isRolling(previous)) return violated(`${actor} changes the partition of ${PHASED}, which does not roll`);
    if (!isObserved(previous) && to !== HELD)
      return violated(`${actor} sets the partition of ${PHASED} to ${to} although its status is older than its spec`);
    const { availableReplicas, updatedReplicas, ...status } = fieldsOf(previous["status"]);
    const isBack = status["updateRevision"] === status["currentRevision"];
    const first = Math.min(from, replicas);
    if (to >= first || isBack) return;
    const isThere =
      availableReplicas === replicas &&
      status["replicas"] === replicas &&
      Number(updatedReplicas ?? 0) >= replicas - first;
    if (!isThere)
      violated(
        `${actor} lowers the partition of ${PHASED} to ${to} while ${String(availableReplicas)} of ${replicas} pods are available`,
      );
    const isOther = (rollout: KubeObject | undefined): boolean =>
      exprOf(fieldsOf(rollout?.["spec"])) !== counted &&
      dig(rollout, "status", "rollingPodStatus", "promoted") !== true;
    if (counted !== undefined && rollouts.every(isOther))
      violated(`${actor} lowers the partition of ${PHASED} to ${to} by successes of ${counted}`);
  }

  /** A pod that is older than its StatefulSet, and may come up, does not go back to a template that it never had. */
  function onTaken(pod: KubeObject, actor: string): void {
    const { name, creationTimestamp } = pod.metadata;
    const set = history.since(PHASED, now()).at(-1);
    const { currentRevision, updateRevision } = fieldsOf(set?.["status"]);
    const isWaiting = listOf(dig(pod, "status", "containerStatuses")).some((one) => dig(one, "state", "waiting"));
    if (!set || isWaiting || currentRevision !== updateRevision || !isOutdated(pod, updateRevision)) return;
    if (creationTimestamp <= set.metadata.creationTimestamp && isObserved(set))
      violated(`${name} is taken by ${actor}, and is older than its StatefulSet`);
  }

  /** What others write releases no pod: the webhook raises the partition, where it is asked. */
  function onReview({ path, sent, status, answer }: Review): void {
    if (!path.includes("raise-partition") || status !== 200) return;
    const request = fieldsOf(dig(JSON.parse(sent), "request"));
    const [object, old] = [request["object"], request["oldObject"]].map((one) => one as KubeObject | undefined);
    if (request["operation"] !== "UPDATE" || !object || !old || old.metadata.annotations?.[CLAIM] === undefined) return;
    if (!isRolling(object) || dig(request, "options", "fieldManager") === "zonewise-reconciler") return;
    const [before, after] = [specOf(old), specOf(object)];
    const [earlier, template] = [old, object].map((set) => dig(set, "spec", "template"));
    const isAnother = !isDeepStrictEqual(earlier, template) || !isRolling(old);
    const adds = after.replicas > before.replicas && before.partition > 0 && after.partition < after.replicas;
    const least = isAnother || adds ? HELD : before.partition;
    const patch = Buffer.from(textOf(dig(JSON.parse(answer), "response", "patch")) ?? "", "base64").toString();
    if (after.partition < least && !patch.includes(String(least)))
      violated(`a write of ${PHASED} is let through with the partition ${after.partition} instead of ${least}`);
  }

  return {
    onReview,
    /** Before the version is noted in the history. */
    onEvent({ type, resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      if (resource === "statefulsets.apps" && type !== "DELETED")
        generations.set(`${object.metadata.uid} ${object.metadata.generation}`, object);
      if (type !== "MODIFIED" || !previous || !caller?.actor.startsWith("reconciler")) return;
      const begins = object.metadata.deletionTimestamp !== undefined && !previous.metadata.deletionTimestamp;
      if (resource === "pods") return begins ? onTaken(previous, caller.actor) : undefined;
      if (resource === "statefulsets.apps") onSet(object, previous, caller);
      else if (JSON.stringify(object["status"]) !== JSON.stringify(previous["status"]))
        onStatus(object, previous, caller);
    },
  };
}
