/** Access to the cluster: to read it, and to write to it as the holder of a Lease. */
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
