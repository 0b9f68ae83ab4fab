/** Decisions: what to do next or, in so many words, why not. */

/** What a decision is about; enough to name it in a log line or an Event. */
export interface ObjectRef {
  readonly kind: "StatefulSet" | "Pod" | "ZoneAwarePodDisruptionBudget";
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface ReasonFacts {
  /** Someone has to mend something: the group counts as failed and the process exits with 1. */
  readonly fails?: true;
  /** Someone has to mend something, though the group does not fail: a warning in the log. */
  readonly mend?: true;
  /** Milliseconds that this is ordinary progress; only then is it worth an Event. */
  readonly patienceMs: number;
}

/** The closed list of reasons not to act. */
export const REASONS = {
  /** A StatefulSet would replace its pods itself, without regard for the other zones. */
  UpdateStrategyNotOnDelete: { fails: true, patienceMs: 0 },
  /** The StatefulSet's status names no revision to compare pods with. */
  RevisionUnknown: { fails: true, patienceMs: 0 },
  /** The StatefulSet controller has not seen the latest spec yet. */
  StatusNotObserved: { patienceMs: 30_000 },
  /** A zone is being deleted: pods that go do not come back. */
  ZoneTerminating: { patienceMs: 0 },
  /** Two zones or more have not-ready pods: nobody may make it worse. */
  MultipleZonesNotReady: { patienceMs: 30_000 },
  /** Another zone, paused ones too, has not-ready pods. */
  OtherZoneNotReady: { patienceMs: 0 },
  /** The zone that rolls has as many unavailable pods as it may. */
  MaxUnavailableReached: { patienceMs: 30_000 },
  /** The zone has no outdated pod left, but some that are not ready yet. */
  ZoneNotReady: { patienceMs: 30_000 },
  /** A paused zone has outdated pods. */
  ZonePaused: { patienceMs: 0 },
  /** The disruption budget said not now. */
  BudgetSpent: { patienceMs: 30_000 },
  /** The disruption budget of a pod cannot be obeyed: it is invalid, there are several, or it does not fit its StatefulSets. */
  BudgetUnusable: { fails: true, patienceMs: 0 },
  /** A follower names a leader that is not in its group. */
  LeaderNotFound: { mend: true, patienceMs: 0 },
  /** Followers and leaders form a circle. */
  LeaderCycle: { mend: true, patienceMs: 0 },
  /** A zone has both a leader and a reference to mirror: they would fight. */
  LeaderAndMirror: { mend: true, patienceMs: 0 },
  /** A follower may only grow once all pods of its leader are ready. */
  LeaderNotReady: { patienceMs: 30_000 },
  /** Another zone was scaled down too short a time ago. */
  MinTimeBetweenZones: { patienceMs: 0 },
  /** When other zones were scaled down, or how long to wait after it, cannot be read. */
  MinTimeUnknown: { mend: true, patienceMs: 0 },
  /** The resource whose replicas a zone mirrors cannot be read. */
  ReferenceUnreadable: { mend: true, patienceMs: 0 },
  /** The delay or the URL of a delayed downscale cannot be read. */
  DelayInvalid: { mend: true, patienceMs: 0 },
  /** A pod could not be prepared for its delayed downscale. */
  PrepareFailed: { mend: true, patienceMs: 0 },
  /** The last pods of a zone have not been prepared for long enough. */
  DelayNotReached: { patienceMs: 0 },
  /** The API server, or a webhook that it asked, refused the change of replicas. */
  ScaleRefused: { mend: true, patienceMs: 0 },
} as const satisfies Record<string, ReasonFacts>;

export type Reason = keyof typeof REASONS;

/** "No", as a value. */
export interface Hold {
  readonly action: "hold";
  readonly reason: Reason;
  /** A sentence for humans that names what blocks; equal as long as the cause is, unless `cause` is given. */
  readonly message: string;
  /** What stays equal as long as the cause is, where the message tells how much time is left. */
  readonly cause?: string;
  /** What blocks, the StatefulSet to hang an Event on first. */
  readonly objects: readonly ObjectRef[];
}

/** What is known of a reason beyond its name. */
export const factsOf = (reason: Reason): ReasonFacts => REASONS[reason];

export function hold(reason: Reason, message: string, objects: readonly ObjectRef[], cause?: string): Hold {
  return { action: "hold", reason, message, objects, ...(cause !== undefined && { cause }) };
}

/** What tells two holds apart. */
export const causeOf = ({ reason, message, cause = message }: Hold): string => `${reason}: ${cause}`;

/** A rule has an opinion, or leaves the matter to the next. */
export type Rule<Subject extends readonly unknown[], Decision> = (...subject: Subject) => Decision | undefined;

/** The first rule with an opinion wins. */
export function firstOf<Subject extends readonly unknown[], Decision>(rules: readonly Rule<Subject, Decision>[]): Rule<Subject, Decision> {
  return (...subject) => {
    for (const rule of rules) {
      const decision = rule(...subject);
      if (decision !== undefined) return decision;
    }
    return undefined;
  };
}
