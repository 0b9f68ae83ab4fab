/** A group as it was read: its record, and what that cannot have. Pure. */
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { RolloutGroupStatus, StoredHold } from "../../reconciler/group-status/status.ts";
import { dedupKeyOf, factsOf } from "../../reconciler/model/decision.ts";
import { type ShownGroup, viewGroup } from "../../reconciler/group-status/view.ts";
import { isReady } from "../../reconciler/model/health.ts";
import { listSome } from "../../infra/cut.ts";
import { holdForLost, holdForOrphans } from "../../reconciler/model/orphans.ts";
import type { Zone, ZoneWithPods } from "../../reconciler/model/zone.ts";

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
  /** The pods that StatefulSets have left behind, as zones, where they were read. */
  readonly orphans?: readonly ZoneWithPods[];
}

export const viewGroupState = (state: GroupState): ShownGroup =>
  viewGroup({ status: state.status, isSeen: isRecorded(state), isOld: state.isOld === true });

/**
 * The group with the hold of its orphaned zones. The reconciler lists no pods of a settled group, and records nothing of
 * them; nor of a group that has lost all its StatefulSets (§1.15).
 */
export function withOrphans(state: GroupState, now: number): GroupState {
  const { orphans = [] } = state;
  const isLost = state.zones.length === 0;
  const held = isLost ? holdForLost(orphans) : viewGroupState(state).isReady ? holdForOrphans(orphans) : undefined;
  if (!held) return state;
  const { reason, message, objects } = held;
  const [first] = objects;
  const since = orphans.flatMap(({ pods }) => pods.flatMap((pod) => (isReady(pod) ? [] : (pod.health.since ?? []))));
  const { phase } = factsOf(reason);
  const stored: StoredHold = {
    reason,
    phase,
    message,
    cause: dedupKeyOf(held),
    objects: objects.map(({ kind, name }) => ({ kind, name })),
    ...(first && { waitsFor: { kind: first.kind, name: first.name } }),
    since: formatTimestamp(since.reduce((a, b) => Math.min(a, b), now)),
  };
  const { group, generation } = state;
  // Once the last StatefulSet is gone, the reconciler removes the record.
  const status = isLost ? { observedGeneration: generation, group, phase, zones: [] } : state.status;
  return { ...state, status: { ...status, message, holds: isLost ? [stored] : [stored, ...storedHolds(state)] } };
}

/** True if the reconciler has seen the latest spec of every zone, and of the RolloutGroup. */
export function isRecorded({ zones, status, generation }: GroupState): boolean {
  const rows = new Map((status?.zones ?? []).map((row) => [row.name, row]));
  const isSeen = status?.observedGeneration === generation && rows.size === zones.length;
  return isSeen && zones.every(({ name, generation: newest }) => rows.get(name)?.generation === newest);
}

/** What a group that is up to date does not do while all of these zones are paused; empty otherwise. */
export function notePause(zones: readonly Zone[]): string[] {
  const [first] = zones;
  if (!first || !zones.every(({ paused }) => paused)) return [];
  const names = listSome(zones.map(({ name }) => name));
  const resume = `zonewise -n ${first.namespace} resume ${first.group}`;
  return [`${names} ${zones.length > 1 ? "are" : "is"} paused: a new template waits until you resume (${resume})`];
}

/** What holds the group, as recorded; its rollout first. */
export const storedHolds = (state: GroupState | undefined): readonly StoredHold[] => state?.status?.holds ?? [];
