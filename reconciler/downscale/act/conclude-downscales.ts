/**
 * Concludes pending downscales, beside the rollout (§4.3, §13.5): it records the time of a downscale that happened, and
 * cancels the preparation of one that did not.
 *
 *   list the Leases with a pending downscale -> may it still happen? wait for a later tick
 *     -> take the Lease, read again -> write `last-downscale`; DELETE to prepared pods that stay -> release the Lease without the record
 *
 * The record remains until every pod has confirmed; attempts are repeated with growing pauses. A cluster without
 * pending downscales costs one empty list a run, or every 30 s.
 */
import { cancelled, startDeadline } from "../../../infra/deadline.ts";
import { absent, messageOf, wroteNothing } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { configMaps, type Lease, leases, type StatefulSet, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { ANNOTATIONS } from "../../model/annotations.ts";
import { readIdentity } from "../../../infra/kubernetes/identity.ts";
import { visitEach } from "../../../infra/slots.ts";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import {
  claimForReconciler,
  type DownscaleLease,
  type leasesOf,
  PENDING_SELECTOR,
  pendingOf,
  RECONCILER_WORK_MS,
  takeDownscaleLease,
} from "./downscale-lease.ts";
import {
  concludeDownscale,
  type Conclusion,
  laterOf,
  type PendingDownscale,
  type PendingDownscales,
} from "../pending.ts";
import { readZone } from "../../model/zone.ts";
import { redactUrl } from "../../../infra/credentials.ts";
import type { Log, LogFields } from "../../../infra/log.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import { endpointsOf, readPreparation } from "../preparation.ts";
import { restoreEntry } from "../tracker.ts";
import type { Draft } from "../../report/events.ts";
import type { Recorder } from "../../report/act/reporter.ts";
import { type PodCalls, cancelPreparation } from "./pod-calls.ts";

interface PendingScope {
  /** "" for all namespaces. */
  readonly namespaces: readonly string[];
  readonly recorder: Pick<Recorder, "emitEvents">;
  /**
   * Leases of groups with a step under way: it may have read the zones before, and would miss a time that moves from
   * the Lease to a StatefulSet.
   */
  readonly isLeftOut?: ReturnType<typeof leasesOf>;
}

/**
 * Concludes downscales for 5 s at most; resolves with true while some are left. Never rejects. It must end before zones are
 * read: otherwise the tick could miss a time that moves from the Lease to a StatefulSet.
 */
export type ConcludeDownscales = (context: Context, scope: PendingScope) => Promise<boolean>;

interface ConcludeOptions {
  readonly log: Log;
  readonly podHttp: PodHttp;
  readonly clusterDomain: string;
  readonly zoneTracker: string;
}

/** Milliseconds between lists of the Leases while nothing is pending, or after a failure. */
const POLL_MS = 30_000;
/**
 * Milliseconds of one call: no Lease is started after the first bound, and only releases run after the second, as a
 * tick follows. The next call continues.
 */
const START_MS = 1500;
const CONCLUDE_MS = 5000;
/** Records of one Lease that are checked in one call; each costs a request. */
const MAX_RECORDS = 100;
const AT_ONCE = 8;

/** What came of a Lease; `unread` of a namespace whose Leases could not be listed. */
type ConcludeResult = "wait" | "concluded" | "failed" | "unread";

export function createConcluder(options: ConcludeOptions): ConcludeDownscales {
  /** The results since all Leases had one: a call that is cut short leaves the other Leases to the next. */
  const results = new Map<string, ConcludeResult>();
  let nextListAt = -Infinity;
  let isLeft = false;
  return async (context, scope) => {
    const { clock } = context;
    const startedAt = clock.monotonic();
    if (startedAt < nextListAt) return isLeft;
    const isWhole = await concludeAll(results, scope, { ...context, ...options });
    const found = new Set(results.values());
    const mayPause = isWhole && (found.has("failed") || !found.has("wait"));
    nextListAt = mayPause ? startedAt + POLL_MS : clock.monotonic();
    found.delete("concluded");
    isLeft = !isWhole || found.size > 0;
    if (isWhole) results.clear();
    return isLeft;
  };
}

/**
 * Concludes each Lease that has no result yet, and notes its result. Resolves with false if the time is over before all
 * have one: the next call goes on with the others. Never rejects.
 */
async function concludeAll(
  results: Map<string, ConcludeResult>,
  { namespaces, recorder, isLeftOut = () => false }: PendingScope,
  tools: Context & ConcludeOptions,
): Promise<boolean> {
  const { cluster, clock, stop, log } = tools;
  using deadline = startDeadline(CONCLUDE_MS, stop, clock);
  const { signal } = deadline;
  const context = { ...tools, recorder, stop: signal };
  const startedAt = clock.monotonic();
  let isCutShort = false;
  const warn = (message: string, details: LogFields): void => {
    if (!stop.aborted) log.warn(message, details);
  };
  const concludeInTime = async (lease: Lease): Promise<void> => {
    const ref = readIdentity(lease.metadata ?? {});
    const key = `${ref.namespace}/${ref.name}`;
    if (results.has(key)) return;
    if (isLeftOut(ref)) return void results.set(key, "wait");
    isCutShort ||= clock.monotonic() - startedAt >= START_MS;
    if (isCutShort) return;
    try {
      results.set(key, await concludeLease(lease, context));
    } catch (error) {
      results.set(key, "failed");
      warn("a pending downscale could not be concluded", { lease: ref.name, namespace: ref.namespace, error });
    }
  };
  // A namespace that cannot be listed does not hold up the others.
  for (const namespace of namespaces) {
    const query = { ...(namespace && { namespace }), labelSelector: PENDING_SELECTOR };
    try {
      for await (const { items } of cluster.list(leases, query, { signal }))
        await visitEach(items, { atOnce: AT_ONCE, signal }, concludeInTime);
    } catch (error) {
      results.set(namespace, "unread");
      warn("the Leases of pending downscales could not be listed", { namespace, error });
    }
    if (signal.aborted) return false;
  }
  return !isCutShort;
}

interface ConcludeContext extends Context, ConcludeOptions {
  readonly recorder: PendingScope["recorder"];
}

/** This process holds the downscale Lease: `stop` also fires when the Lease's time is over. */
interface HeldContext extends ConcludeContext, Pick<PodCalls, "isOurs"> {}

async function concludeLease(lease: Lease, context: ConcludeContext): Promise<ConcludeResult> {
  const ref = readIdentity(lease.metadata ?? {});
  const pending = pendingOf(lease);
  const [first] = (await findDue(ref.namespace, pending, context)).keys();
  const records = Object.values(pending);
  // Without a record that can be read, the Lease is taken nevertheless: its release removes what nobody can read.
  if (first === undefined && records.length > 0) return resultOfUndue(records);
  // The time counts from before the write: its answer may be late.
  using deadline = startDeadline(RECONCILER_WORK_MS, context.stop, context.clock);
  const isOurs = (): boolean => !deadline.signal.aborted && deadline.remainingMs() > 0;
  const taken = await takeDownscaleLease(context, claimForReconciler(ref, first ?? ""), context.fence.write());
  // A webhook holds the Lease for a newer request.
  if (!("release" in taken)) return "wait";
  return await concludeUnder(taken, ref.namespace, { ...context, stop: deadline.signal, isOurs });
}

/** The result of a Lease without a due downscale: they may still happen, or their next attempt is later. */
const resultOfUndue = (records: readonly PendingDownscale[]): ConcludeResult =>
  records.every(({ tried }) => tried !== undefined) ? "failed" : "wait";

/** Concludes what is due in a Lease that is held, and releases it with what remains. */
async function concludeUnder(taken: DownscaleLease, namespace: string, context: HeldContext): Promise<ConcludeResult> {
  const remaining = new Map(Object.entries(taken.recorded));
  const ends: End[] = [];
  try {
    for (const [statefulSet, due] of await findDue(namespace, taken.recorded, context)) {
      if (!context.isOurs()) throw cancelled(context.stop);
      const end = await conclude(due, context);
      ends.push(end);
      if (end.record) remaining.set(statefulSet, end.record);
      else remaining.delete(statefulSet);
    }
  } finally {
    await taken.release(Object.fromEntries(remaining));
  }
  const unwritten = ends.find(({ state }) => state === "unwritten");
  if (unwritten) throw unwritten.error;
  if (ends.some(({ state }) => state === "untold")) return "failed";
  return remaining.size > 0 ? "wait" : "concluded";
}

/** A downscale that can be concluded, and its current StatefulSet; undefined if that is gone. */
interface Due {
  readonly zone: StatefulSet | undefined;
  readonly pending: PendingDownscale;
  readonly conclusion: Conclusion;
}

/** Rejects with `Cancelled` once `stop` fires, or with the error of the API server. */
async function findDue(
  namespace: string,
  pending: PendingDownscales,
  { cluster, clock, stop }: Pick<Context, "cluster" | "clock" | "stop">,
): Promise<Map<string, Due>> {
  const due = new Map<string, Due>();
  for (const [name, one] of Object.entries(pending).slice(0, MAX_RECORDS)) {
    if (stop.aborted) throw cancelled(stop);
    const zone = await cluster.get(statefulSets, { namespace, name }, { signal: stop }).catch(absent);
    const conclusion = concludeDownscale(one, zone && readZone(zone), clock.now());
    if (conclusion) due.set(name, { zone, pending: one, conclusion });
  }
  return due;
}

/** How the conclusion of a downscale has ended, and the record that remains of it. */
interface End {
  /** `untold`: not every pod has confirmed that its preparation was cancelled. */
  readonly state: "done" | "untold" | "unwritten";
  readonly record: PendingDownscale | undefined;
  readonly error?: unknown;
}

/** Throws an error after which a write may have taken effect. */
async function conclude({ zone, ...due }: Due, context: HeldContext): Promise<End> {
  const { pending, conclusion } = due;
  try {
    if (!zone || (await concludeOne({ ...due, zone }, context))) return { state: "done", record: conclusion.cooldown };
    return { state: "untold", record: { ...pending, tried: formatTimestamp(context.clock.now()) } };
  } catch (error) {
    if (!wroteNothing(error)) throw error;
    // An entry that cannot be written now stays recorded. It does not block the Lease's other downscales.
    return { state: "unwritten", record: pending, error };
  }
}

/** Milliseconds for calls to the pods of one StatefulSet. Meanwhile the webhook refuses downscales of its group. */
const CANCEL_MS = 5000;

type DueZone = Due & { readonly zone: StatefulSet };

/**
 * Resolves with false unless every pod confirmed that its preparation was cancelled. Throws the error of the API
 * server, `Conflict` if the StatefulSet has changed.
 */
async function concludeOne(due: DueZone, context: HeldContext): Promise<boolean> {
  const { zone, pending, conclusion } = due;
  const { namespace, name } = readIdentity(zone.metadata ?? {});
  await recordTime(zone, conclusion.lastDownscale, context);
  if (!conclusion.happened) await restoreTracked({ namespace, name, at: pending.at }, context);
  if (conclusion.staying.end === conclusion.staying.start) return true;
  const problem = await cancelForStaying(due, context);
  const draft = draftEvent(due, problem);
  context.recorder.emitEvents([draft]);
  context.log[problem === undefined ? "info" : "warn"](draft.message, { namespace, zone: name });
  return problem === undefined;
}

async function recordTime(
  { metadata = {} }: StatefulSet,
  at: string | undefined,
  { cluster, fence }: Pick<Context, "cluster" | "fence">,
): Promise<void> {
  const { namespace, name, resourceVersion } = readIdentity(metadata);
  const written = metadata.annotations?.[ANNOTATIONS.lastDownscale];
  if (at === undefined || at === written || laterOf(at, written) !== at) return;
  const body = { metadata: { resourceVersion, annotations: { [ANNOTATIONS.lastDownscale]: at } } };
  await cluster.patch(statefulSets, { namespace, name, type: "merge", body }, fence.write());
}

/**
 * Sends a DELETE to the prepared pods that stay. Resolves with the first problem, or undefined if every pod confirmed.
 */
async function cancelForStaying(
  { zone, conclusion: { staying } }: DueZone,
  { podHttp, clusterDomain, clock, isOurs, stop }: HeldContext,
): Promise<string | undefined> {
  const preparation = readPreparation(zone);
  if ("problem" in preparation) return preparation.problem;
  let problem: string | undefined;
  const onFailure = (url: string, error: unknown): void => void (problem ??= `${redactUrl(url)}: ${messageOf(error)}`);
  const endpoints = endpointsOf(preparation, staying, clusterDomain);
  const calls = { podHttp, clock, namespace: preparation.namespace, endpoints, isOurs, onFailure };
  return (await cancelPreparation(calls, CANCEL_MS, stop)) ? undefined : (problem ?? "the time was over");
}

function draftEvent(
  { zone, pending: { from, to, at }, conclusion: { staying } }: DueZone,
  problem: string | undefined,
): Draft {
  const { namespace, name, uid } = readIdentity(zone.metadata ?? {});
  const regarding = { kind: "StatefulSet" as const, namespace, name, uid };
  const count = staying.end - staying.start;
  const subject = `the downscale of ${name} from ${from} to ${to} replicas, admitted at ${at}, is not in effect`;
  const done = `${subject}: the preparation of its ${count} pods was cancelled`;
  const failed = `${subject}, and not every one of its ${count} prepared pods confirmed that its preparation was cancelled: ${problem}`;
  return problem === undefined
    ? { regarding, type: "Normal", reason: "DownscaleUndone", message: done }
    : { regarding, type: "Warning", reason: "DownscaleNotUndone", message: failed, cause: subject };
}

/** Removes the time of a downscale that did not happen from the zone tracker. Throws the error of the API server. */
async function restoreTracked(
  { namespace, name, at }: { readonly namespace: string; readonly name: string; readonly at: string },
  { zoneTracker, cluster, fence, stop }: Pick<HeldContext, "zoneTracker" | "cluster" | "fence" | "stop">,
): Promise<void> {
  const ref = { namespace, name: zoneTracker };
  // Read while this process holds the Lease: a later holder may write a time that must not be removed.
  const found = await cluster.get(configMaps, ref, { signal: stop }).catch(absent);
  const data = restoreEntry(found?.data, name, at);
  if (found && data) await cluster.replace(configMaps, { ...ref, body: { ...found, data } }, fence.write());
}
