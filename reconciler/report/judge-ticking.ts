/**
 * Judges whether the reconciler ticks, and if not, since when and why. Recorded statuses are true only while it ticks.
 * Pure.
 */
import { shortDuration } from "../../infra/duration.ts";
import { firstOf } from "../../infra/rules.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import { either, how, kubectl } from "../model/remedy.ts";
import {
  type Installation,
  type JobFacts,
  NO_TICK_MS,
  type NoTick,
  notKnown,
  ORIGINAL,
  SLOW_TICK_MS,
  type TickingFacts,
  type TickingReason,
} from "./ticking.ts";

/** Milliseconds in which a Job gets its pod. */
const POD_MS = 60_000;

interface Cause {
  readonly reason: TickingReason;
  readonly why: string;
  readonly remedy: string;
}

/** Undefined if it ticks. */
export function judgeTicking(facts: TickingFacts): NoTick | undefined {
  const { lease, installation } = facts;
  const unknown = whyNotKnown(facts);
  if (unknown !== undefined) return notKnown(installation, unknown);
  if (isTicking(facts) && !isEnding(facts)) return undefined;
  const notYet = whyNotYet(facts);
  if (notYet !== undefined) return describeNotYet(facts, notYet);
  const { reason, why, remedy } = findCause(facts) ?? notExplained(facts);
  const since = lease?.lastTick;
  const message = `${describeLastTick(facts)}: ${why}`;
  return { state: "stopped", reason, message, ...(since !== undefined && { since }), remedy };
}

function describeLastTick(facts: TickingFacts): string {
  const since = facts.lease?.lastTick;
  const at = parseTimestamp(since ?? "");
  if (at === undefined) return "no run of the reconciler is recorded";
  const age = shortDuration(Math.max(0, facts.now - at));
  return isTicking(facts)
    ? `the reconciler last ran ${age} ago`
    : `the reconciler has not run since ${since} (${age} ago)`;
}

/** If no part of an installation is found, it may still be in a place that was not searched. */
function whyNotKnown({ leaseUnread, lease, cronJob, unread, traces, ...facts }: TickingFacts): string | undefined {
  if (leaseUnread !== undefined) return leaseUnread;
  if (lease || cronJob) return undefined;
  const clauses = [...(traces === undefined ? [] : [traces]), ...unread];
  if (clauses.length === 0) return undefined;
  const { installation, places = [installation.namespace] } = facts;
  return `there is no Lease ${installation.lease} in ${places.join(" or ")}, but ${clauses.join("; ")}`;
}

/**
 * True if its CronJob is suspended and the last ticks were those of the CronJob's own Jobs: no run follows. Events, and
 * Jobs that somebody creates, let it tick long after the last of those Jobs.
 */
function isEnding({ cronJob, lease, now }: TickingFacts): boolean {
  if (!cronJob?.suspended || !lease) return false;
  const jobAt = parseTimestamp(cronJob.lastJobAt ?? "") ?? -Infinity;
  const tickedAt = lease.isLive ? now : (parseTimestamp(lease.lastTick ?? "") ?? Infinity);
  return tickedAt - jobAt <= NO_TICK_MS;
}

/** By the age of the last tick: it holds the Lease only while it runs. */
function isTicking({ lease, now }: TickingFacts): boolean {
  const at = parseTimestamp(lease?.lastTick ?? "");
  if (!lease || at === undefined) return false;
  return now - at <= (lease.isLive ? SLOW_TICK_MS : NO_TICK_MS);
}

/**
 * The reason why its first tick may still come, with the time, in a clause: it was installed just now, or a process
 * has just taken the Lease.
 */
function whyNotYet(facts: TickingFacts): string | undefined {
  const { lease, cronJob, installation, now } = facts;
  if (lease?.lastTick !== undefined) return undefined;
  const ageOf = (time: string | undefined): number => now - (parseTimestamp(time ?? "") ?? -Infinity);
  const [age, heldFor] = [ageOf(cronJob?.createdAt), ageOf(lease?.heldSince)];
  if (age <= NO_TICK_MS) return `CronJob ${nameOf(installation)} was created ${shortDuration(Math.max(0, age))} ago`;
  // A run that fails again and again takes the Lease each time.
  if (!lease?.isLive || heldFor > NO_TICK_MS || jobFailing(facts)) return undefined;
  return `${lease.holder} took the Lease ${shortDuration(Math.max(0, heldFor))} ago`;
}

function describeNotYet(facts: TickingFacts, notYet: string): NoTick {
  const fault = findFault(facts);
  return {
    state: "unknown",
    reason: "NotYet",
    message: `the reconciler has not run yet: ${[notYet, ...(fault ? [fault.why] : [])].join("; ")}`,
    remedy: (fault ?? notExplained(facts)).remedy,
  };
}

const findFault = firstOf<[TickingFacts], Cause>([podNotStarting, jobFailing, noPod]);

/** In the order in which one cause hides the next. */
const findCause = firstOf<[TickingFacts], Cause>([
  suspended,
  heldByStranger,
  notInstalled,
  findFault,
  heldByRun,
  noJob,
]);

function suspended(facts: TickingFacts): Cause | undefined {
  const { cronJob, installation, lease, original, served } = facts;
  if (!cronJob?.suspended || (lease?.isLive && !isEnding(facts))) return undefined;
  const rest = lease?.isLive ? ": the current run ends within a minute, and no other follows" : "";
  const why = `CronJob ${nameOf(installation)} is suspended${rest}`;
  // Two reconcilers would take pods of two zones.
  if (original)
    return {
      reason: "Suspended",
      why: `${why}, and rollout-operator (Deployment ${served}/${ORIGINAL}) serves the namespace: never run both at once`,
      remedy: "follow docs/migrate/rollout-operator.md: one of its steps resumes the CronJob",
    };
  const resume = kubectl(installation, `patch cronjob ${installation.cronJob} -p '{"spec":{"suspend":false}}'`);
  const isKnown = original !== undefined;
  return {
    reason: "Suspended",
    why,
    remedy: isKnown
      ? resume
      : how("unless rollout-operator serves the namespace (docs/migrate/rollout-operator.md)", resume),
  };
}

/** A holder may be any text: only a pod's name stands in a command. */
const POD_NAME = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;
/** `POD_UUID`, as a run names itself. */
const podOf = (holder: string): string => holder.replace(/_[^_]*$/, "");

function heldByStranger(facts: TickingFacts): Cause | undefined {
  const { lease, pods, unread } = facts;
  const isOurs = unread.length > 0 || pods.some(({ name }) => name === podOf(lease?.holder ?? ""));
  return lease?.isLive && !isOurs ? held(facts) : undefined;
}

function heldByRun(facts: TickingFacts): Cause | undefined {
  return facts.lease?.isLive ? held(facts) : undefined;
}

function held({ lease, installation, pods }: TickingFacts): Cause {
  const { holder = "", heldSince } = lease ?? {};
  const pod = podOf(holder);
  const logs = kubectl(installation, `logs ${pod} --tail=20`);
  const isOurs = pods.some(({ name }) => name === pod);
  return {
    reason: "LeaseHeld",
    why: `Lease ${installation.namespace}/${installation.lease} is held by ${holder}${heldSince === undefined ? "" : ` since ${heldSince}`}, which renews it but finishes no tick`,
    remedy: !POD_NAME.test(pod)
      ? kubectl(installation, `get lease ${installation.lease} -o yaml`)
      : isOurs
        ? either(
            how("see what it does", logs),
            how("if it hangs, end it: the next run takes over", kubectl(installation, `delete pod ${pod}`)),
          )
        : either(
            how("see what that process does", logs),
            how("find it, and end it if it hangs", `kubectl get pods -A --field-selector=metadata.name=${pod}`),
          ),
  };
}

function notInstalled({ lease, cronJob, installation, served }: TickingFacts): Cause | undefined {
  if (lease || cronJob) return undefined;
  return {
    reason: "NotInstalled",
    why: `no reconciler serves namespace ${served}: it has no CronJob ${installation.cronJob} and no Lease ${installation.lease}`,
    remedy: "install it: docs/start/install.md",
  };
}

function podNotStarting({ pods, jobs, installation }: TickingFacts): Cause | undefined {
  const active = new Set(jobs.filter(({ state }) => state === "active").map(({ name }) => name));
  const pod = pods.find(({ job, waiting }) => active.has(job) && waiting !== undefined);
  if (!pod) return undefined;
  return {
    reason: "PodNotStarting",
    why: `pod ${pod.name} of Job ${pod.job} does not start: ${pod.waiting}`,
    remedy: kubectl(installation, `describe pod ${pod.name}`),
  };
}

const newestFirst = (jobs: readonly JobFacts[]): JobFacts[] =>
  jobs.toSorted((a, b) => (a.createdAt < b.createdAt ? 1 : -1));

function jobFailing({ jobs, pods, installation }: TickingFacts): Cause | undefined {
  const last = newestFirst(jobs).find(({ state }) => state !== "active");
  if (last?.state !== "failed") return undefined;
  const failure = pods.find((pod) => pod.job === last.name && pod.failure !== undefined)?.failure;
  return {
    reason: "JobFailing",
    why: `Job ${last.name} has failed: ${failure ?? (last.message || "no reason is given")}`,
    remedy: kubectl(installation, `logs job/${last.name} --tail=20`),
  };
}

function noPod({ jobs, pods, installation, now, unread }: TickingFacts): Cause | undefined {
  const [newest] = newestFirst(jobs);
  const isLate = newest?.state === "active" && now - (parseTimestamp(newest.createdAt) ?? now) > POD_MS;
  if (!isLate || unread.length > 0 || pods.some(({ job }) => job === newest.name)) return undefined;
  return {
    reason: "NoPod",
    why: `Job ${newest.name} has no pod: a quota, a missing ServiceAccount or an admission webhook may refuse it`,
    remedy: kubectl(installation, `describe job ${newest.name}`),
  };
}

function noJob({ cronJob, installation, now, unread }: TickingFacts): Cause | undefined {
  const at = parseTimestamp(cronJob?.lastJobAt ?? "");
  if (!cronJob || unread.length > 0 || (at !== undefined && now - at <= NO_TICK_MS)) return undefined;
  return {
    reason: "NoJob",
    why: `CronJob ${nameOf(installation)} has created no Job since ${cronJob.lastJobAt ?? "it was created"}: kube-controller-manager may not be running. If it was resumed just now, the next run starts within a minute`,
    remedy: kubectl(installation, `describe cronjob ${installation.cronJob}`),
  };
}

function notExplained({ installation, cronJob, unread }: TickingFacts): Cause {
  const facts = [
    ...(cronJob || unread.length > 0 ? [] : [`there is no CronJob ${nameOf(installation)}`]),
    ...unread,
    "the Lease and the Jobs show no reason",
  ];
  return {
    reason: "NotExplained",
    why: unread.length > 0 ? `the cause is unknown: ${unread.join("; ")}` : facts.join(", and "),
    remedy: kubectl(installation, `get cronjobs,jobs,pods -l app.kubernetes.io/name=${installation.cronJob}`),
  };
}

const nameOf = ({ namespace, cronJob }: Installation): string => `${namespace}/${cronJob}`;
