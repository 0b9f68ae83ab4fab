/**
 * Decides how long a gate lets a zone begin. A pass is not final: until a pod of its zone was replaced, the checks go
 * on, and a check that does not succeed, or whose last answer is old, closes the gate again.
 *
 *   Waiting --all checks have passed, and the zone is wanted--> Passed --the rollout begins the zone--> closed for good
 *      ^--a check fails, or was not asked for two periods; also if the zone could not begin after all--'
 *      '--a bypass--> Bypassed --the rollout begins the zone--> closed for good; --the bypass ends before--> Waiting
 */
import { isPassing, streakOf } from "../checks/result.ts";
import type { Zone } from "../model/zone.ts";
import { findBypass } from "./bypass.ts";
import { type Gate, isReadable, soakEnd } from "./gate.ts";
import { type GateRecord, type Stage, withBegan, type ZoneRecord } from "./record.ts";

/** True if all checks are passing, and the soak time is over. A gate whose spec cannot be read never passes. */
export function arePassed(
  gate: Pick<Gate, "checks" | "soakSeconds">,
  stage: Pick<Stage, "checks" | "since">,
  now: number,
): boolean {
  const isSoaking = gate.soakSeconds > 0 && now < soakEnd(gate, stage);
  if (!isReadable(gate) || isSoaking) return false;
  return gate.checks.every((check) => isPassing(check, streakOf(check, stage.checks), now));
}

/** True while the stage's checks are to be asked: it waits, or it has passed and its zone may still be held again. */
export function isStageOpen({ state, zone }: Stage, record: GateRecord, zones: readonly Zone[]): boolean {
  if (state === "Failed" || state === "Bypassed" || record.settledAt !== undefined) return false;
  return state === "Waiting" || !isUnderWay(record, zones, zone);
}

/** Stages whose pass or bypass is over wait again, and their zones count as not begun (§14.7, §14.8). */
export function closeOldPasses(
  gate: Gate,
  record: GateRecord,
  { zones, now }: { readonly zones: readonly Zone[]; readonly now: number },
) {
  const isKept = (stage: Stage): boolean =>
    stage.state === "Bypassed"
      ? isBypassed(record, stage.zone, { zones, now })
      : !isStageOpen(stage, record, zones) || arePassed(gate, stage, now);
  const isOver = (stage: Stage): boolean =>
    record.settledAt === undefined && !isUnderWay(record, zones, stage.zone) && !isKept(stage);
  const over = new Set(record.stages.filter(isOver));
  const names = new Set([...over].map(({ zone }) => zone));
  return {
    ...record,
    zones: record.zones.map((zone) => (names.has(zone.name) ? withBegan(zone, undefined) : zone)),
    stages: record.stages.map((stage): Stage => (over.has(stage) ? { ...stage, state: "Waiting" } : stage)),
  };
}

/** True if the zone of this name may begin without its checks; for "", the group, if all its zones may. */
export function isBypassed(
  { bypasses }: Pick<GateRecord, "bypasses">,
  name: string,
  { zones, now }: { readonly zones: readonly Zone[]; readonly now: number },
): boolean {
  const meant = name === "" ? zones : zones.filter((zone) => zone.name === name);
  return meant.length > 0 && meant.every((zone) => findBypass(bypasses, zone, now) !== undefined);
}

/**
 * The gate has let the zone begin, and a pod of it was replaced since: it runs to its end. So does a zone whose pods
 * are all updated: after it was scaled to 0, counts no longer tell that its pods were replaced.
 */
function isUnderWay({ zones: records }: GateRecord, zones: readonly Zone[], name: string): boolean {
  const own = records.find((one) => one.name === name);
  const zone = zones.find((one) => one.name === name);
  if (!own?.counts || !zone) return false;
  const { replicas, status } = zone;
  return status.updated >= Math.max(replicas, status.replicas) || !isAsItBegan(zone, own.counts);
}

/**
 * True if the counts show no pod replaced since the zone was let begin. Pods that were not ready then may have become
 * updated ones by themselves.
 */
function isAsItBegan({ replicas, status }: Zone, counts: NonNullable<ZoneRecord["counts"]>): boolean {
  return status.current >= Math.min(counts.current, replicas) && status.updated <= counts.updated + counts.notReady;
}

/** True if all pods of a zone that has a new template are still as they were when the group was last settled. */
export function isUntouched({ replicas, status }: Zone, settledRevision: string): boolean {
  const { currentRevision, updateRevision, current } = status;
  return updateRevision !== settledRevision && currentRevision === settledRevision && current >= replicas;
}
