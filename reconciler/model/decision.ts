/** Decisions: the next action, or a hold with its reason. */

/** An object that a decision concerns, for log lines and Events. */
export interface ObjectRef {
  readonly kind:
    | "StatefulSet"
    | "Lease"
    | "Pod"
    | "ZoneAwarePodDisruptionBudget"
    | "PhasedRollout"
    | "RolloutGate"
    | "Node"
    | "BottlerocketShadow"
    | "NodeUpdatePolicy";
  /** "" for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface ReasonFacts {
  /** A user must fix something: the group counts as failed, and the process exits with 1. */
  readonly fails?: true;
  /** A user must fix something, but the group does not fail: the log has a warning. */
  readonly needsFix?: true;
  /** A user asked for this wait: its Event is no warning. */
  readonly requested?: true;
  /** It keeps a zone from being scaled. The rollout goes on. */
  readonly scaling?: true;
  /** Milliseconds that this counts as ordinary progress; a hold that lasts longer gets an Event. */
  readonly patienceMs: number;
}

/**
 * The closed list of reasons not to act. All other uses of a reason follow from its row, or test/docs/reasons.test.ts
 * names the line to add.
 */
export const REASONS = {
  /** The StatefulSet controller would replace pods itself, without regard for the other zones. */
  UpdateStrategyNotOnDelete: { fails: true, patienceMs: 0 },
  /** The label `rollout-group` is there and empty: the zones belong to no group, and are left alone. */
  GroupNameEmpty: { fails: true, patienceMs: 0 },
  /** The group has more zones than Zonewise handles. */
  TooManyZones: { fails: true, patienceMs: 0 },
  /** Steps of other groups take long, and no more of them may be under way at once. */
  TurnAwaited: { patienceMs: 0 },
  /** The StatefulSet's status names no revision to compare pods with. */
  RevisionUnknown: { fails: true, patienceMs: 0 },
  /** The StatefulSet controller has not seen the latest spec yet. */
  StatusNotObserved: { patienceMs: 30_000 },
  /** A zone is being deleted: its pods are not recreated. */
  ZoneTerminating: { patienceMs: 0 },
  /** Two zones or more have not-ready pods: no further pod may be deleted. */
  MultipleZonesNotReady: { patienceMs: 30_000 },
  /** Another zone, paused or not, has not-ready pods. */
  OtherZoneNotReady: { patienceMs: 0 },
  /** Pods that a StatefulSet has left behind are not ready, or missing: nobody recreates them. */
  ZoneOrphaned: { needsFix: true, patienceMs: 30_000 },
  /** The zone that rolls has as many unavailable pods as it may. */
  MaxUnavailableReached: { patienceMs: 30_000 },
  /** The zone has no outdated pod left, but some that are not ready yet. */
  ZoneNotReady: { patienceMs: 30_000 },
  /** A paused zone has outdated pods. */
  ZonePaused: { requested: true, patienceMs: 0 },
  /** The window of the zone is closed: outside its times, or in a freeze. */
  WindowClosed: { requested: true, patienceMs: 0 },
  /** The window of the zone cannot be read, or never opens again. */
  WindowInvalid: { needsFix: true, patienceMs: 0 },
  /** The disruption budget denies for now. */
  BudgetSpent: { patienceMs: 30_000 },
  /**
   * The disruption budget of a pod cannot be obeyed: it is invalid, there are several, or it does not fit its
   * StatefulSets.
   */
  BudgetUnusable: { fails: true, patienceMs: 0 },
  /** The checks of a gate have not passed yet. */
  GateWaiting: { requested: true, patienceMs: 0 },
  /** A check of a gate has failed too often: the gate stays closed for this rollout. */
  GateFailed: { needsFix: true, patienceMs: 0 },
  /** A gate whose expressions or spec are invalid: it opens only once they are corrected. */
  GateInvalid: { needsFix: true, patienceMs: 0 },
  /** Prometheus could not answer a check of a gate, or the gates could not be read. */
  GateUnreachable: { patienceMs: 30_000 },
  /** A follower names a leader that is not in its group. */
  LeaderNotFound: { scaling: true, needsFix: true, patienceMs: 0 },
  /** Followers and leaders form a cycle. */
  LeaderCycle: { scaling: true, needsFix: true, patienceMs: 0 },
  /** A zone has both a leader and a reference to mirror: they would conflict. */
  LeaderAndMirror: { scaling: true, needsFix: true, patienceMs: 0 },
  /** A follower may only grow once all pods of its leader are ready. */
  LeaderNotReady: { scaling: true, requested: true, patienceMs: 30_000 },
  /** Another zone was scaled down too recently. */
  MinTimeBetweenZones: { scaling: true, requested: true, patienceMs: 0 },
  /** The time of another zone's downscale, or the time to wait after it, cannot be read. */
  MinTimeUnknown: { scaling: true, needsFix: true, patienceMs: 0 },
  /** The resource whose replicas a zone mirrors cannot be read. */
  ReferenceUnreadable: { scaling: true, needsFix: true, patienceMs: 0 },
  /** The delay or the URL of a delayed downscale cannot be read. */
  DelayInvalid: { scaling: true, needsFix: true, patienceMs: 0 },
  /** A pod could not be prepared for its delayed downscale. */
  PrepareFailed: { scaling: true, needsFix: true, patienceMs: 0 },
  /** The last pods of a zone have not been prepared for long enough. */
  DelayNotReached: { scaling: true, requested: true, patienceMs: 0 },
  /** The API server or an admission webhook refused the change of replicas. */
  ScaleRefused: { scaling: true, needsFix: true, patienceMs: 0 },
} as const satisfies Record<string, ReasonFacts>;

export type Reason = keyof typeof REASONS;

/** A decision not to act now. */
export interface Hold {
  readonly action: "hold";
  readonly reason: Reason;
  /** A sentence for users that names the blocking objects. */
  readonly message: string;
  /**
   * Equal as long as the cause is the same, for messages that change meanwhile, such as those with the time left. The
   * message unless given.
   */
  readonly dedupKey?: string;
  /** When the wait is over if nothing else changes, in milliseconds since the epoch; only if the time alone decides. */
  readonly until?: number;
  /** It waits only for a write that the reconciler makes in each tick: it gets no Event. */
  readonly isBrief?: true;
  /** The blocking objects; the first is the StatefulSet that gets the Event. */
  readonly objects: readonly ObjectRef[];
}

/** The facts of a reason. */
export const factsOf = (reason: Reason): ReasonFacts => REASONS[reason];

/** The facts of a reason that was stored; undefined for one that is not in the list, such as `ReconcileFailed`. */
export const findFacts = (reason: string): ReasonFacts | undefined =>
  Object.hasOwn(REASONS, reason) ? factsOf(reason as Reason) : undefined;

export function hold(reason: Reason, message: string, objects: readonly ObjectRef[]): Hold {
  return { action: "hold", reason, message, objects };
}

/** Identifies a hold: two holds with the same key have the same cause. */
export const dedupKeyOf = ({ reason, message, dedupKey: cause = message }: Hold): string => `${reason}: ${cause}`;
