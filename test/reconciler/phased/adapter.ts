/**
 * The one door to the decisions about a PhasedRollout: facts in, as the objects that a cluster has; a decision out.
 * Whoever rewrites how they are read and decided has this file to keep, and no case.
 */
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import type { PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { QueryAnswer } from "../../../infra/prometheus/answer.ts";
import { type CheckVerdict, judgeAnswer, type SuccessWhen } from "../../../reconciler/checks/check.ts";
import type { PlaceholderValues } from "../../../reconciler/checks/placeholders.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { decidePhased, targetNeedsPods } from "../../../reconciler/phased/decide-phased.ts";
import { type PhasedRollout, readPhasedRollout } from "../../../reconciler/phased/phased-rollout.ts";
import { hasNoCandidate, phasedPlaceholders } from "../../../reconciler/phased/placeholder-values.ts";
import type { PhasedDecision, PhasedSnapshot, TargetSnapshot } from "../../../reconciler/phased/snapshot.ts";
import { hashOf } from "../../../reconciler/phased/step.ts";
import { podsByIndex, readTarget } from "../../../reconciler/phased/target.ts";

export { HELD } from "../../../reconciler/phased/target.ts";
export { SAMPLE_VALUES } from "../../../reconciler/phased/placeholder-values.ts";
export type { PhasedDecision } from "../../../reconciler/phased/snapshot.ts";
export type { PhasedStatus } from "../../../reconciler/phased/status.ts";

/** All objects are in one namespace. */
export interface Facts {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly rollout: CustomObject;
  /** The other PhasedRollouts. */
  readonly others?: readonly CustomObject[];
  /** The one that the PhasedRollout names; undefined if there is none. */
  readonly statefulSet: StatefulSet | undefined;
  readonly pods: readonly PodObject[];
  /** Prometheus' answer to the check that the last decision asked for. */
  readonly answer?: QueryAnswer;
}

function read({ now, rollout, others = [], statefulSet, pods, answer }: Facts): PhasedSnapshot {
  const target = statefulSet && readTarget(statefulSet);
  const own = readPhased(rollout);
  return {
    now,
    rollout: own,
    target,
    owner: [own, ...others.map((other) => readPhased(other))].find(({ name }) => name === target?.owner),
    pods: target ? podsByIndex(target, pods.map(readPod)) : new Map(),
    ...(answer && { answer: { ...answer, at: now } }),
  };
}

function readManaged(facts: Facts): TargetSnapshot {
  const { target, ...rest } = read(facts);
  if (!target) throw new Error("there is no StatefulSet");
  return { ...rest, target };
}

/** As the rules read the object. */
export const readPhased = (object: CustomObject, byDefault: SuccessWhen = "NoData"): PhasedRollout =>
  readPhasedRollout(object, byDefault);

/** The next write, or the check that comes first. */
export const decide = (facts: Facts): PhasedDecision => decidePhased(read(facts));

/** True if a tick lists the pods of the StatefulSet. */
export const needsPods = (facts: Facts): boolean => targetNeedsPods(readManaged(facts));

/** What the answer means to the check of this PhasedRollout. */
export const judge = (rollout: CustomObject, answer: QueryAnswer): CheckVerdict =>
  judgeAnswer(readPhased(rollout).check, answer);

/** What the results in a status are of, as it is stored with them. */
export const checkHash = (rollout: CustomObject, byDefault?: SuccessWhen): string =>
  hashOf(readPhased(rollout, byDefault).check);

export const placeholdersOf = (facts: Facts): PlaceholderValues => phasedPlaceholders(readManaged(facts));

/** True if the check compares pods of which there are none yet. */
export const lacksCandidate = (facts: Facts): boolean => hasNoCandidate(readManaged(facts));
