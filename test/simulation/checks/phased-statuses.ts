/**
 * The oracle of what a PhasedRollout's status says. A reconciler writes it with the version that it has read, and names
 * the generation of the StatefulSet that it is about.
 *
 *   PhasedRollout is read -> its StatefulSet -> pods are listed -> Prometheus is asked -> the status is written
 */
import { dig, type Fields, fieldsOf, isTrue, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import type { Caller } from "../network.ts";
import { PHASED, PHASED_ROLLOUTS } from "./objects.ts";
import {
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
  type PhasedOptions,
  ROLLOUT_KEY,
  specOf,
  type Versions,
} from "./phased-set.ts";
import type { Told } from "./prometheus.ts";

export interface PhasedStatusOptions extends PhasedOptions {
  readonly toldOf: (expr: string) => readonly Told[];
}

/** An answer counts for so long, and a time may be ahead by so much. */
const KEPT_MS = 60_000;
const TIMES = ["stepStartTime", "analisysStartTime", "lastCheckTime", "lastAttemptTime"] as const;
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

const isPassed = ({ spec, before }: Pick<Write, "spec" | "before">): boolean => {
  const step = fieldsOf(before["rollingPodStatus"]);
  const wanted = Math.max(1, numberOf(dig(spec, "check", "successThreshold")) ?? 1);
  return step["promoted"] === true || (numberOf(step["consecutiveSuccessfulChecks"]) ?? 0) >= wanted;
};

/** The StatefulSet of a status, as it was then. */
const generationOf = (status: Fields): string =>
  `${String(status["targetUID"])} ${String(status["targetObservedGeneration"])}`;

/** Calls `violated` with what a status or a partition says that cannot be. */
export function createPhasedStatusSafety(options: PhasedStatusOptions) {
  const { violated, now, history, toldOf, misjudgedMs } = options;
  /** The StatefulSet by its UID and generation. */
  const generations = new Map<string, KubeObject>();
  /** Generations of which a status has told: after an old read it may tell of an earlier one, and then of them again. */
  const told = new Set<string>();
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
    startsAnew,
    keepsNoTimeToCome,
    checksNoWayBack,
    passesOverUpdated,
  ];

  const podsOf = ({ set, knownAt }: Write, from: number): readonly Versions[] => {
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
    const { before, after, set, at } = write;
    const earlier = numberOf(dig(before, "rollingPodStatus", "partition"));
    if (!set || at === undefined || earlier === undefined || !isOfOne(write) || isFinal(write)) return undefined;
    // By another spec it had to pass otherwise.
    const isEdited = before["observedGeneration"] !== after["observedGeneration"];
    // The status before tells of the StatefulSet as it was once: its step has passed.
    const [then] = history.since(PHASED, write.storedAt);
    const isOld = then !== undefined && specOf(then).partition < earlier;
    return specOf(set).partition >= earlier || isEdited || isOld || isPassed(write) || told.has(generationOf(after))
      ? undefined
      : `goes on at partition ${specOf(set).partition} although the step at ${earlier} has not passed`;
  }

  /** What was between the two partitions has had its step. */
  function passesOverUpdated(write: Write): string | undefined {
    const { before, after, set, at } = write;
    const earlier = numberOf(dig(before, "rollingPodStatus", "partition"));
    if (!set || at === undefined || earlier === undefined || !isOfOne(write) || isFinal(write)) return undefined;
    const isLeft = (pod: KubeObject | undefined): boolean =>
      pod !== undefined && isOutdated(pod, after["updateRevision"]);
    const over = podsOf(write, at + 1).slice(0, Math.max(0, earlier - at - 1));
    const left = over.find((pods) => pods.length > 0 && pods.every(isLeft));
    return left?.[0]
      ? `goes on at partition ${at} after ${earlier}, and nobody has checked ${left[0].metadata.name}`
      : undefined;
  }

  /** No answer about another StatefulSet or revision counts. */
  function startsAnew(write: Write): string | undefined {
    const lastAt = dig(write.before, "rollingPodStatus", "lastAttemptTime");
    return lastAt !== undefined && write.step["lastAttemptTime"] === lastAt && !isOfOne(write)
      ? "keeps answers about another StatefulSet or revision"
      : undefined;
  }

  /** The step before the first pod begins again if the clock was turned back. */
  function keepsNoTimeToCome({ step, at }: Write): string | undefined {
    if (at === undefined || at === 0) return undefined;
    const latest = now() + KEPT_MS + misjudgedMs;
    const to = TIMES.find((field) => Date.parse(textOf(step[field]) ?? "") > latest);
    return to === undefined ? undefined : `keeps ${to} ${String(step[to])}, which is to come`;
  }

  /** Pods of a template that was taken back return without checks. */
  function checksNoWayBack(write: Write): string | undefined {
    const { before, after, set, at } = write;
    if (!set || !isObserved(set) || at === undefined || at === 0 || isFinal(write)) return undefined;
    const wasOther = before["updateRevision"] !== undefined && before["updateRevision"] !== after["updateRevision"];
    if (!wasOther || before["targetUID"] !== after["targetUID"]) return undefined;
    const { currentRevision, updateRevision } = fieldsOf(set["status"]);
    if (currentRevision !== updateRevision || updateRevision !== after["updateRevision"]) return undefined;
    const pods = podsOf(write, 0);
    const isOwn = (pod: KubeObject | undefined): boolean =>
      !pod || (isOf(pod, set.metadata.uid) && pod.metadata.creationTimestamp > set.metadata.creationTimestamp);
    const isStale = (pod: KubeObject | undefined): boolean => pod !== undefined && isOutdated(pod, updateRevision);
    return pods.flat().every(isOwn) && pods.some((one) => one.length > 0 && one.every(isStale))
      ? "checks pods of a template that was taken back"
      : undefined;
  }

  /** Pods that are older than their StatefulSet have never had its revision: they do not go back. */
  function goesBackAlone(write: Write): string | undefined {
    const { before, after, set } = write;
    const isBack = isGoingBack({ status: after });
    if (!isBack || !set) return undefined;
    const uid = after["targetUID"];
    if (before["targetUID"] !== uid) return "goes back to a revision of which it knows nothing";
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
    const pods = podsOf(write, 0);
    const isIncurable = findIncurable(pods.slice(0, at), {
      revision: after["updateRevision"],
      latest: now() + misjudgedMs,
    });
    if (CHECKED.has(status) && pods.some((one, i) => one.every(isDown) && !isIncurable(i)))
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
    const isNew = after["targetUID"] !== undefined && after["targetUID"] !== before["targetUID"];
    if (isNew && after["phase"] === "Updated" && after["updateRevision"] === undefined)
      return "records a StatefulSet of which nothing is observed";
    if (after["rollingPodStatus"] === undefined) return undefined;
    if (JSON.stringify(step) === JSON.stringify(before["rollingPodStatus"])) return undefined;
    const sets = history.since(PHASED, knownAt);
    return sets.length > 0 && sets.every((set) => set && !isObserved(set))
      ? "goes on about a spec that is not observed"
      : undefined;
  }

  function onStatus(object: KubeObject, previous: KubeObject, { actor, sentAt = now() }: Caller): void {
    const [before, after] = [fieldsOf(previous["status"]), fieldsOf(object["status"])];
    const step = fieldsOf(after["rollingPodStatus"]);
    const write: Write = {
      spec: fieldsOf(previous["spec"]),
      before,
      after,
      storedAt: history.storedAt(ROLLOUT_KEY),
      knownAt: knownAt(options, actor, sentAt),
      set: generations.get(generationOf(after)),
      step,
      at: numberOf(step["partition"]),
    };
    for (const rule of RULES) {
      const what = rule(write);
      if (what !== undefined) violated(`the PhasedRollout ${what}, by ${actor}`);
    }
    told.add(generationOf(after));
  }

  return {
    /** The query to which the answers are that the step has counted. */
    counted: () => counted,
    /** Before the version is noted in the history. */
    onEvent({ type, resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      if (resource === "statefulsets.apps" && type !== "DELETED")
        generations.set(`${object.metadata.uid} ${object.metadata.generation}`, object);
      if (type !== "MODIFIED" || !previous || !caller?.actor.startsWith("reconciler")) return;
      if (
        resource === PHASED_ROLLOUTS &&
        object.metadata.name === PHASED &&
        JSON.stringify(object["status"]) !== JSON.stringify(previous["status"])
      )
        onStatus(object, previous, caller);
    },
  };
}
