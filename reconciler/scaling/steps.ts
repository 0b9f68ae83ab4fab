/** The steps of scaling: each is decided after the one before it was taken. */
import type { Hold } from "../model/decision.ts";
import type { ScaleZone } from "../model/outcome.ts";
import type { Zone } from "../model/zone.ts";
import type { Delay, Endpoints } from "./delayed.ts";
import type { Reference, ZoneTimes } from "./facts.ts";

/** POST to the pods that are to go when the zone is to have `wanted` replicas, in order. */
export interface PreparePods {
  readonly action: "preparePods";
  readonly zone: Zone;
  readonly wanted: number;
  readonly pods: Endpoints;
  readonly delay: Delay;
}

/** DELETE to the pods that stay. */
interface CancelPreparation {
  readonly action: "cancelPreparation";
  readonly zone: Zone;
  readonly pods: Endpoints;
}

/** Tell the reference, in its `status.replicas`, how many replicas the zone has. */
export interface WriteBack {
  readonly action: "writeBack";
  readonly zone: Zone;
  readonly reference: Reference;
  /** Name of the reference. */
  readonly name: string;
  readonly replicas: number;
}

export type ScalingStep = PreparePods | CancelPreparation | ScaleZone | WriteBack | Hold;

export type ScaleDecision = ScaleZone | Hold;

interface Target {
  readonly replicas: number;
  readonly why: string;
}

/** The step that scales a zone; shrinking is recorded if any zone of the group has a minimum time. */
export function planScale(
  zone: Zone,
  { replicas, why }: Target,
  { zones, now }: Pick<ZoneTimes, "zones" | "now">,
): ScaleZone {
  const record = replicas < zone.replicas && zones.some(({ scaling }) => scaling.minTime !== undefined);
  const message = `scaling ${zone.name} from ${zone.replicas} to ${replicas} replicas, ${why}`;
  return { action: "scaleZone", zone, replicas, message, ...(record && { recordAt: now }) };
}
