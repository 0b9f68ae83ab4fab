/** Decisions: the next action, or a hold with its reason. */

/** An object that a decision concerns, for log lines and Events. */
export interface ObjectRef {
  readonly kind:
    | "StatefulSet"
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

/** What a hold means for the people who wait, and the phase of the group that it holds. */
export type HoldPhase =
  /** Its pods or controllers are at work: it continues when they are done. */
  | "RollingOut"
  /** A plan or a check decides when it ends. It ends by itself. */
  | "Waiting"
  /** It continues only after somebody acts. */
  | "Blocked"
  /** A user has paused it. */
  | "Paused";

export interface ReasonFacts {
  /** The class of the reason. Time may turn it into `Blocked`: see `phaseOfHold`. */
  readonly phase: HoldPhase;
  /** Milliseconds after which somebody is needed even so. */
  readonly blocksAfterMs?: number;
  /** The group counts as failed, and the process exits with 1. */
  readonly fails?: true;
  /** A user asked for this wait: its Event is no warning, and it may last for any time. */
  readonly requested?: true;
  /** It keeps a zone from being scaled. The rollout continues. */
  readonly scaling?: true;
  /** Milliseconds that this counts as ordinary progress; a hold that lasts longer gets an Event. */
  readonly patienceMs: number;
}

/** Milliseconds that controllers and servers get to recover by themselves. */
const TROUBLE_MS = 5 * 60_000;

/**
 * The closed list of reasons not to act. All other uses of a reason follow from its row, or test/docs/reasons.test.ts
 * names the line to add.
 */
export const REASONS = {
  /** The StatefulSet controller would replace pods itself, without regard for the other zones. */
  UpdateStrategyNotOnDelete: { phase: "Blocked", fails: true, patienceMs: 0 },
  /** The label `rollout-group` is there and empty: the zones belong to no group, and are left alone. */
  GroupNameEmpty: { phase: "Blocked", fails: true, patienceMs: 0 },
  /** The group has more zones than Zonewise handles. */
  TooManyZones: { phase: "Blocked", fails: true, patienceMs: 0 },
  /** A zone has more text in its labels than is kept in memory. */
  LabelsTooLong: { phase: "Blocked", fails: true, patienceMs: 0 },
  /** Steps of other groups take long, and no more of them may be under way at once. */
  TurnAwaited: { phase: "Waiting", blocksAfterMs: TROUBLE_MS, patienceMs: 0 },
  /** The StatefulSet's status names no revision to compare pods with. */
  RevisionUnknown: { phase: "Blocked", fails: true, patienceMs: 0 },
  /** The StatefulSet controller has not seen the latest spec yet. */
  StatusNotObserved: { phase: "RollingOut", blocksAfterMs: TROUBLE_MS, patienceMs: 30_000 },
  /** A zone is being deleted: its pods are not recreated. */
  ZoneTerminating: { phase: "Waiting", patienceMs: 0 },
  /** Two zones or more have not-ready pods: no further pod may be deleted. */
  MultipleZonesNotReady: { phase: "RollingOut", patienceMs: 30_000 },
  /** Another zone, paused or not, has not-ready pods. */
  OtherZoneNotReady: { phase: "RollingOut", patienceMs: 0 },
  /** Pods that a StatefulSet has left behind are not ready, or missing: nobody recreates them. */
  ZoneOrphaned: { phase: "Blocked", patienceMs: 30_000 },
  /** The zone that rolls has as many unavailable pods as it may. */
  MaxUnavailableReached: { phase: "RollingOut", patienceMs: 30_000 },
  /** The zone has no outdated pod left, but some that are not ready yet. */
  ZoneNotReady: { phase: "RollingOut", patienceMs: 30_000 },
  /** A paused zone has outdated pods. */
  ZonePaused: { phase: "Paused", requested: true, patienceMs: 0 },
  /** The window of the zone is closed: outside its times, or in a freeze. */
  WindowClosed: { phase: "Waiting", requested: true, patienceMs: 0 },
  /** The window of the zone cannot be read, or never opens again. */
  WindowInvalid: { phase: "Blocked", patienceMs: 0 },
  /** The disruption budget denies for now. */
  BudgetSpent: { phase: "RollingOut", patienceMs: 30_000 },
  /**
   * The disruption budget of a pod cannot be obeyed: it is invalid, there are several, or it does not fit its
   * StatefulSets.
   */
  BudgetUnusable: { phase: "Blocked", fails: true, patienceMs: 0 },
  /** The checks of a gate have not passed yet. */
  GateWaiting: { phase: "Waiting", requested: true, patienceMs: 0 },
  /** A check of a gate has failed too often: the gate stays closed for this rollout. */
  GateFailed: { phase: "Blocked", patienceMs: 0 },
  /** A gate whose expressions or spec are invalid: it opens only once they are corrected. */
  GateInvalid: { phase: "Blocked", patienceMs: 0 },
  /** Prometheus could not answer a check of a gate, or the gates could not be read. */
  GateUnreachable: { phase: "Waiting", blocksAfterMs: TROUBLE_MS, patienceMs: 30_000 },
  /** A follower names a leader that is not in its group. */
  LeaderNotFound: { phase: "Blocked", scaling: true, patienceMs: 0 },
  /** Followers and leaders form a cycle. */
  LeaderCycle: { phase: "Blocked", scaling: true, patienceMs: 0 },
  /** A zone has both a leader and a reference to mirror: they would conflict. */
  LeaderAndMirror: { phase: "Blocked", scaling: true, patienceMs: 0 },
  /** A follower may only grow once all pods of its leader are ready. */
  LeaderNotReady: { phase: "Waiting", scaling: true, requested: true, patienceMs: 30_000 },
  /** Another zone was scaled down too recently. */
  MinTimeBetweenZones: { phase: "Waiting", scaling: true, requested: true, patienceMs: 0 },
  /** The time of another zone's downscale, or the time to wait after it, cannot be read. */
  MinTimeUnknown: { phase: "Blocked", scaling: true, patienceMs: 0 },
  /** The resource whose replicas a zone mirrors cannot be read. */
  ReferenceUnreadable: { phase: "Blocked", scaling: true, patienceMs: 0 },
  /** The delay or the URL of a delayed downscale cannot be read. */
  DelayInvalid: { phase: "Blocked", scaling: true, patienceMs: 0 },
  /** A pod could not be prepared for its delayed downscale. */
  PrepareFailed: { phase: "Blocked", scaling: true, patienceMs: 0 },
  /** The last pods of a zone have not been prepared for long enough. */
  DelayNotReached: { phase: "Waiting", scaling: true, requested: true, patienceMs: 0 },
  /** The API server or an admission webhook refused the change of replicas. */
  ScaleRefused: { phase: "Blocked", scaling: true, patienceMs: 0 },
} as const satisfies Record<string, ReasonFacts>;

export type Reason = keyof typeof REASONS;

/** The object that a hold waits for. */
export interface Culprit extends Pick<ObjectRef, "kind" | "name"> {
  /** A pod that cannot come up by itself, as far as its containers show. */
  readonly isBroken?: true;
  /** From when on somebody has to help it, in milliseconds since the epoch; undefined while it may recover by itself. */
  readonly needsHelpAt?: number;
}

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
  /** What it waits for; the first gate, budget or StatefulSet of `objects` unless given. */
  readonly culprit?: Culprit;
  /** When the wait is over if nothing else changes, in milliseconds since the epoch; only if the time alone decides. */
  readonly until?: number;
  /** It waits only for a write that the reconciler makes in each tick: it gets no Event. */
  readonly isBrief?: true;
  /** The blocking objects; the first is the StatefulSet that gets the Event. */
  readonly objects: readonly ObjectRef[];
}

export const factsOf = (reason: Reason): ReasonFacts => REASONS[reason];

/** The phase of a hold that has lasted for some time, in milliseconds (§11.5). */
export function phaseOfHold(
  { reason, culprit }: Pick<Hold, "reason" | "culprit">,
  { heldMs, now }: { readonly heldMs: number; readonly now: number },
): HoldPhase {
  const { phase, requested, blocksAfterMs = Infinity } = factsOf(reason);
  const isDown = requested !== true && culprit?.needsHelpAt !== undefined && culprit.needsHelpAt <= now;
  return isDown || heldMs >= blocksAfterMs ? "Blocked" : phase;
}

/** Milliseconds after which an error needs somebody: most are over with the next tick. */
export const ERROR_BLOCKS_AFTER_MS = TROUBLE_MS;

/** The facts of a reason that was stored; undefined for one that is not in the list, such as `ReconcileFailed`. */
export const findFacts = (reason: string): ReasonFacts | undefined =>
  Object.hasOwn(REASONS, reason) ? factsOf(reason as Reason) : undefined;

export function hold(reason: Reason, message: string, objects: readonly ObjectRef[]): Hold {
  return { action: "hold", reason, message, objects };
}

/** Identifies a hold: two holds with the same key have the same cause. */
export const dedupKeyOf = ({ reason, message, dedupKey: cause = message }: Hold): string => `${reason}: ${cause}`;
