/** The values of the placeholders in the expressions of a PhasedRollout's check (§16.5). */
import { compares, type PlaceholderValues, rangeSince } from "../checks/placeholders.ts";
import type { TargetSnapshot } from "./snapshot.ts";
import { currentStep, isUpdated } from "./step.ts";

/** The candidate pods are those at the update revision; the other pods do not have it yet. */
export function phasedPlaceholders(snapshot: TargetSnapshot): PlaceholderValues {
  const { rollout, target, pods, now } = snapshot;
  const all = [...pods.keys()].filter((index) => index < target.replicas).toSorted((a, b) => a - b);
  const isNew = (index: number): boolean => isUpdated(target.status.updateRevision, pods.get(index));
  const podsOf = (chosen: readonly number[]) =>
    ({
      kind: "pods",
      sets: [{ set: target.name, ordinals: chosen.map((index) => target.firstOrdinal + index) }],
    }) as const;
  const begun = Date.parse(currentStep(snapshot)?.analisysStartTime ?? "");
  return {
    namespace: { kind: "name", name: rollout.namespace },
    statefulset: { kind: "name", name: target.name },
    candidate_pods: podsOf(all.filter(isNew)),
    other_pods: podsOf(all.filter((index) => !isNew(index))),
    range: rangeSince(Number.isNaN(begun) ? now : begun, now),
  };
}

/** Values to try its expressions with. */
export const SAMPLE_VALUES: PlaceholderValues = {
  namespace: { kind: "name", name: "namespace" },
  statefulset: { kind: "name", name: "db" },
  candidate_pods: { kind: "pods", sets: [{ set: "db", ordinals: [2] }] },
  other_pods: { kind: "pods", sets: [{ set: "db", ordinals: [0, 1] }] },
  range: { kind: "duration", seconds: 300 },
};

/** True before the first pod: there is nothing yet that could be compared. */
export function hasNoCandidate(snapshot: TargetSnapshot): boolean {
  const { rollout, target, pods } = snapshot;
  return (
    compares(rollout.check, "candidate_pods") &&
    ![...pods.values()].some((pod) => isUpdated(target.status.updateRevision, pod))
  );
}
