/** Access to the cluster: to read it, to write to it as the holder of a Lease, and the tools for actions under one. */
import type { Clock } from "../clock.ts";
import type { Tracer } from "../tracing/tracer.ts";
import type { Cluster } from "./cluster.ts";
import type { Fence } from "./lease.ts";

/** The source of what is decided by. */
export interface Source {
  readonly cluster: Cluster;
}

/** A source that may be written to as long as the fence allows. */
export interface Actor extends Source {
  readonly fence: Fence;
}

/** One for all ticks under a Lease. A function that needs fewer fields takes only those. */
export interface Context extends Actor {
  readonly clock: Clock;
  /** Once it fires, no further pod is deleted or called, and no new work starts. */
  readonly stop: AbortSignal;
  /** Without one, nothing is recorded. */
  readonly tracer?: Tracer | undefined;
}
