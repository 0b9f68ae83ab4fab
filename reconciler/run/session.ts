/**
 * A session, the time under one Lease: ticks; at its end the Lease is released, and the remaining reports are written.
 */
import { firstOfSignals } from "../../infra/clock.ts";
import type { Context } from "../../infra/kubernetes/context.ts";
import type { AcquiredLease } from "../../infra/kubernetes/lease.ts";
import type { Zone } from "../model/zone.ts";
import { createGroupTurns, type GroupTurns } from "./group-turns.ts";
import { createLeaseTotals, type LeaseTotals } from "./lease-totals.ts";
import { isFailure, type LogNote, type Outcome, type TickResult } from "../model/outcome.ts";
import { createRecorder, type Recorder } from "../report/act/recorder.ts";
import { createReporter, type Reporter } from "../report/act/reporter.ts";
import { leasesOf } from "../downscale/act/downscale-lease.ts";
import { createResync, type Resync } from "./resync.ts";
import type { RunInput, RunResult } from "./run-input.ts";
import { NO_TRACER, type Span } from "../../infra/tracing/tracer.ts";
import { createPodNotifier, type PodNotifier } from "../scaling/act/pod-notifier.ts";
import { createGroupStatuses, type GroupStatuses } from "../group-status/act/group-statuses.ts";
import { createPatientSteps, createSteps, type StepResult, type Steps, type StepsOptions } from "./steps.ts";
import { startTickWatch } from "./tick-watch.ts";
import { tick } from "./tick.ts";

/** Time for Events that still wait to be written at the end. */
const FLUSH_MS = 3000;
/** Time for statuses that still wait: the next run waits for the Lease meanwhile. */
const STATUS_MS = 500;

/** The input of a session. */
interface SessionStart {
  readonly held: AcquiredLease;
  readonly stop: AbortSignal;
  /** The result of the run so far. */
  readonly before: RunResult;
  /** The versions that the run has read or written so far, also under an earlier Lease. */
}

/**
 * Ticks until `stop` fires, the Lease is lost or another run waits for it, and releases it. Resolves with the verdict
 * of the last tick, `before` if there was none; never rejects.
 */
export async function tickWhileLeader(input: RunInput, { held, stop, before }: SessionStart): Promise<RunResult> {
  const { cluster, clock, log, tracer } = input;
  const over = new AbortController();
  const until = firstOfSignals(stop, held.lost, over.signal);
  const changes = startTickWatch({ cluster, clock, signal: until, pauseMs: 1000 });
  held.awaited.addEventListener("abort", changes.wake, { once: true });
  const injecting = input.once ? input.caInjection.once(until) : input.caInjection.follow(until);
  const recorder = createRecorder({ cluster, clock, log, instance: input.lease.identity });
  const onNote = ({ level, text }: LogNote, { namespace, group }: Zone): void => log[level](text, { namespace, group });
  const notifier = createPodNotifier({ http: input.scaling.podHttp, clock, onNote, signal: until });
  const context: Context = { cluster: changes.cluster, fence: held, clock, stop: until, tracer };
  const statuses = createGroupStatuses({ ...context, log, onChange: changes.wake });
  const reporter = createReporter({ ...input, recorder, recall: statuses.recall });
  const totals = await createLeaseTotals(held.annotations, input.metrics);
  const { emitEvents } = recorder;
  const turns = createGroupTurns(clock, held.annotations);
  const onLate: StepsOptions["onLate"] = (late, { key, error }) => {
    if (error !== undefined) log.error("a slow step failed", { step: key, error });
    if (needsTick(late) || turns.isAwaited(key)) changes.wake();
    else if (late.dueAt !== undefined) void wakeWhenDue(late.dueAt, { ...input, ...changes, signal: until });
  };
  const steps = input.once ? createPatientSteps() : createSteps({ clock, onLate });
  const resync = createResync(held.annotations);
  const session: Session = {
    context,
    reporter,
    statuses,
    totals,
    notifier,
    emitEvents,
    steps,
    turns,
    resync,
    writes: { underWay: Promise.resolve() },
  };
  let verdict = before;
  log.info("holding the lease", { lease: input.lease.name, identity: input.lease.identity });

  while (!until.aborted) {
    const isLeftOut = leasesOf(steps.underWay());
    await input.concludeDownscales(context, { namespaces: input.namespaces, recorder, isLeftOut });
    const result = await tickInSpan(input, session);
    const changed = (await input.updateNodes?.(context, { recorder, annotations: held.annotations })) === true;
    verdict = addTick(verdict, result);
    if (result) changes.watchAfter(result);
    if (input.once || held.awaited.aborted) break;
    if (mayPause(changed, result)) await changes.wait(pauseMs(input, result));
  }
  sayWhyItEnds(held, input);
  // The end of the only tick would cut off the work beside it, also calls to pods: each process begins with the first.
  if (input.once) await Promise.all([injecting, session.writes.underWay, notifier.idle()]);
  over.abort();
  const late = await endSteps(session);
  const flushing = new AbortController();
  // Events and statuses are optional: they do not hold up the end. Statuses are written under the Lease.
  const within = (ms: number, work: Promise<unknown>): Promise<unknown> =>
    Promise.race([work, clock.sleep(ms, flushing.signal)]);
  const released = within(STATUS_MS, Promise.all([statuses.flush(), session.writes.underWay])).then(held.release);
  await Promise.all([within(FLUSH_MS, recorder.flush()), released, injecting]).finally(() => flushing.abort());
  return addLate(verdict, late);
}

/**
 * Slow steps call no further pod and begin no further write once `until` has fired; calls and writes under way end
 * under the Lease.
 */
async function endSteps({ steps, totals }: Session): Promise<readonly StepResult[]> {
  await steps.idle();
  const late = steps.take();
  if (late.length > 0) await totals.record(undefined);
  return late;
}

/**
 * The next tick follows at once if this one, or the step that updates nodes, has changed the cluster, or if it did not
 * reach every group.
 */
const mayPause = (changed: boolean, result: TickResult | undefined): boolean =>
  !changed && !result?.acted && !result?.skipped;

/** The pause before a check that is due already, as the tick has not reached it. */
const OVERDUE_PAUSE_MS = 1000;

/** Milliseconds to the next tick: the interval, or until a check is due before. */
function pauseMs(
  { intervalMs, clock }: Pick<RunInput, "intervalMs" | "clock">,
  result: Pick<TickResult, "nextCheckAt"> | undefined,
): number {
  const due = (result?.nextCheckAt ?? Infinity) - clock.now();
  return Math.min(intervalMs, due > 0 ? due : OVERDUE_PAUSE_MS);
}

/** Ends the pause between ticks, which has begun before this check was known. */
async function wakeWhenDue(
  nextCheckAt: number,
  {
    intervalMs,
    clock,
    wake,
    signal,
  }: Pick<RunInput, "intervalMs" | "clock"> & { readonly wake: () => void; readonly signal: AbortSignal },
): Promise<void> {
  const ms = pauseMs({ intervalMs, clock }, { nextCheckAt });
  if (ms < intervalMs) await clock.sleep(ms, signal).then(wake);
}

/**
 * True if the step has changed the cluster, or decided by outdated facts, or failed: the tick that takes it over need
 * not wait.
 */
const needsTick = ({ acted, failed, outcome }: StepResult): boolean =>
  acted || failed === true || outcome?.state === "superseded";

/** A step that ends with the run counts for its last tick. */
function addLate(verdict: RunResult, late: readonly StepResult[]): RunResult {
  return late.some(({ outcome, failed }) => failed === true || (outcome && isFailure(outcome)))
    ? { ...verdict, exitCode: 1 }
    : verdict;
}

function sayWhyItEnds({ awaited, lost }: AcquiredLease, { log, lease }: RunInput): void {
  if (awaited.aborted) log.info("handing the lease over to the next run", { lease: lease.name, to: awaited.reason });
  if (lost.aborted) log.warn("the lease was lost", { error: lost.reason });
}

/** A run succeeds if its last tick read the cluster and failed for no group. */
function addTick({ last }: RunResult, result: TickResult | undefined): RunResult {
  if (!result) return { exitCode: 1, last };
  const isFailed = result.phasedFailed === true || result.failures.size > 0 || result.outcomes.some(isFailure);
  return { exitCode: isFailed ? 1 : 0, last: result };
}

/** The state that the ticks under one Lease share. */
interface Session {
  /** Its signal fires when the run ends, or the Lease is lost. */
  readonly context: Context;
  readonly reporter: Reporter;
  readonly statuses: GroupStatuses;
  readonly totals: LeaseTotals;
  readonly notifier: PodNotifier;
  readonly emitEvents: Recorder["emitEvents"];
  readonly steps: Steps;
  readonly turns: GroupTurns;
  readonly resync: Resync;
  /** The work beside the ticks that writes under the Lease. */
  readonly writes: { underWay: Promise<unknown> };
}

/** One tick, reported; undefined if the cluster could not be read. Never rejects. */
function tickInSpan(input: RunInput, session: Session): Promise<TickResult | undefined> {
  const { tracer = NO_TRACER } = input;
  return tracer.span(
    () => ({ name: "tick" }),
    (span) => tickOnce(input, session, span),
  );
}

async function tickOnce(
  input: RunInput,
  { context, reporter, statuses, totals, notifier, emitEvents, steps, turns, resync, writes }: Session,
  span: Span,
): Promise<TickResult | undefined> {
  const { namespaces, scaling, budgets, checking, phased } = input;
  const { clock } = context;
  const startedAt = clock.now();
  await statuses.beginTick(namespaces, steps.underWay());
  const from = clock.monotonic();
  const onOutcome = (outcome: Outcome, tookMs: number): void => {
    reporter.report(outcome, tookMs);
    statuses.report(outcome, { tookMs, passes: totals.passes() });
  };
  try {
    const result = await tick({
      context,
      namespaces,
      turns: {
        isResyncDue: (key) => resync.isDue(key, startedAt),
        sinceLastMs: input.once ? undefined : resync.sinceLastMs(startedAt),
        onResync: (key) => resync.begin(key, startedAt),
        memory: turns,
      },
      steps,
      scaling: { ...scaling, notifier },
      budgets,
      checking,
      phased,
      report: { emitEvents, timesSuperseded: reporter.timesSuperseded, onOutcome },
    });
    resync.endTick([...result.groups.keys()], startedAt);
    reporter.endTick(result, clock.monotonic() - from);
    statuses.endTick(result);
    writes.underWay = Promise.all([writes.underWay, input.budgetStatuses.write(result.groups, context)]);
    await totals.record(startedAt);
    span.set({ "zonewise.groups": result.groups.size, "zonewise.acted": result.acted });
    return result;
  } catch (error) {
    reporter.failTick(error);
    await totals.record(undefined);
    return undefined;
  }
}
