/** Decides which partition a write leaves to a StatefulSet that a PhasedRollout manages (§16.9): no write of others releases a pod. */
import { isDeepStrictEqual } from "node:util";

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

/** The partition in place of the written one; undefined if the written one releases no pod that was kept before. */
export function keepPartition(before: ReleaseFields, after: ReleaseFields): number | undefined {
  if (!after.rolls) return undefined;
  const least = isAnotherRollout(before, after) ? after.replicas : Math.min(before.partition, after.replicas);
  return after.partition < least ? least : undefined;
}

/** The partition from before says nothing about these pods and this template. */
function isAnotherRollout(before: ReleaseFields, after: ReleaseFields): boolean {
  return !before.rolls || before.firstOrdinal !== after.firstOrdinal || !isDeepStrictEqual(before.template, after.template);
}
