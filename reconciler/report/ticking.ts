/**
 * Whether the reconciler ticks, and if not, since when and why: by its Lease, its CronJob, the CronJob's Jobs and their
 * pods. What is recorded is true only while it ticks. Pure.
 */
import { shortDuration } from "../../infra/duration.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import { either, how, kubectl } from "../model/remedy.ts";

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
  /** What could not be read, in clauses, except the Lease (`leaseUnread`), without which nothing is known. */
  readonly unread: readonly string[];
  readonly leaseUnread: string | undefined;
  /** The namespaces in which a Lease was looked for. */
  readonly places: readonly string[];
  /**
   * The original runs in the namespace that is asked about: a suspended CronJob is a step of the migration, and one that
   * is missing no fault. Undefined if that could not be read.
   */
  readonly original: boolean | undefined;
  /** The trace of a reconciler, in a clause: a RolloutGroup with a status, or that RolloutGroups could not be read. */
  readonly traces?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

type TickingReason =
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
  /** The last recorded tick, RFC 3339. */
  readonly since?: string;
  /** A command that ends it or shows more; it touches nothing that is healthy. */
  readonly remedy: string;
  /** The namespaces that it concerns; absent if it may concern any. */
  readonly served?: readonly string[];
}

export const concerns = ({ served }: Pick<NoTick, "served">, namespace: string): boolean =>
  served === undefined || served.includes(namespace);

/**
 * Milliseconds since the begin of the last finished tick, from which on the reconciler does not tick. A run that is lost
 * with its node has its successor within 210 s: a tick at rest is up to 90 s old, a minute, 30 s by which a CronJob may be
 * late, the Lease's 30 s.
 */
const NO_TICK_MS = 240_000;
/**
 * The same while a live process holds the Lease: its tick may take long. The alert ZonewiseTickMissing has the same
 * value.
 */
const SLOW_TICK_MS = 300_000;
/** Milliseconds in which a Job gets its pod. */
const POD_MS = 60_000;
export const ORIGINAL = "rollout-operator";

/** `why`: a clause. */
export const notKnown = (installation: Pick<Installation, "namespace" | "lease">, why: string): NoTick => ({
  state: "unknown",
  reason: "NotKnown",
  message: `it is unknown whether the reconciler runs: ${why}`,
  remedy: `kubectl -n ${installation.namespace} get lease ${installation.lease}`,
});

/** Undefined if it ticks. */
export function judgeTicking(facts: TickingFacts): NoTick | undefined {
  const { lease, installation } = facts;
  const unknown = whyNotKnown(facts);
  if (unknown !== undefined) return notKnown(installation, unknown);
  if (isTicking(facts) && !isEnding(facts)) return undefined;
  const notYet = whyNotYet(facts);
  if (notYet !== undefined) return describeNotYet(facts, notYet);
  const { reason, why, fix } = findCause(CAUSES, facts) ?? notExplained(facts);
  const since = lease?.lastTick;
  const message = `${describeLastTick(facts)}: ${why}`;
  return { state: "stopped", reason, message, ...(since !== undefined && { since }), remedy: fix };
}

function describeLastTick(facts: TickingFacts): string {
  const since = facts.lease?.lastTick;
  const ms = ageOf(since, facts);
  if (ms === Infinity) return "no run of the reconciler is recorded";
  const age = describeAge(ms);
  return isTicking(facts)
    ? `the reconciler last ran ${age} ago`
    : `the reconciler has not run since ${since} (${age} ago)`;
}

/** Milliseconds since then; Infinity without a time. */
const ageOf = (time: string | undefined, { now }: Pick<TickingFacts, "now">): number =>
  now - (parseTimestamp(time ?? "") ?? -Infinity);

/** If no part of an installation is found, it may still be in a place that was not searched. */
function whyNotKnown({ leaseUnread, lease, cronJob, unread, traces, ...facts }: TickingFacts): string | undefined {
  if (leaseUnread !== undefined) return leaseUnread;
  const clauses = [...(traces === undefined ? [] : [traces]), ...unread];
  if (lease || cronJob || clauses.length === 0) return undefined;
  return `there is no Lease ${facts.installation.lease} in ${facts.places.join(" or ")}, but ${clauses.join("; ")}`;
}

/** By the age of the last tick: it holds the Lease only while it runs. */
const isTicking = ({ lease, now }: Pick<TickingFacts, "lease" | "now">): boolean =>
  lease !== undefined && ageOf(lease.lastTick, { now }) <= (lease.isLive ? SLOW_TICK_MS : NO_TICK_MS);

/**
 * True if its CronJob is suspended and its own Jobs made the last ticks: no run follows. Events, and
 * Jobs that somebody creates, let it tick long after the last of those Jobs.
 */
function isEnding({ cronJob, lease, now }: TickingFacts): boolean {
  if (!cronJob?.suspended || !lease) return false;
  const sinceTick = lease.isLive ? 0 : ageOf(lease.lastTick, { now });
  return ageOf(cronJob.lastJobAt, { now }) - sinceTick <= NO_TICK_MS;
}

/** The reason why its first tick may still come, with the time, in a clause. */
function whyNotYet(facts: TickingFacts): string | undefined {
  const { lease, cronJob, installation } = facts;
  if (lease?.lastTick !== undefined) return undefined;
  const age = ageOf(cronJob?.createdAt, facts);
  if (age <= NO_TICK_MS) return `CronJob ${nameOf(installation)} was created ${describeAge(age)} ago`;
  if (!lease || !isFirstTick(facts, lease)) return undefined;
  return `${lease.holder} took the Lease ${describeAge(ageOf(lease.heldSince, facts))} ago`;
}

const describeAge = (ms: number): string => shortDuration(Math.max(0, ms));

/** A run that fails again and again takes the Lease each time. */
const isFirstTick = (facts: TickingFacts, { isLive, heldSince }: LeaseFacts): boolean =>
  isLive && ageOf(heldSince, facts) <= NO_TICK_MS && findCause(FAULTS, facts)?.reason !== "JobFailing";

function describeNotYet(facts: TickingFacts, notYet: string): NoTick {
  const fault = findCause(FAULTS, facts);
  const message = `the reconciler has not run yet: ${[notYet, ...(fault ? [fault.why] : [])].join("; ")}`;
  return { state: "unknown", reason: "NotYet", message, remedy: (fault ?? notExplained(facts)).fix };
}

const nameOf = ({ namespace, cronJob }: Installation): string => `${namespace}/${cronJob}`;

interface Told {
  readonly why: string;
  /** A command that ends it or shows more. */
  readonly fix: string;
}

type Cause = readonly [TickingReason, (facts: TickingFacts) => Told | undefined];

function findCause(causes: readonly Cause[], facts: TickingFacts) {
  for (const [reason, find] of causes) {
    const told = find(facts);
    if (told) return { reason, ...told };
  }
  return undefined;
}

const newestFirst = (jobs: readonly JobFacts[]): JobFacts[] =>
  jobs.toSorted((a, b) => (a.createdAt < b.createdAt ? 1 : -1));

const FAULTS: readonly Cause[] = [
  [
    "PodNotStarting",
    ({ pods, jobs, installation }) => {
      const active = new Set(jobs.filter(({ state }) => state === "active").map(({ name }) => name));
      const pod = pods.find(({ job, waiting }) => active.has(job) && waiting !== undefined);
      return (
        pod && {
          why: `pod ${pod.name} of Job ${pod.job} does not start: ${pod.waiting}`,
          fix: kubectl(installation, `describe pod ${pod.name}`),
        }
      );
    },
  ],
  [
    "JobFailing",
    ({ jobs, pods, installation }) => {
      const last = newestFirst(jobs).find(({ state }) => state !== "active");
      if (last?.state !== "failed") return undefined;
      const failure = pods.find((pod) => pod.job === last.name && pod.failure !== undefined)?.failure;
      return {
        why: `Job ${last.name} has failed: ${failure ?? (last.message || "no reason is given")}`,
        fix: kubectl(installation, `logs job/${last.name} --tail=20`),
      };
    },
  ],
  [
    "NoPod",
    ({ jobs, pods, unread, installation, now }) => {
      const [newest] = newestFirst(jobs);
      const isLate = newest?.state === "active" && ageOf(newest.createdAt, { now }) > POD_MS;
      if (!isLate || unread.length > 0 || pods.some(({ job }) => job === newest.name)) return undefined;
      return {
        why: `Job ${newest.name} has no pod: a quota, a missing ServiceAccount or an admission webhook may refuse it`,
        fix: kubectl(installation, `describe job ${newest.name}`),
      };
    },
  ],
];

/** In the order in which one cause hides the next. */
const CAUSES: readonly Cause[] = [
  ["Suspended", suspended],
  // The runs of an installation fail while somebody else holds its Lease.
  ["LeaseHeld", (facts) => (facts.unread.length > 0 || holderIn(facts) ? undefined : held(facts))],
  [
    "NotInstalled",
    ({ lease, cronJob, installation, served, original }) => {
      if (lease || cronJob) return undefined;
      const who = `rollout-operator (Deployment ${served}/${ORIGINAL}) serves namespace ${served}`;
      if (original)
        return {
          why: `${who}, and Zonewise is not installed`,
          fix: "to change over: docs/migrate/rollout-operator.md",
        };
      return {
        why: `no reconciler serves namespace ${served}: it has no CronJob ${installation.cronJob} and no Lease ${installation.lease}`,
        fix: "install it: docs/start/install.md",
      };
    },
  ],
  ...FAULTS,
  ["LeaseHeld", held],
  [
    "NoJob",
    ({ cronJob, installation, unread, now }) =>
      !cronJob || unread.length > 0 || ageOf(cronJob.lastJobAt, { now }) <= NO_TICK_MS
        ? undefined
        : {
            why: `CronJob ${nameOf(installation)} has created no Job since ${cronJob.lastJobAt ?? "it was created"}: kube-controller-manager may not be running. If it was resumed just now, the next run starts within a minute`,
            fix: kubectl(installation, `describe cronjob ${installation.cronJob}`),
          },
  ],
];

function suspended(facts: TickingFacts): Told | undefined {
  const { cronJob, installation, lease, original, served } = facts;
  if (!cronJob?.suspended || (lease?.isLive && !isEnding(facts))) return undefined;
  const rest = lease?.isLive ? ": the current run ends within a minute, and no other follows" : "";
  const why = `CronJob ${nameOf(installation)} is suspended${rest}`;
  // Two reconcilers would take pods of two zones.
  if (original)
    return {
      why: `${why}, and rollout-operator (Deployment ${served}/${ORIGINAL}) serves the namespace: never run both at once`,
      fix: "follow docs/migrate/rollout-operator.md: one of its steps resumes the CronJob",
    };
  const resume = kubectl(installation, `patch cronjob ${installation.cronJob} -p '{"spec":{"suspend":false}}'`);
  const isKnown = original !== undefined;
  const unless = "unless rollout-operator serves the namespace (docs/migrate/rollout-operator.md)";
  return { why, fix: isKnown ? resume : how(unless, resume) };
}

/** A holder may be any text: only a pod's name stands in a command. */
const POD_NAME = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;
/** `POD_UUID`, as a run names itself. */
const podOf = ({ lease }: TickingFacts): string => (lease?.holder ?? "").replace(/_[^_]*$/, "");
const holderIn = (facts: TickingFacts): boolean => facts.pods.some(({ name }) => name === podOf(facts));

function held(facts: TickingFacts): Told | undefined {
  const { lease, installation } = facts;
  if (!lease?.isLive) return undefined;
  const since = lease.heldSince === undefined ? "" : ` since ${lease.heldSince}`;
  const why = `Lease ${installation.namespace}/${installation.lease} is held by ${lease.holder}${since}, which renews it but finishes no tick`;
  const pod = podOf(facts);
  if (!POD_NAME.test(pod)) return { why, fix: kubectl(installation, `get lease ${installation.lease} -o yaml`) };
  const end = holderIn(facts)
    ? how("if it hangs, end it: the next run takes over", kubectl(installation, `delete pod ${pod}`))
    : how("find it, and end it if it hangs", `kubectl get pods -A --field-selector=metadata.name=${pod}`);
  return { why, fix: either(how("see what it does", kubectl(installation, `logs ${pod} --tail=20`)), end) };
}

function notExplained({ installation, cronJob, unread }: TickingFacts): Told & { readonly reason: TickingReason } {
  const none = cronJob ? "" : `there is no CronJob ${nameOf(installation)}, and `;
  return {
    reason: "NotExplained",
    why:
      unread.length > 0 ? `the cause is unknown: ${unread.join("; ")}` : `${none}the Lease and the Jobs show no reason`,
    fix: kubectl(installation, `get cronjobs,jobs,pods -l app.kubernetes.io/name=${installation.cronJob}`),
  };
}
