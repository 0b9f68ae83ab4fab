/** What is acted with under a Lease: the cluster with the fence of the Lease, the clock, and the signal that ends it. */
import type { Clock } from "../clock.ts";
import type { Tracer } from "../tracing/tracer.ts";
import type { Actor } from "./actor.ts";

/** One for all ticks under a Lease. A function that needs less takes less. */
export interface Context extends Actor {
  readonly clock: Clock;
  /** Once it fires, no further pod is deleted or called, and nothing more is begun. */
  readonly stop: AbortSignal;
  /** Without one, nothing is recorded. */
  readonly tracer?: Tracer | undefined;
}
