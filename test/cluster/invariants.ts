/** What must never happen, held against a whole timeline rather than its end. */
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
  /** Milliseconds since the recording began, for the reader only. */
  readonly at: number;
}

/** How many pods of a zone may be unavailable, by its name. */
export type Limit = (zone: string) => number;

/**
 * One sentence for each time that something happened which must not. All pods are deleted by us or by evictions that we allowed: rollouts and
 * evictions promise the same. At each deletion, whatever state the pod was in, and with it:
 *
 *   - pods of one zone of the group are disrupted, no other; a pod is from its deletion while ready until a pod of its name is ready
 *   - at most `limit` pods of the zone are disrupted
 *   - every pod of the group's other zones is ready, whoever caused it not to be
 *   - if the pod was ready, at most `limit` pods of its zone are not ready, whoever caused it
 *
 * A second deletion of a pod that is terminating changes nothing and is none.
 */
export function findViolations(timeline: readonly Entry[], limit: Limit): string[] {
  const latest = new Map<string, Entry>();
  /** Pods that were ready when they were deleted and have no ready successor yet: unavailable by our doing. */
  const disrupted = new Map<string, Entry>();
  const violations: string[] = [];

  for (const entry of timeline) {
    const before = latest.get(entry.pod);
    latest.set(entry.pod, entry);
    if (entry.state === "ready") disrupted.delete(entry.pod);
    if (!isDeletion(before, entry)) continue;
    const tell = (what: string): void => void violations.push(`${Math.round(entry.at)} ms, ${entry.pod} deleted: ${what}`);
    if (before?.state === "ready") disrupted.set(entry.pod, entry);

    const zones = new Set([...disrupted.values()].filter(({ group }) => group === entry.group).map(({ zone }) => zone));
    if (zones.size > 1) tell(`zones ${[...zones].join(" and ")} are disrupted at once`);
    const ours = [...disrupted.values()].filter(({ group, zone }) => group === entry.group && zone === entry.zone);
    if (ours.length > limit(entry.zone)) tell(`${names(ours)} are unavailable by our doing, ${limit(entry.zone)} may be`);

    const down = [...latest.values()].filter(({ group, state }) => group === entry.group && state !== "ready");
    const elsewhere = down.filter(({ zone }) => zone !== entry.zone);
    if (elsewhere.length > 0) tell(`${names(elsewhere)} of another zone is not ready`);
    const here = down.filter(({ zone }) => zone === entry.zone);
    if (before?.state === "ready" && here.length > limit(entry.zone)) tell(`${names(here)} are unavailable, ${limit(entry.zone)} may be`);
  }
  return violations;
}

/** Each partition of a group as a group of its own: what a budget with partitions promises is what one without promises, for each of them. */
export function byPartition(timeline: readonly Entry[]): Entry[] {
  return timeline.map((entry) => ({ ...entry, group: `${entry.group}/${entry.pod.slice(entry.pod.lastIndexOf("-") + 1)}` }));
}

/** One pod of a zone at a time, unless `limit` says otherwise. */
export function assertNoViolations(timeline: readonly Entry[], limit: Limit = () => 1): void {
  assert.deepEqual(findViolations(timeline, limit), []);
}

/** The entries at which a pod began to end. */
export function deletions(timeline: readonly Entry[]): Entry[] {
  const latest = new Map<string, Entry>();
  return timeline.filter((entry) => {
    const before = latest.get(entry.pod);
    latest.set(entry.pod, entry);
    return isDeletion(before, entry);
  });
}

/** The entries at which a pod of a known name came back. */
export function returns(timeline: readonly Entry[]): Entry[] {
  const uids = new Map<string, string>();
  return timeline.filter(({ pod, uid }) => {
    const before = uids.get(pod);
    uids.set(pod, uid);
    return before !== undefined && before !== uid;
  });
}

/** A pod that is bound to no node ends without ever terminating. */
function isDeletion(before: Entry | undefined, { state }: Entry): boolean {
  return state === "terminating" ? before?.state !== "terminating" : state === "gone" && before?.state !== "terminating";
}

function names(entries: readonly Entry[]): string {
  return entries.map(({ pod, state }) => `${pod} (${state})`).join(", ");
}
