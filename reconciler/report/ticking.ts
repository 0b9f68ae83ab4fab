/**
 * The known facts about the reconciler's ticks: its Lease, its CronJob, the CronJob's Jobs and their pods; and the
 * report if it does not tick. judge-ticking.ts decides. Pure.
 */

/** Names of the objects that run the reconciler, and of the Lease under which it ticks. */
export interface Installation {
  readonly namespace: string;
  readonly lease: string;
  readonly cronJob: string;
}

export interface LeaseFacts {
  /** "" if nobody holds it. */
  readonly holder: string;
  /** RFC 3339. */
  readonly heldSince: string | undefined;
  /** The holder has renewed it within its duration. */
  readonly isLive: boolean;
  /** When the last tick that read the cluster began, RFC 3339. */
  readonly lastTick: string | undefined;
}

export interface CronJobFacts {
  readonly suspended: boolean;
  /** RFC 3339. */
  readonly createdAt: string | undefined;
  /** When it created its last Job, RFC 3339; when it was created itself if it has not. */
  readonly lastJobAt: string | undefined;
}

export interface JobFacts {
  readonly name: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly state: "active" | "succeeded" | "failed";
  /** The message of its failure, as the Job has it. */
  readonly message: string;
}

export interface RunPodFacts {
  readonly name: string;
  readonly job: string;
  /** Why its container does not start; undefined if it has. */
  readonly waiting: string | undefined;
  /** The end of its container; undefined if it has not ended. */
  readonly failure: string | undefined;
}

export interface TickingFacts {
  readonly installation: Installation;
  /** The namespace that is asked about. */
  readonly served: string;
  /** Undefined if there is none. */
  readonly lease: LeaseFacts | undefined;
  /** Undefined if there is none, or if it was not read. */
  readonly cronJob: CronJobFacts | undefined;
  readonly jobs: readonly JobFacts[];
  readonly pods: readonly RunPodFacts[];
  /**
   * The objects that could not be read, in clauses, except the Lease (`leaseUnread`), without which nothing is known.
   */
  readonly unread: readonly string[];
  readonly leaseUnread: string | undefined;
  /** The namespaces in which a Lease was looked for; that of the installation if absent. */
  readonly places?: readonly string[];
  /**
   * The original runs in the namespace that is asked about: a suspended CronJob is a step of the migration. Undefined if
   * that could not be read.
   */
  readonly original?: boolean | undefined;
  /** The trace of a reconciler, in a clause: a RolloutGroup with a status, or that RolloutGroups could not be read. */
  readonly traces?: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type TickingReason =
  | "NotKnown"
  | "NotYet"
  | "NotInstalled"
  | "Suspended"
  | "LeaseHeld"
  | "PodNotStarting"
  | "JobFailing"
  | "NoPod"
  | "NoJob"
  | "NotExplained";

/** The report that it does not tick, or that this is not known. */
export interface NoTick {
  readonly state: "stopped" | "unknown";
  readonly reason: TickingReason;
  /** The whole sentence: since when, and why. */
  readonly message: string;
  /** The last tick, RFC 3339; absent if none is recorded. */
  readonly since?: string;
  /** A command that ends it or shows more; it touches nothing that is healthy. */
  readonly remedy: string;
  /** The namespaces that it concerns; absent if it may concern any. */
  readonly served?: readonly string[];
}

/** True if it concerns a namespace. */
export const concerns = ({ served }: Pick<NoTick, "served">, namespace: string): boolean =>
  served === undefined || served.includes(namespace);

/**
 * Milliseconds since the begin of the last finished tick, from which on the reconciler does not tick. A run that is lost
 * with its node has its successor within 150 s: the last tick at rest is up to 30 s old, a minute, 30 s by which a CronJob
 * may be late, the Lease's 30 s.
 */
export const NO_TICK_MS = 180_000;
/**
 * The same while a live process holds the Lease: its tick may take long. The alert ZonewiseTickMissing has the same
 * value.
 */
export const SLOW_TICK_MS = 300_000;
/** Name of the original's Deployment. */
export const ORIGINAL = "rollout-operator";

/** `why`: a clause. */
export const notKnown = (installation: Pick<Installation, "namespace" | "lease">, why: string): NoTick => ({
  state: "unknown",
  reason: "NotKnown",
  message: `it is unknown whether the reconciler runs: ${why}`,
  remedy: `kubectl -n ${installation.namespace} get lease ${installation.lease}`,
});
