/**
 * Concludes pending downscales, beside the rollout (§4.3, §13.5): it records the time of a downscale that happened, and
 * cancels the preparation of one that did not.
 *
 *   list the Leases with a pending downscale -> may it still happen? wait for a later tick
 *     -> take the Lease, read again -> write `last-downscale`; DELETE to prepared pods that stay -> release the Lease without the record
 *
 * The record remains until every pod has confirmed; attempts are repeated with growing pauses. A cluster without
 * pending downscales costs one empty list every 30 s.
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
  warnOfUnreadable,
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
import type { Log } from "../../../infra/log.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import { endpointsOf, readPreparation } from "../preparation.ts";
import { restoreEntry } from "../tracker.ts";
import type { Draft } from "../../report/events.ts";
import type { Recorder } from "../../report/act/recorder.ts";
import { type PodCalls, cancelPreparation } from "./pod-calls.ts";

interface PendingScope {
  /** "" for all namespaces. */
  readonly namespaces: readonly string[];
  readonly recorder: ConcludeContext["recorder"];
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

/** Milliseconds between lists of the Leases while nothing is pending, or after a failure. */
const POLL_MS = 30_000;
/**
 * Milliseconds of one call: no Lease is started after the first bound, and only releases run after the second, as a
 * tick follows. The next call continues.
 */
const START_MS = 1500;
const CONCLUDE_MS = 5000;
/** Records of one Lease that are checked in one call; each costs requests. */
const MAX_RECORDS = 100;
const CONCURRENCY = 8;

type ConcludeResult = "wait" | "concluded" | "failed";

export function createConcluder(options: ConcludeOptions): ConcludeDownscales {
  const { log } = options;
  let nextPollAt = Number.NEGATIVE_INFINITY;
  let isLeft = false;
  /** The results of the Leases that were started, until all were. */
  const resultByLease = new Map<string, ConcludeResult>();

  return async (context, { namespaces, recorder, isLeftOut = () => false }) => {
    const { clock, stop } = context;
    const startedAt = clock.monotonic();
    if (startedAt < nextPollAt) return isLeft;
    using deadline = startDeadline(CONCLUDE_MS, stop, clock);
    const { signal } = deadline;
    let isCutShort = false;
    const concludeInTime = async (lease: Lease): Promise<void> => {
      const ref = readIdentity(lease.metadata ?? {});
      const key = `${ref.namespace}/${ref.name}`;
      if (resultByLease.has(key)) return;
      if (isLeftOut(ref)) return void resultByLease.set(key, "wait");
      isCutShort ||= clock.monotonic() - startedAt >= START_MS;
      if (isCutShort) return;
      try {
        resultByLease.set(key, await concludeLease(lease, { ...context, recorder, stop: signal }));
      } catch (error) {
        resultByLease.set(key, "failed");
        if (stop.aborted) return;
        log.warn("a pending downscale could not be concluded", {
          lease: lease.metadata?.name,
          namespace: lease.metadata?.namespace,
          error,
        });
      }
    };
    let isUnread = false;
    const onFailure = (namespace: string, error: unknown): void => {
      isUnread = true;
      if (!stop.aborted) log.warn("the Leases of pending downscales could not be listed", { namespace, error });
    };
    for await (const items of listPending(namespaces, { ...context, stop: signal }, onFailure))
      await visitEach(items, { atOnce: CONCURRENCY, signal }, concludeInTime);
    nextPollAt = clock.monotonic();
    isLeft = true;
    if (isCutShort || signal.aborted) return isLeft;
    const results = new Set(resultByLease.values());
    isLeft = isUnread || results.has("wait") || results.has("failed");
    if (!results.has("wait") || results.has("failed")) nextPollAt = startedAt + POLL_MS;
    resultByLease.clear();
    return isLeft;
  };

  async function concludeLease(lease: Lease, context: Omit<ConcludeContext, "isOurs">): Promise<ConcludeResult> {
    const ref = readIdentity(lease.metadata ?? {});
    const pending = pendingOf(lease);
    const [first] = (await findDue(ref.namespace, pending, context)).keys();
    if (first === undefined && !warnOfUnreadable(lease)) return resultOfUndue(pending);
    // Starts before the write, as its answer may be late.
    using deadline = startDeadline(RECONCILER_WORK_MS, context.stop, context.clock);
    const isOurs = (): boolean => !deadline.signal.aborted && deadline.remainingMs() > 0;
    const taken = await takeDownscaleLease(context, claimForReconciler(ref, first ?? ""), context.fence.write());
    // A webhook holds the Lease for a newer request.
    if (!("release" in taken)) return "wait";
    return await concludeUnder(taken, ref, { ...context, stop: deadline.signal, isOurs });
  }

  /** Concludes what is due in a Lease that is held, and releases it with what remains. */
  async function concludeUnder(
    taken: DownscaleLease,
    { namespace, name }: { readonly namespace: string; readonly name: string },
    context: ConcludeContext,
  ): Promise<ConcludeResult> {
    const { warning } = taken;
    if (warning) {
      context.recorder.emitEvents([warning]);
      log.warn(warning.message, { namespace, lease: name });
    }
    const done = { remaining: { ...taken.recorded }, isNotified: true, unwritten: [] as unknown[] };
    try {
      for (const [statefulSet, one] of await findDue(namespace, taken.recorded, context)) {
        if (!context.isOurs()) throw cancelled(context.stop);
        const { isDone, record } = await concludeDue(one, context).catch((error: unknown) => {
          if (!wroteNothing(error)) throw error;
          // An entry that cannot be written now stays recorded. It does not block the Lease's other downscales.
          done.unwritten.push(error);
          return { isDone: true, record: one.pending };
        });
        done.remaining = withRecord(done.remaining, statefulSet, record);
        done.isNotified &&= isDone;
      }
    } finally {
      await taken.release(done.remaining);
    }
    if (done.unwritten.length > 0) throw done.unwritten[0];
    if (!done.isNotified) return "failed";
    return Object.keys(done.remaining).length > 0 ? "wait" : "concluded";
  }

  /** Concludes one downscale, if its StatefulSet still exists, and resolves with the record that remains. */
  async function concludeDue({ zone, pending, conclusion }: Due, context: ConcludeContext) {
    const isDone = !zone || (await concludeOne({ zone, pending, conclusion }, options, context));
    const tried = formatTimestamp(context.clock.now());
    return { isDone, record: isDone ? conclusion.cooldown : { ...pending, tried } };
  }
}

/**
 * Lists the Leases with a pending downscale, page by page. A namespace that cannot be listed does not hold up the
 * others. Never rejects.
 */
async function* listPending(
  namespaces: readonly string[],
  { cluster, stop }: Pick<Context, "cluster" | "stop">,
  onFailure: (namespace: string, error: unknown) => void,
): AsyncGenerator<readonly Lease[]> {
  for (const namespace of namespaces) {
    const query = { ...(namespace && { namespace }), labelSelector: PENDING_SELECTOR };
    try {
      for await (const { items } of cluster.list(leases, query, { signal: stop })) yield items;
    } catch (error) {
      onFailure(namespace, error);
      if (stop.aborted) return;
    }
  }
}

/**
 * The downscales that can be concluded, with their current StatefulSets. Rejects with `Cancelled` once `stop` fires,
 * or with the error of the API server.
 */
async function findDue(
  namespace: string,
  pending: PendingDownscales,
  { cluster, clock, stop }: Pick<Context, "cluster" | "clock" | "stop">,
) {
  const due = new Map<string, Due>();
  for (const [name, one] of Object.entries(pending).slice(0, MAX_RECORDS)) {
    if (stop.aborted) throw cancelled(stop);
    const zone = await cluster.get(statefulSets, { namespace, name }, { signal: stop }).catch(absent);
    const conclusion = concludeDownscale(one, zone && readZone(zone), clock.now());
    if (conclusion) due.set(name, { zone, pending: one, conclusion });
  }
  return due;
}

/** The result of a Lease without a due downscale: they may still happen, or their next attempt is later. */
function resultOfUndue(pending: PendingDownscales): ConcludeResult {
  return Object.values(pending).every(({ tried }) => tried !== undefined) ? "failed" : "wait";
}

function withRecord(pending: PendingDownscales, name: string, record: PendingDownscale | undefined): PendingDownscales {
  const { [name]: _, ...others } = pending;
  return record ? { ...others, [name]: record } : others;
}

interface ConcludeOptions {
  readonly log: Log;
  readonly podHttp: PodHttp;
  readonly clusterDomain: string;
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
}

/** A downscale that can be concluded, and its current StatefulSet. */
interface Due {
  readonly zone: StatefulSet | undefined;
  readonly pending: PendingDownscale;
  readonly conclusion: Conclusion;
}

/** `stop` fires when the time under the Lease of the downscale is over, too. */
interface ConcludeContext extends Context, Pick<PodCalls, "isOurs"> {
  readonly recorder: Pick<Recorder, "emitEvents">;
}

/** Milliseconds for calls to the pods of one StatefulSet. Meanwhile the webhook refuses downscales of its group. */
const CANCEL_MS = 5000;

type DueZone = Due & { readonly zone: StatefulSet };

/**
 * Resolves with false unless every pod confirmed that its preparation was cancelled. Throws the error of the API
 * server, `Conflict` if the StatefulSet has changed.
 */
async function concludeOne(due: DueZone, options: ConcludeOptions, context: ConcludeContext): Promise<boolean> {
  const { zone, pending, conclusion } = due;
  const { namespace, name } = readIdentity(zone.metadata ?? {});
  await recordTime(zone, conclusion.lastDownscale, context);
  if (!conclusion.happened) await restoreTracked({ namespace, name, at: pending.at }, options, context);
  if (conclusion.staying.end === conclusion.staying.start) return true;
  const problem = await cancelForStaying(due, options, context);
  const draft = draftEvent(due, problem);
  context.recorder.emitEvents([draft]);
  options.log[problem === undefined ? "info" : "warn"](draft.message, { namespace, zone: name });
  return problem === undefined;
}

/** Writes the time of the downscale on its StatefulSet, unless the StatefulSet has a later one. */
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
  { podHttp, clusterDomain }: ConcludeOptions,
  { clock, isOurs, stop }: ConcludeContext,
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
  { zoneTracker }: Pick<ConcludeOptions, "zoneTracker">,
  { cluster, fence, stop }: Pick<Context, "cluster" | "fence" | "stop">,
): Promise<void> {
  const ref = { namespace, name: zoneTracker };
  // Read while this process holds the Lease: a later holder may write a time that must not be removed.
  const found = await cluster.get(configMaps, ref, { signal: stop }).catch(absent);
  const data = restoreEntry(found?.data, name, at);
  if (found && data) await cluster.replace(configMaps, { ...ref, body: { ...found, data } }, fence.write());
}
