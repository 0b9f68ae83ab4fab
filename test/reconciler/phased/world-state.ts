/** The state of the model of a phased rollout. */
import type { PhasedStatus } from "../../../reconciler/phased/status.ts";

type Phase = "ready" | "starting" | "broken" | "terminating";
export interface SimulatedPod {
  revision: number;
  phase: Phase;
}

export interface World {
  now: number;
  prometheus: "quiet" | "firing" | "down";
  /** Writes of users pass the admission of StatefulSets (§16.9). */
  readonly guarded: boolean;
  /**
   * The pods of the managed StatefulSet that its controller has replaced by another template than the current one, by
   * `releaseKey`.
   */
  readonly replaced: string[];
  /** Those that it has made by another template than the current one. */
  readonly made: string[];
  set: {
    uid: number;
    version: number;
    generation: number;
    readonly ordered: boolean;
    /** `spec.updateStrategy.rollingUpdate.maxUnavailable`, with the feature MaxUnavailableStatefulSet. */
    readonly maxUnavailable: number;
    replicas: number;
    partition: number;
    template: number;
    strategy: "RollingUpdate" | "OnDelete";
    owner: string | undefined;
    original: number | undefined;
    pods: Map<number, SimulatedPod>;
    /** As the controller wrote it last. */
    status: { observed: number; current: number; update: number; updated: number; available: number; replicas: number };
  };
  rollout: {
    version: number;
    generation: number;
    skipCheck: boolean;
    paused: boolean;
    finalizer: boolean;
    status: PhasedStatus | undefined;
    finalCheck: boolean;
  };
}
