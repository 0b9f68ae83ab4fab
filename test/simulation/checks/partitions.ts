/**
 * The oracle of the StatefulSet of a PhasedRollout: a reconciler lowers its partition by the version that it has read,
 * deletes no pod that would not go back, and others are answered with a partition that releases nothing.
 */
import { isDeepStrictEqual } from "node:util";
import { dig, fieldsOf, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import type { Caller, Review } from "../network.ts";
import { PHASED } from "./objects.ts";
import {
  exprOf,
  HELD,
  isObserved,
  isOutdated,
  isRolling,
  isZone,
  knownAt,
  type PhasedOptions,
  ROLLOUT_KEY,
  specOf,
} from "./phased-set.ts";

export interface PartitionOptions extends PhasedOptions {
  /** The query to which the answers are that the step has counted. */
  readonly counted: () => string | undefined;
}

const CLAIM = "sts.plus/phasedRollout";

/** Calls `violated` with what happened, in words. */
export function createPartitionSafety(options: PartitionOptions) {
  const { violated, now, history, counted } = options;

  /** A reconciler writes the StatefulSet that it has read in the version before. */
  function onSet(object: KubeObject, previous: KubeObject, { actor, sentAt = now() }: Caller): void {
    const [{ partition: from, replicas }, { partition: to }] = [specOf(previous), specOf(object)];
    const rollouts = history.since(ROLLOUT_KEY, knownAt(options, actor, sentAt));
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
    if (!rollouts.some((rollout) => explains(rollout, previous)))
      violated(`${actor} lowers the partition of ${PHASED} to ${to}, and no step at ${first} has passed`);
    const isOther = (rollout: KubeObject | undefined): boolean =>
      exprOf(fieldsOf(rollout?.["spec"])) !== counted() &&
      dig(rollout, "status", "rollingPodStatus", "promoted") !== true;
    if (counted() !== undefined && rollouts.every(isOther))
      violated(`${actor} lowers the partition of ${PHASED} to ${to} by successes of ${counted()}`);
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
      if (type !== "MODIFIED" || !previous || !caller?.actor.startsWith("reconciler")) return;
      const begins = object.metadata.deletionTimestamp !== undefined && !previous.metadata.deletionTimestamp;
      if (resource === "statefulsets.apps") onSet(object, previous, caller);
      if (resource === "pods" && begins) onTaken(previous, caller.actor);
    },
  };
}
