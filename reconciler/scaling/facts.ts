/** Facts that snapshots and steps of scaling share. */
import type { Resource } from "../../infra/kubernetes/resources.ts";
import type { Zone } from "../model/zone.ts";

/** The zones of one group, and when they were last scaled down. */
export interface ZoneTimes {
  /** In byte order of their names. */
  readonly zones: readonly Zone[];
  /**
   * When each zone was last scaled down, by the zone tracker's ConfigMap and by the group's downscale Lease; undefined
   * if either cannot be read.
   */
  readonly tracked: ReadonlyMap<string, string> | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A resource that a zone mirrors, with the values of its scale. */
export interface Reference {
  readonly resource: Resource;
  /** `spec.replicas`. */
  readonly wantedReplicas: number;
  /** `status.replicas`: the replicas that were written back. */
  readonly reportedReplicas: number;
}
