/** Mirroring (§2.4, §2.5): a zone takes over the replicas of another resource, and tells it what it made of them. */
import type { Zone } from "../model/zone.ts";

/** What the scale subresource of a reference says. */
export interface ReferenceScale {
  /** `spec.replicas`: what is asked for. */
  readonly wanted: number;
  /** `status.replicas`: what was told back. */
  readonly told: number;
}

/** The replicas that a mirroring zone is to have: forced ones win. */
export function mirroredReplicas(zone: Zone, reference: ReferenceScale): number {
  return zone.scaling.forced ?? reference.wanted;
}

/** What to write into the reference's `status.replicas`; undefined if nothing. */
export function writeBack(zone: Zone, reference: ReferenceScale, replicas: number): number | undefined {
  return zone.scaling.mirror?.writeBack && reference.told !== replicas ? replicas : undefined;
}
