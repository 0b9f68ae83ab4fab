/** The time under one Lease: ticks until it is to end, then the Lease is released and what is left to report is written. */
import { firstOfSignals } from "../infra/clock.ts";
import type { AcquiredLease } from "../infra/kubernetes/lease.ts";
import { startChangeWatch, zonesOf } from "./change-watch.ts";
import { createFreshness, type Freshness } from "../infra/kubernetes/freshness.ts";
import type { Zone } from "./model/zone.ts";
import { createLeaseTotals, type LeaseTotals } from "./lease-totals.ts";
import { isFailure, type LogNote, type Outcome, type TickResult } from "./report/outcome.ts";
import { createRecorder, type Recorder } from "./report/recorder.ts";
import { createReporter, type Reporter } from "./report/reporter.ts";
import { dueForResync, resyncedThrough, recordResync } from "./resync.ts";
import type { RunInput, RunResult } from "./run-input.ts";
import { createPodNotifier, type PodNotifier } from "./scaler/pod-notifier.ts";
import { createGroupStatuses, type GroupStatuses } from "./status-writer/group-statuses.ts";
import { LAST_STARTED, tick } from "./tick.ts";

/** Time for Events that still wait to be written at the end. */
const FLUSH_MS = 3000;
/** Time for statuses that still wait: the next run waits for the Lease meanwhile. */
const STATUS_MS = 500;

/** The time under one Lease. */
export interface Term {
  readonly held: AcquiredLease;
  readonly stop: AbortSignal;
  /** The result of the run so far. */
  readonly before: RunResult;
}

/** Ticks until `stop` fires, the Lease is lost or another run waits for it, and releases it. Resolves with the verdict of the last tick, `before` if there was none; never rejects. */
export async function tickUntil(input: RunInput, { held, stop, before }: Term): Promise<RunResult> {
  const { cluster, clock, log } = input;
  const over = new AbortController();
  const until = firstOfSignals(stop, held.lost, over.signal);
  const changes = startChangeWatch({ cluster, clock, signal: until, target: zonesOf, pauseMs: 1000 });
  held.awaited.addEventListener("abort", changes.wake, { once: true });
  const injecting = input.once ? input.caInjection.once(until) : input.caInjection.follow(until);
  const recorder = createRecorder({ cluster, clock, log, instance: input.lease.identity });
  const reporter = createReporter({ ...input, recorder });
  const onNote = ({ level, text }: LogNote, { namespace, group }: Zone): void => log[level](text, { namespace, group });
  const notifier = createPodNotifier({ http: input.scaling.podHttp, clock, onNote, signal: until });
  const statuses = createGroupStatuses({ cluster, clock, log, fence: held, signal: until, onChange: changes.wake });
  const totals = await createLeaseTotals(held.annotations, input.metrics);
  const { record } = recorder;
  const session = { held, until, reporter, statuses, totals, notifier, record, freshness: createFreshness(clock, log) };
  let verdict = before;
  log.info("holding the lease", { lease: input.lease.name, identity: input.lease.identity });

  while (!until.aborted) {
    await input.concludeDownscales({ namespaces: input.namespaces, fence: held, recorder, signal: until });
    const result = await tickOnce(input, session);
    const acted = await updateNodes(input, { ...session, recorder, result });
    verdict = addTick(verdict, result);
    if (result) changes.watchFrom(result.resourceVersions);
    if (input.once || held.awaited.aborted) break;
    if (!acted) await changes.wait(pauseMs(input, result));
  }
  sayWhyItEnds(held, input);
  if (input.once) await injecting;
  over.abort();
  const flushing = new AbortController();
  // Events and statuses are a courtesy: they do not hold up the end. Statuses are written under the Lease.
  const within = (ms: number, work: Promise<void>): Promise<void> => Promise.race([work, clock.sleep(ms, flushing.signal)]);
  const released = within(STATUS_MS, statuses.flush()).then(held.release);
  await Promise.all([within(FLUSH_MS, recorder.flush()), released, injecting]).finally(() => flushing.abort());
  return verdict;
}

/** At least, as a check that a tick has not reached is due at once. */
const SHORTEST_PAUSE_MS = 1000;

/** Milliseconds to the next tick: the interval, or less if a check is due before. */
function pauseMs({ intervalMs, clock }: RunInput, result: TickResult | undefined): number {
  const due = result?.nextCheckAt;
  return due === undefined ? intervalMs : Math.min(intervalMs, Math.max(SHORTEST_PAUSE_MS, due - clock.now()));
}

function sayWhyItEnds({ awaited, lost }: AcquiredLease, { log, lease }: RunInput): void {
  if (awaited.aborted) log.info("handing the lease over to the next run", { lease: lease.name, to: awaited.reason });
  if (lost.aborted) log.warn("the lease was lost", { error: lost.reason });
}

/** Resolves with true if the tick, or the step that updates nodes, has written something; never rejects. */
async function updateNodes(
  { updateNodes }: RunInput,
  { held, until, freshness, recorder, result }: Session & { readonly recorder: Recorder; readonly result: TickResult | undefined },
): Promise<boolean> {
  const changed = await updateNodes?.({ fence: held, freshness, recorder, signal: until, annotations: held.annotations });
  return changed === true || result?.acted === true;
}

/** A run succeeds if its last tick read the cluster and failed for no group. */
function addTick({ last }: RunResult, result: TickResult | undefined): RunResult {
  if (!result) return { exitCode: 1, last };
  const isFailed = result.phasedFailed === true || result.failures.size > 0 || result.outcomes.some(isFailure);
  return { exitCode: isFailed ? 1 : 0, last: result };
}

/** What the ticks under one Lease share. */
interface Session {
  readonly held: AcquiredLease;
  /** Fires when the run ends, or the Lease is lost. */
  readonly until: AbortSignal;
  readonly reporter: Reporter;
  readonly statuses: GroupStatuses;
  readonly totals: LeaseTotals;
  readonly notifier: PodNotifier;
  readonly record: Recorder["record"];
  readonly freshness: Freshness;
}

/** One tick, reported; undefined if the cluster could not be read. Never rejects. */
async function tickOnce(
  input: RunInput,
  { held, until, reporter, statuses, totals, notifier, record, freshness }: Session,
): Promise<TickResult | undefined> {
  const { cluster, namespaces, clock, scaling, budgets, checking, phased } = input;
  const startedAt = clock.now();
  const isResyncDue = dueForResync(resyncedThrough(held.annotations), startedAt);
  const after = held.annotations.get(LAST_STARTED) ?? "";
  await statuses.beginTick(namespaces);
  const from = clock.monotonic();
  const onOutcome = (outcome: Outcome, tookMs: number): void => {
    reporter.report(outcome, tookMs);
    statuses.report(outcome, { tookMs, passes: totals.passes() });
  };
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
      checking,
      phased,
      report: { record, timesSuperseded: reporter.timesSuperseded, onOutcome },
    });
    recordResync(held.annotations, { startedAt, after, groups: [...result.groups.keys()], begun: result.outcomes.length });
    reporter.endTick(result, clock.monotonic() - from);
    statuses.endTick(result);
    void input.budgetStatuses.write(result.groups, held, until);
    await totals.record(startedAt);
    return result;
  } catch (error) {
    reporter.failTick(error);
    await totals.record(undefined);
    return undefined;
  }
}
