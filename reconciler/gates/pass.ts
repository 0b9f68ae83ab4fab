/**
 * How long a gate lets a zone begin. A pass does not keep: until a pod of its zone was replaced, the checks go on, and
 * one that does not succeed, or whose last answer is old, closes the gate again.
 *
 *   Waiting --all checks have passed, and the zone is wanted--> Passed --the rollout begins the zone--> closed for good
 *      ^--a check fails, or was not asked for two periods; also if the zone could not begin after all--'
 */
import { isPassing, streakOf } from "../checks/result.ts";
import type { Zone } from "../model/zone.ts";
import type { Gate } from "./gate.ts";
import type { GateRecord, Stage } from "./record.ts";

/** True if all checks are passing. A gate whose checks cannot be read never passes. */
export function arePassed({ checks }: Pick<Gate, "checks">, stage: Pick<Stage, "checks">, now: number): boolean {
  return checks.length > 0 && checks.every((check) => isPassing(check, streakOf(check, stage.checks), now));
}

/** True while the stage's checks are to be asked: it waits, or it has passed and its zone may still be held again. */
export function isStageOpen({ state, zone }: Stage, record: GateRecord, zones: readonly Zone[]): boolean {
  if (state === "Failed" || record.settledAt !== undefined) return false;
  return state === "Waiting" || !isUnderWay(record, zones, zone);
}

/** Stages whose pass is over wait again, and their zones have not begun (§14.7). */
export function closeOldPasses(
  gate: Gate,
  record: GateRecord,
  { zones, now }: { readonly zones: readonly Zone[]; readonly now: number },
) {
  const isOver = (stage: Stage): boolean =>
    isStageOpen(stage, record, zones) && !isUnderWay(record, zones, stage.zone) && !arePassed(gate, stage, now);
  const over = new Set(record.stages.filter(isOver));
  const names = new Set([...over].map(({ zone }) => zone));
  return {
    ...record,
    zones: record.zones.map((zone) => (names.has(zone.name) ? { ...zone, began: undefined } : zone)),
    stages: record.stages.map((stage): Stage => (over.has(stage) ? { ...stage, state: "Waiting" } : stage)),
  };
}

/** The gate has let the zone begin, and a pod of it was replaced since: it goes on to its end. */
function isUnderWay({ zones: records }: GateRecord, zones: readonly Zone[], name: string): boolean {
  const own = records.find((one) => one.name === name);
  const zone = zones.find((one) => one.name === name);
  return own?.began === "Now" && zone !== undefined && !isUntouched(zone, own.settledRevision);
}

/** True if all pods of a zone that has a new template are still as they were when the group was last settled. */
export function isUntouched({ replicas, status }: Zone, settledRevision: string): boolean {
  const { currentRevision, updateRevision, current } = status;
  return updateRevision !== settledRevision && currentRevision === settledRevision && current >= replicas;
}
