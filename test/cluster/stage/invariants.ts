/** The safety invariants, checked over a whole timeline. */
import assert from "node:assert/strict";

export type PodState = "notReady" | "ready" | "terminating" | "gone";

/** One change of one pod, in the order in which the API server made the changes. */
export interface Entry {
  readonly group: string;
  readonly zone: string;
  readonly pod: string;
  readonly uid: string;
  readonly revision: string;
  readonly state: PodState;
  /** Milliseconds since the recording began; only for messages. */
  readonly at: number;
}

/** Returns how many pods of a zone may be unavailable. */
type Limit = (zone: string) => number;

/**
 * Returns one sentence per violation. All pods are deleted by us or by evictions that we allowed, and the
 * rules are the same for both. A pod is disrupted from its deletion while ready until a pod of its name is
 * ready. After each deletion, in any state of the pod:
 *
 *   - only pods of one zone of the group are disrupted
 *   - at most `limit` pods of the zone are disrupted
 *   - every pod of the group's other zones is ready, for whatever reason it might not be
 *   - if the pod was ready, at most `limit` pods of its zone are not ready, for whatever reason
 *
 * A second deletion of a terminating pod does not count.
 */
export function findViolations(timeline: readonly Entry[], limit: Limit): string[] {
  const latest = new Map<string, Entry>();
  /** Pods that were ready when they were deleted and have no ready successor yet. */
  const disrupted = new Map<string, Entry>();
  const violations: string[] = [];

  for (const entry of timeline) {
    const previous = latest.get(entry.pod);
    latest.set(entry.pod, entry);
    if (entry.state === "ready") disrupted.delete(entry.pod);
    if (!isDeletion(previous, entry)) continue;
    const add = (violation: string): void =>
      void violations.push(`${Math.round(entry.at)} ms, ${entry.pod} deleted: ${violation}`);
    if (previous?.state === "ready") disrupted.set(entry.pod, entry);

    const zones = new Set([...disrupted.values()].filter(({ group }) => group === entry.group).map(({ zone }) => zone));
    if (zones.size > 1) add(`zones ${[...zones].join(" and ")} are disrupted at once`);
    const ours = [...disrupted.values()].filter(({ group, zone }) => group === entry.group && zone === entry.zone);
    if (ours.length > limit(entry.zone))
      add(`${names(ours)} are unavailable by our doing, ${limit(entry.zone)} may be`);

    const down = [...latest.values()].filter(({ group, state }) => group === entry.group && state !== "ready");
    const elsewhere = down.filter(({ zone }) => zone !== entry.zone);
    if (elsewhere.length > 0) add(`${names(elsewhere)} of another zone is not ready`);
    const here = down.filter(({ zone }) => zone === entry.zone);
    if (previous?.state === "ready" && here.length > limit(entry.zone))
      add(`${names(here)} are unavailable, ${limit(entry.zone)} may be`);
  }
  return violations;
}

/**
 * Makes each partition of a group a group of its own: a budget with partitions has the same rules within each
 * partition.
 */
export function byPartition(timeline: readonly Entry[]): Entry[] {
  return timeline.map((entry) => ({
    ...entry,
    group: `${entry.group}/${entry.pod.slice(entry.pod.lastIndexOf("-") + 1)}`,
  }));
}

/** Allows one unavailable pod per zone by default. */
export function assertNoViolations(timeline: readonly Entry[], limit: Limit = () => 1): void {
  assert.deepEqual(findViolations(timeline, limit), []);
}

/** The entries at which a pod's deletion began. */
export function deletions(timeline: readonly Entry[]): Entry[] {
  const latest = new Map<string, Entry>();
  return timeline.filter((entry) => {
    const before = latest.get(entry.pod);
    latest.set(entry.pod, entry);
    return isDeletion(before, entry);
  });
}

/** The entries at which a pod was recreated with the same name. */
export function returns(timeline: readonly Entry[]): Entry[] {
  const uids = new Map<string, string>();
  return timeline.filter(({ pod, uid }) => {
    const before = uids.get(pod);
    uids.set(pod, uid);
    return before !== undefined && before !== uid;
  });
}

/** A pod without a node is removed without ever terminating. */
function isDeletion(previous: Entry | undefined, { state }: Entry): boolean {
  return state === "terminating"
    ? previous?.state !== "terminating"
    : state === "gone" && previous?.state !== "terminating";
}

function names(entries: readonly Entry[]): string {
  return entries.map(({ pod, state }) => `${pod} (${state})`).join(", ");
}
