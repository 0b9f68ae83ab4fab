/** What happens to the pods of an emulated cluster, seen from outside of the reconciler. */
import type { Stage } from "./stage.ts";

export interface Witness {
  /** Pods in the order in which they were deleted. */
  readonly deleted: string[];
  /** The violations that occurred. */
  readonly violations: string[];
}

/**
 * Watches the cluster itself: no pod may be deleted while another zone of its group has one down, or more than
 * `maxUnavailable` of its own.
 */
export function witness(stage: Stage, maxUnavailable = 1): Witness {
  const down = new Map<string, Set<string>>();
  const seen: Witness = { deleted: [], violations: [] };
  stage.emulator.store.subscribe(({ resource, type, object }) => {
    if (resource !== "pods") return;
    const { name, deletionTimestamp } = object.metadata;
    const zone = name.slice(0, name.lastIndexOf("-"));
    const status = (object as { status?: { conditions?: { type: string; status: string }[] } }).status;
    const ready =
      status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") ?? false;
    const zonesDown = down.get(zone) ?? new Set();
    down.set(zone, zonesDown);
    if (type !== "DELETED" && ready && deletionTimestamp === undefined) zonesDown.delete(name);
    if (type === "DELETED" || deletionTimestamp === undefined || zonesDown.has(`${name} ending`)) {
      if (type === "DELETED") zonesDown.delete(`${name} ending`);
      return;
    }
    seen.deleted.push(name);
    zonesDown.add(name);
    zonesDown.add(`${name} ending`);
    const pods = [...zonesDown].filter((entry) => !entry.endsWith(" ending"));
    if (pods.length > maxUnavailable) seen.violations.push(`${pods.join(", ")} down at once`);
    for (const [other, theirs] of down)
      if (other !== zone && theirs.size > 0)
        seen.violations.push(`${name} deleted while ${[...theirs].join(", ")} down`);
  });
  return seen;
}

/** Per zone: whether its new revision is recorded as current, and the numbers of updated and of ready pods. */
export function revisions(stage: Stage): (readonly unknown[])[] {
  return stage.emulator.store.list("statefulsets.apps", "default").map((set) => {
    const status = (set as { status?: Record<string, unknown> }).status ?? {};
    return [status["currentRevision"] === status["updateRevision"], status["updatedReplicas"], status["readyReplicas"]];
  });
}
