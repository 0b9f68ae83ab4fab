/**
 * One run of the reconciler: take the Lease, tick until the time budget is spent, release it.
 *
 *   wait for the Lease -> tick -> acted, or something changed: next tick at once; otherwise after the interval -> ... -> release -> exit code
 */
import type { LogNote, TickResult } from "./report/outcome.ts";
import { firstOfSignals, type Clock } from "../infra/clock.ts";
import type { Cluster } from "../infra/kubernetes/cluster.ts";
import { hasCode, isRetryable } from "../infra/errors.ts";
import { acquireLease, type AcquiredLease, type LeaseOptions } from "../infra/kubernetes/lease.ts";
import type { Log } from "../infra/log.ts";
import type { Metrics } from "../infra/metrics/metrics.ts";
import type { CaInjection } from "./ca-injection.ts";
import { startChangeWatch, zonesOf } from "./change-watch.ts";
import { dueForResync, resyncedThrough, recordResync } from "./resync.ts";
import { createFreshness, type Freshness } from "../infra/kubernetes/freshness.ts";
import type { GroupMemory } from "./report/memory.ts";
import { isFailure } from "./report/outcome.ts";
import type { Zone } from "./model/zone.ts";
import { createRecorder } from "./report/recorder.ts";
import { createReporter, type Reporter } from "./report/reporter.ts";
import type { SettleDownscales } from "./pending-downscales/settle-downscales.ts";
import { createPodNotifier, type PodNotifier } from "./scaler/pod-notifier.ts";
import { LAST_STARTED, tick, type TickInput } from "./tick.ts";

export interface RunInput {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** Does not jump between API servers, so that the Lease is not lost by that. */
  readonly leaseClock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  /** Goes on beside the ticks. */
  readonly caInjection: CaInjection;
  /** Done before each tick. */
  readonly settleDownscales: SettleDownscales;
  readonly intervalMs: number;
  readonly budgetMs: number;
  readonly lease: LeaseOptions;
  readonly scaling: Omit<TickInput["scaling"], "notifier">;
  readonly budgets: TickInput["budgets"];
  /** Ends the run after the current step. */
  readonly stop: AbortSignal;
  /** Ticks once and ends, as a function call does. */
  readonly once?: boolean;
  /** What a process remembers from run to run: since when groups have been held. */
  readonly memory?: Map<string, GroupMemory>;
}

/** Between a Lease that was lost and the next attempt. */
const PAUSE_MS = 1000;

/** Time for Events that still wait to be written at the end. */
const FLUSH_MS = 3000;

export interface RunResult {
  /** 0, or 1 if the last tick failed for some group or as a whole, or if none was made as each Lease was lost before. */
  readonly exitCode: 0 | 1;
  /** The last tick that read the cluster; undefined if the Lease was never ours or the cluster never answered. */
  readonly last: TickResult | undefined;
}

/** Runs until `stop` fires or the time budget is spent; never rejects. */
export async function run(input: RunInput): Promise<RunResult> {
  const { clock, log } = input;
  const ended = new AbortController();
  const stop = firstOfSignals(input.stop, ended.signal);
  const budget = clock.sleep(input.budgetMs, stop).then(() => ended.abort());
  let result: RunResult = { exitCode: 0, last: undefined };
  let leasesLost = 0;
  while (!stop.aborted) {
    try {
      const term = await serveTerm(input, stop, result);
      result = term.result;
      if (input.once) ended.abort();
      if (term.isLost) {
        leasesLost++;
        await clock.sleep(PAUSE_MS, stop);
      }
    } catch (error) {
      if (hasCode(error, "Cancelled")) break;
      result = { ...result, exitCode: 1 };
      log.error("the lease could not be taken", { error });
      if (!isRetryable(error)) ended.abort();
      await clock.sleep(PAUSE_MS, stop);
    }
  }
  await budget;
  if (leasesLost === 0 || result.last) return result;
  log.error("no tick was made: each lease was lost before", { lease: input.lease.name, leasesLost });
  return { ...result, exitCode: 1 };
}

/** Ticks under one Lease, if it could be taken before `stop` fired. Rejects if the cluster cannot say whose the Lease is. */
async function serveTerm(input: RunInput, stop: AbortSignal, before: RunResult): Promise<{ result: RunResult; isLost: boolean }> {
  const held = await acquireLease({ cluster: input.cluster, clock: input.leaseClock }, input.lease, stop);
  if (held) return { result: await tickUntil(input, { held, stop, before }), isLost: held.lost.aborted };
  input.log.info("another process holds the lease", { lease: input.lease.name });
  return { result: before, isLost: false };
}

/** The time under one Lease. */
interface Term {
  readonly held: AcquiredLease;
  readonly stop: AbortSignal;
  /** The result of the run so far. */
  readonly before: RunResult;
}

/** Ticks until `stop` fires or the Lease is lost, and releases it. Resolves with the verdict of the last tick, `before` if there was none; never rejects. */
async function tickUntil(input: RunInput, { held, stop, before }: Term): Promise<RunResult> {
  const { cluster, clock, log } = input;
  const over = new AbortController();
  const until = firstOfSignals(stop, held.lost, over.signal);
  const changes = startChangeWatch({ cluster, clock, signal: until, target: zonesOf, pauseMs: 1000 });
  const injecting = input.once ? input.caInjection.once(until) : input.caInjection.follow(until);
  const recorder = createRecorder({ cluster, clock, log, instance: input.lease.identity });
  const reporter = createReporter({ ...input, recorder });
  const onNote = ({ level, text }: LogNote, { namespace, group }: Zone): void => log[level](text, { namespace, group });
  const notifier = createPodNotifier({ http: input.scaling.podHttp, clock, onNote, signal: until });
  const session = { held, until, reporter, notifier, freshness: createFreshness(clock, log) };
  let verdict = before;
  log.info("holding the lease", { lease: input.lease.name, identity: input.lease.identity });

  while (!until.aborted) {
    await input.settleDownscales({ namespaces: input.namespaces, fence: held, recorder, signal: until });
    const result = await tickOnce(input, session);
    verdict = addTick(verdict, result);
    if (result) changes.watchFrom(result.resourceVersions);
    if (input.once) break;
    if (!result?.acted) await changes.wait(input.intervalMs);
  }
  if (held.lost.aborted) log.warn("the lease was lost", { error: held.lost.reason });
  if (input.once) await injecting;
  over.abort();
  const flushing = new AbortController();
  // Events are a courtesy: they do not hold up the end.
  const flushed = Promise.race([recorder.flush(), clock.sleep(FLUSH_MS, flushing.signal)]).finally(() => flushing.abort());
  await Promise.all([flushed, held.release(), injecting]);
  return verdict;
}

/** A run succeeds if its last tick read the cluster and failed for no group. */
function addTick({ last }: RunResult, result: TickResult | undefined): RunResult {
  if (!result) return { exitCode: 1, last };
  return { exitCode: result.failures.size > 0 || result.outcomes.some(isFailure) ? 1 : 0, last: result };
}

/** What the ticks under one Lease share. */
interface Session {
  readonly held: AcquiredLease;
  /** Fires when the run ends, or the Lease is lost. */
  readonly until: AbortSignal;
  readonly reporter: Reporter;
  readonly notifier: PodNotifier;
  readonly freshness: Freshness;
}

/** One tick, reported; undefined if the cluster could not be read. Never rejects. */
async function tickOnce(input: RunInput, { held, until, reporter, notifier, freshness }: Session): Promise<TickResult | undefined> {
  const { cluster, namespaces, clock, scaling, budgets } = input;
  const startedAt = clock.now();
  const isResyncDue = dueForResync(resyncedThrough(held.annotations), startedAt);
  const after = held.annotations.get(LAST_STARTED) ?? "";
  const from = clock.monotonic();
  try {
    const result = await tick({
      cluster,
      fence: held,
      freshness,
      namespaces,
      clock,
      stop: until,
      turns: { isResyncDue, annotations: held.annotations },
      scaling: { ...scaling, notifier },
      budgets,
      report: { timesSuperseded: reporter.timesSuperseded, onOutcome: reporter.report },
    });
    recordResync(held.annotations, { startedAt, after, groups: [...result.groups.keys()], begun: result.outcomes.length });
    reporter.endTick(result, clock.monotonic() - from);
    return result;
  } catch (error) {
    reporter.failTick(error);
    return undefined;
  }
}
