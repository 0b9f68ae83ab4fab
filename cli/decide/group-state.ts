/** The progress of a group, by its records. Pure. */
import type { RolloutGroupStatus, StoredHold } from "../../reconciler/group-status/status.ts";
import { nameImages, type Zone } from "../../reconciler/model/zone.ts";
import { describeRevision, type ZoneHistory } from "./revisions.ts";

export interface GroupState {
  readonly namespace: string;
  /** The value of the label. */
  readonly group: string;
  /** The zones in their present state, in byte order of their names. */
  readonly zones: readonly Zone[];
  /** As recorded; undefined if nothing is. */
  readonly status: Partial<RolloutGroupStatus> | undefined;
  /** The RolloutGroup's generation; 0 without one. */
  readonly generation: number;
  /** The reconciler does not tick: the record may be outdated. */
  readonly isOld?: boolean;
  /** The revisions of its zones: read for one group whose recorded revisions may no longer be those of its zones. */
  readonly histories?: readonly ZoneHistory[];
}

/** The images beside a recorded revision: the zone's template may be a later one. */
export function nameRevision(revision: string, { zones, histories = [] }: GroupState): string {
  const known = histories.flatMap(({ revisions }) => revisions);
  return known.length > 0 ? describeRevision(revision, known) : nameImages(revision, zones);
}

export type Completion = "done" | "blocked" | "going";

/**
 * §18.1: a "ready" or "blocked" counts only if it was recorded of the StatefulSets in their present state: not of a
 * spec before the last apply.
 */
export function judgeProgress(state: GroupState): Completion {
  if (!isRecorded(state)) return "going";
  const isTrue = (type: string): boolean =>
    state.status?.conditions?.some((one) => one.type === type && one.status === "True") === true;
  if (isTrue("Stalled")) return "blocked";
  return isTrue("Ready") && !state.isOld ? "done" : "going";
}

/** True if the reconciler has seen the latest spec of every zone, and of the RolloutGroup. */
export function isRecorded({ zones, status, generation }: GroupState): boolean {
  const rows = new Map((status?.zones ?? []).map((row) => [row.name, row]));
  const isSeen = status?.observedGeneration === generation && rows.size === zones.length;
  return isSeen && zones.every(({ name, generation: newest }) => rows.get(name)?.generation === newest);
}

/** The state of the group for a person who waits, in a sentence. */
export function describeProgress(state: GroupState): string {
  if (state.status === undefined) return "nothing is recorded of it: no reconciler has seen it yet";
  if (!isRecorded(state)) return "the reconciler has not seen the latest spec yet";
  const { message = "" } = state.status;
  return state.isOld ? `as it was recorded before the reconciler stopped: ${message}` : message;
}

/** What holds the group, as recorded; its rollout first. */
export const holdsOf = (state: GroupState | undefined): readonly StoredHold[] => state?.status?.holds ?? [];
