/**
 * The tools for actions under a Lease: the cluster with the fence of the Lease, the clock, and the signal that ends
 * them.
 */
import type { Clock } from "../clock.ts";
import type { Tracer } from "../tracing/tracer.ts";
import type { Actor } from "./actor.ts";

/** One for all ticks under a Lease. A function that needs fewer fields takes only those. */
export interface Context extends Actor {
  readonly clock: Clock;
  /** Once it fires, no further pod is deleted or called, and no new work starts. */
  readonly stop: AbortSignal;
  /** Without one, nothing is recorded. */
  readonly tracer?: Tracer | undefined;
}
