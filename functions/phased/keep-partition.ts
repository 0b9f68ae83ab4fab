/**
 * Decides the partition of a StatefulSet that a PhasedRollout manages when somebody else writes it (§16.9): such a
 * write releases no pod.
 */
import { isDeepStrictEqual } from "node:util";
import { HELD } from "../../reconciler/phased/target.ts";

/** The fields of a StatefulSet that say which of its pods get the latest template. */
export interface ReleaseFields {
  readonly template: unknown;
  readonly replicas: number;
  /** `spec.ordinals.start`: the partition counts from it. */
  readonly firstOrdinal: number;
  /** Its update strategy is RollingUpdate. */
  readonly rolls: boolean;
  /** 0 if it has none. */
  readonly partition: number;
}

/**
 * The partition to set instead of the written one; undefined if the written one releases no pod that was held before,
 * and no new pod.
 */
export function keepPartition(before: ReleaseFields, after: ReleaseFields): number | undefined {
  if (!after.rolls) return undefined;
  const least = isAnotherRollout(before, after) || opensToNewPods(before, after) ? HELD : before.partition;
  return after.partition < least ? least : undefined;
}

/** Pods that the write adds would get the latest template. With partition 0 all pods have it. */
function opensToNewPods({ partition, replicas }: ReleaseFields, after: ReleaseFields): boolean {
  return partition > 0 && partition < after.replicas && replicas < after.replicas;
}

/** The partition from before says nothing about these pods and this template. */
function isAnotherRollout(before: ReleaseFields, after: ReleaseFields): boolean {
  return (
    !before.rolls || before.firstOrdinal !== after.firstOrdinal || !isDeepStrictEqual(before.template, after.template)
  );
}
