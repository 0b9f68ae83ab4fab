/**
 * Reads the facts that show whether the reconciler ticks: its Lease, and whether its CronJob is suspended; only if they
 * do not show that it ticks, the Jobs and their pods too.
 */
import { absent, hasCode, isUnanswered } from "../../../infra/errors.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { collect, collectRead, describeUnread, noteUnread } from "../../../infra/kubernetes/collect.ts";
import { type RolloutGroup, rolloutGroups } from "../../../infra/kubernetes/custom-resources.ts";
import {
  cronJobs,
  deployments,
  jobs,
  leases,
  runPods,
  type CronJob,
  type Job,
  type Lease,
  type RunPod,
} from "../../../infra/kubernetes/resources.ts";
import { isFields } from "../../../infra/json.ts";
import { parseTotals, TOTALS } from "../../../infra/metrics/totals.ts";
import { CLOCK_SKEW_MS, parseTimestamp } from "../../../infra/timestamp.ts";
import {
  judgeTicking,
  ORIGINAL,
  type CronJobFacts,
  type Installation,
  type JobFacts,
  type LeaseFacts,
  type NoTick,
  type RunPodFacts,
  type TickingFacts,
} from "../ticking.ts";

interface TickingQuestion {
  readonly cluster: Cluster;
  readonly installation: Installation;
  /** The namespace that is asked about. */
  readonly served: string;
  /** Milliseconds since the epoch, by the API server's clock. */
  readonly now: () => number;
  readonly call?: Call;
  readonly lease?: Lease | undefined;
  /** Namespaces in which the installation may be, too. */
  readonly elsewhere?: readonly string[];
}

/** Undefined if the reconciler ticks. Never rejects: the result names the objects that could not be read. */
export async function readTicking(question: TickingQuestion): Promise<NoTick | undefined> {
  const { served, elsewhere = [] } = question;
  const { found, home, unread } = await findLease(question);
  const installation = { ...question.installation, namespace: home };
  const now = question.now();
  const lease = found && readLease(found, now);
  const places = [question.installation.namespace, ...elsewhere];
  const known = { installation, served, places, lease, now, leaseUnread: undefined, original: undefined };
  const nothing = { ...known, cronJob: undefined, jobs: [], pods: [], unread: [] };
  const isTicking = lease !== undefined && judgeTicking(nothing) === undefined;
  if (isTicking && !(await isSuspended(question, home))) return undefined;
  // The Lease that was not read may be the right one.
  if (!isTicking && unread.length > 0)
    return judgeTicking({ ...nothing, lease: undefined, leaseUnread: unread.join("; ") });
  const runs = await readRuns({ ...question, installation });
  const traces = lease || runs.cronJob ? undefined : await readTraces(question);
  return judgeTicking({ ...known, ...runs, traces });
}

interface Search {
  readonly found: Lease | undefined;
  /** The namespace of the Lease that was found, otherwise that of one that could not be read, otherwise the first. */
  readonly home: string;
  readonly unread: readonly string[];
}

async function findLease({ cluster, installation, elsewhere = [], call, lease }: TickingQuestion): Promise<Search> {
  const { namespace: first, lease: name } = installation;
  const unread = new Map<string, string>();
  for (const namespace of [first, ...elsewhere])
    try {
      const found = lease ?? (await cluster.get(leases, { namespace, name }, call).catch(absent));
      if (found) return { found, home: namespace, unread: [...unread.values()] };
    } catch (error) {
      unread.set(namespace, describeUnread(`Lease ${namespace}/${name}`, error));
      if (isUnanswered(error)) break;
    }
  return { found: undefined, home: [...unread.keys()][0] ?? first, unread: [...unread.values()] };
}

/** True if the original serves a namespace; false if it has another name, or is scaled to 0. */
export async function readOriginal(
  { cluster, namespace }: { readonly cluster: Cluster; readonly namespace: string },
  call?: Call,
): Promise<boolean> {
  const found = await cluster.get(deployments, { namespace, name: ORIGINAL }, call).catch(absent);
  return found !== undefined && (found.spec?.replicas ?? 1) > 0;
}

/** Undefined if the Deployment cannot be read. */
async function isOriginalThere({ cluster, served: namespace, call }: TickingQuestion): Promise<boolean | undefined> {
  if (namespace === "") return undefined;
  return await readOriginal({ cluster, namespace }, call).catch(() => undefined);
}

/** A record in the namespace, perhaps of a reconciler elsewhere; undefined if there is none. */
async function readTraces({ cluster, served: namespace, call }: TickingQuestion): Promise<string | undefined> {
  if (namespace === "") return undefined;
  try {
    const read = ({ metadata: { name }, status }: RolloutGroup) => ({
      name,
      hasStatus: isFields(status) && Object.keys(status).length > 0,
    });
    const groups = await collectRead(cluster.list(rolloutGroups, { namespace }, call), read);
    const group = groups.find(({ hasStatus }) => hasStatus);
    return group && `a reconciler has written the status of RolloutGroup ${namespace}/${group.name}`;
  } catch (error) {
    return hasCode(error, "NotFound") ? undefined : describeUnread(`the RolloutGroups in ${namespace}`, error);
  }
}

function readLease({ metadata, spec }: Lease, now: number): LeaseFacts {
  const { holderIdentity: holder, acquireTime, renewTime, leaseDurationSeconds = 0 } = spec ?? {};
  const renewedAt = parseTimestamp(renewTime ?? "") ?? 0;
  return {
    holder: holder ?? "",
    heldSince: acquireTime,
    isLive: Boolean(holder) && now - renewedAt < leaseDurationSeconds * 1000 + CLOCK_SKEW_MS,
    lastTick: parseTotals(metadata?.annotations?.[TOTALS]).lastTick,
  };
}

type Runs = Pick<TickingFacts, "cronJob" | "jobs" | "pods" | "unread" | "original">;

/** False if that is not known: then the Lease decides. */
const isSuspended = async ({ cluster, installation, call }: TickingQuestion, namespace: string): Promise<boolean> =>
  await cluster.get(cronJobs, { namespace, name: installation.cronJob }, call).then(
    ({ spec }) => spec?.suspend === true,
    () => false,
  );

async function readRuns(question: TickingQuestion): Promise<Runs> {
  const { cluster, installation, call } = question;
  const { namespace, cronJob: name } = installation;
  const unread: string[] = [];
  const note = (what: string) => noteUnread(unread, what);
  const query = { namespace, labelSelector: `app.kubernetes.io/name=${name}` };
  const [cronJob, allJobs, allPods] = await Promise.all([
    cluster
      .get(cronJobs, { namespace, name }, call)
      .catch(absent)
      .catch(note(`CronJob ${namespace}/${name}`)),
    collect(cluster.list(jobs, query, call)).catch(note(`the Jobs in ${namespace}`)),
    collect(cluster.list(runPods, query, call)).catch(note(`the pods in ${namespace}`)),
  ]);
  return {
    cronJob: cronJob && readCronJob(cronJob),
    jobs: (allJobs ?? []).map(readJob),
    pods: (allPods ?? []).map(readRunPod),
    unread,
    original: (!cronJob || cronJob.spec?.suspend === true) && (await isOriginalThere(question)),
  };
}

const readCronJob = ({ metadata, spec, status }: CronJob): CronJobFacts => ({
  suspended: spec?.suspend === true,
  createdAt: metadata?.creationTimestamp,
  lastJobAt: status?.lastScheduleTime ?? metadata?.creationTimestamp,
});

function readJob({ metadata, status }: Job): JobFacts {
  const { name = "", creationTimestamp: createdAt = "" } = metadata ?? {};
  const find = (type: string) => status?.conditions?.find((one) => one.type === type && one.status === "True");
  const failed = find("Failed") ?? find("FailureTarget");
  const state = failed ? "failed" : find("Complete") ? "succeeded" : "active";
  return { name, createdAt, state, message: [failed?.reason, failed?.message].filter(Boolean).join(": ") };
}

function readRunPod({ metadata, status }: RunPod): RunPodFacts {
  const { name = "", labels = {} } = metadata ?? {};
  const states = (status?.containerStatuses ?? []).map(({ state }) => state ?? {});
  const job = labels["batch.kubernetes.io/job-name"] ?? "";
  return { name, job, waiting: readWaiting(status, states), failure: readFailure(states) };
}

type ContainerState = NonNullable<NonNullable<NonNullable<RunPod["status"]>["containerStatuses"]>[number]["state"]>;

/** The reasons that every pod begins with. */
const ORDINARY = new Set(["ContainerCreating", "PodInitializing"]);

function readWaiting(status: RunPod["status"], states: readonly ContainerState[]): string | undefined {
  const waiting = states.find((state) => state.waiting && !ORDINARY.has(state.waiting.reason ?? ""))?.waiting;
  const unscheduled = status?.conditions?.find((one) => one.type === "PodScheduled" && one.status === "False");
  return describe(waiting ?? unscheduled);
}

function readFailure(states: readonly ContainerState[]): string | undefined {
  const ended = states.find(({ terminated }) => terminated && terminated.exitCode !== 0)?.terminated;
  return ended && `exit code ${ended.exitCode}, ${ended.message ? readLastLine(ended.message) : (ended.reason ?? "")}`;
}

const describe = (state: { readonly reason?: string; readonly message?: string } | undefined): string | undefined =>
  state && [state.reason, state.message].filter(Boolean).join(": ").slice(0, MAX_SHOWN);

/** Characters of a message that others wrote. */
const MAX_SHOWN = 300;

/** The last error of a log: Kubernetes keeps the log's end as the container's message. Otherwise its last line. */
function readLastLine(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const entries = lines.map((line): Readonly<Record<string, unknown>> => parseFields(line));
  const entry = entries.findLast(({ level }) => level === "error") ?? entries.findLast(({ msg }) => msg !== undefined);
  if (!entry) return (lines.at(-1) ?? "").slice(0, MAX_SHOWN);
  const { msg, error } = entry;
  const why = isFields(error) ? error["message"] : error;
  return (typeof why === "string" ? `${String(msg)}: ${why}` : String(msg)).slice(0, MAX_SHOWN);
}

/** Empty for text that is no object in JSON. */
function parseFields(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    return isFields(value) ? value : {};
  } catch {
    return {};
  }
}
