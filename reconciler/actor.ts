/** What actions work with, and what they come to. */
import type { Call, Cluster } from "../infra/kubernetes/cluster.ts";
import type { Fence } from "../infra/kubernetes/lease.ts";
import type { Freshness } from "./freshness.ts";
import type { Hold } from "./model/decision.ts";
import type { Pod } from "./model/pod.ts";
import type { Zone } from "./model/zone.ts";
import type { DeletePods, FinishZone } from "./rollout/zone.ts";
import type { ScaleZone } from "./scaling/steps.ts";

/** A grant to delete a pod. */
export interface DisruptionGrant {
  readonly action: "grant";
  /** Releases it, unused; never rejects. */
  readonly release: (call: Call) => Promise<void>;
}

/**
 * Requested for each pod right before its batch is deleted, for all in the same moment, within the bounds of `call`: the hold that forbids it, or a
 * grant, of which nothing is to be released if it is undefined.
 */
export type MayDisrupt = (pod: Pod, zone: Zone, call: Call) => Promise<Hold | DisruptionGrant | undefined>;

/** What reads and writes go through. */
export interface Actor {
  readonly cluster: Cluster;
  readonly fence: Fence;
  readonly freshness: Freshness;
}

/** A decision to do something. */
export type Action = DeletePods | FinishZone | ScaleZone;

/** What a decision came to. */
export interface Effect {
  readonly replaced: readonly Pod[];
  /** Why pods that were chosen stayed. */
  readonly denied: readonly Hold[];
  /** Why the rest of the batch was left for the next tick, if it was. */
  readonly stopped?: string;
}

/** Something worth a log line, though it changes nothing. */
export interface LogNote {
  readonly level: "info" | "warn";
  readonly text: string;
}
