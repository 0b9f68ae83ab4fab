/**
 * A session, the time under one Lease: ticks; at its end the steps under way end, the remaining reports are written, and
 * the Lease is released.
 *
 *   pause the queue -> conclude downscales -> read RolloutGroups -> tick: list, resume the queue -> update nodes -> pause, or the next tick
 */
import { type Clock, firstOfSignals } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import type { Context } from "../../infra/kubernetes/context.ts";
import type { AcquiredLease } from "../../infra/kubernetes/lease.ts";
import type { LeaseOptions } from "../../infra/kubernetes/lease-succession.ts";
import type { Log } from "../../infra/log.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";
import { NO_TRACER, type Tracer } from "../../infra/tracing/tracer.ts";
import type { ConcludeDownscales } from "../downscale/act/conclude-downscales.ts";
import { leasesOf } from "../downscale/act/downscale-lease.ts";
import type { KeepBudgets } from "../budget/act/keep-budgets.ts";
import { createGroupStatuses, type GroupStatuses } from "../group-status/act/group-statuses.ts";
import { isFailure, type LogNote, type Outcome, type TickResult } from "../model/outcome.ts";
import type { Zone } from "../model/zone.ts";
import type { UpdateNodes } from "../nodes/act/update-nodes.ts";
import { createRecorder, type Recorder, createReporter, type Reporter } from "../report/act/reporter.ts";
import type { GroupMemory } from "../report/log-lines.ts";
import { createPodNotifier, type PodNotifier } from "../scaling/act/pod-notifier.ts";
import type { CaInjection } from "./ca-injection.ts";
import { isAtRest, pause, type Pausing } from "./pause.ts";
import { startTickWatch } from "./watch.ts";
import { createSteps, isResyncDue, type StepResult, tick, type TickInput } from "./tick.ts";
import { addGrowth, formatTotals, parseTotals, TOTALS, type Totals } from "../../infra/metrics/totals.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";

export interface RunInput {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Without one, nothing is recorded. */
  readonly tracer?: Tracer;
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  /** Goes on beside the ticks. */
  readonly caInjection: CaInjection;
  /** Done before each tick. */
  readonly concludeDownscales: ConcludeDownscales;
  /** Done after each tick; undefined if this installation updates no nodes. */
  readonly updateNodes?: UpdateNodes | undefined;
  readonly intervalMs: number;
  readonly budgetMs: number;
  readonly lease: LeaseOptions;
  readonly scaling: Omit<TickInput["scaling"], "notifier">;
  readonly mayDisrupt: TickInput["mayDisrupt"];
  readonly keepBudgets: KeepBudgets;
  readonly checking: TickInput["checking"];
  readonly phased: TickInput["phased"];
  /** Ends the run after the current step. */
  readonly stop: AbortSignal;
  /** Ticks once and ends, as a function call does. */
  readonly once?: boolean;
  /** The memory of a process from run to run: since when groups have been held. */
  readonly memory?: Map<string, GroupMemory>;
}

export interface RunResult {
  /** 0; or 1 if the last tick failed for some group or as a whole, or if each Lease was lost before a tick. */
  readonly exitCode: 0 | 1;
  /** The last tick that read the cluster; undefined if the Lease was never ours or the cluster never answered. */
  readonly last: TickResult | undefined;
}

/** Time for Events that still wait to be written at the end. */
const FLUSH_MS = 3000;
/** Time for statuses that still wait: the next run waits for the Lease meanwhile. */
const STATUS_MS = 500;

interface SessionStart {
  readonly held: AcquiredLease;
  readonly stop: AbortSignal;
  readonly before: RunResult;
}

interface Session extends Pausing {
  /** Its signal fires when the run ends, or the Lease is lost. */
  readonly context: Context;
  readonly recorder: Recorder;
  readonly reporter: Reporter;
  readonly statuses: GroupStatuses;
  readonly totals: LeaseTotals;
  readonly notifier: PodNotifier;
  /** When the resync of a group began, by its key; of the others, when the last tick before this session did. */
  readonly resyncedAt: Map<string, number>;
  /** The work beside the ticks that writes under the Lease. */
  underWay: Promise<unknown>;
}

/**
 * Ticks until `stop` fires, the Lease is lost or another run waits for it, and releases it. Resolves with the verdict
 * of the last tick, `before` if there was none; never rejects.
 */
export async function tickWhileLeader(input: RunInput, { held, stop, before }: SessionStart): Promise<RunResult> {
  const { log, lease } = input;
  const over = new AbortController();
  const until = firstOfSignals(stop, held.lost, over.signal);
  const session = await beginSession(input, held, until);
  const injecting = input.once ? input.caInjection.once(until) : input.caInjection.follow(until);
  log.info("holding the lease", { lease: lease.name, identity: lease.identity });
  const verdict = await tickAndPause(input, { held, stop: until, before }, session);
  sayWhyItEnds(held, input);
  // The end of the only tick would cut off the work beside it, also calls to pods: each process begins with the first.
  if (input.once) await Promise.all([injecting, session.underWay, session.notifier.idle()]);
  over.abort();
  const late = await endSteps(session);
  await Promise.all([flush(input, session, held), injecting]);
  return addLate(verdict, late);
}

/** Ticks until `stop` fires or another run waits for the Lease. Resolves with the verdict of the last tick. */
async function tickAndPause(
  input: RunInput,
  { held, stop, before }: SessionStart,
  session: Session,
): Promise<RunResult> {
  const { context, changes, recorder, steps } = session;
  const { annotations, awaited } = held;
  awaited.addEventListener("abort", changes.wake, { once: true });
  let verdict = before;
  while (!stop.aborted) {
    // Before anything is read that the tick decides by: what a step writes from here on, the facts may not show.
    const busy = steps.queue.pause();
    const { namespaces } = input;
    const isPending = await input.concludeDownscales(context, { namespaces, recorder, isLeftOut: leasesOf(busy) });
    const result = await tickOnce(input, session, busy);
    const changed = (await input.updateNodes?.(context, { recorder, annotations })) === true;
    verdict = addTick(verdict, result);
    if (input.once || awaited.aborted) break;
    const atRest = isResting(input, result, isPending);
    await pause(session, { result, changed, atRest }, input.intervalMs);
    // The next run ticks at once, and nothing has changed since this tick.
    if (atRest && awaited.aborted) break;
  }
  return verdict;
}

/** True if the tick has left the cluster at rest, and no downscale is still to be concluded. */
const isResting = ({ updateNodes }: RunInput, result: TickResult | undefined, isPending: boolean): boolean =>
  !isPending && result !== undefined && !updateNodes && isAtRest(result);

async function beginSession(input: RunInput, held: AcquiredLease, until: AbortSignal): Promise<Session> {
  const { cluster, clock, log, tracer, namespaces } = input;
  const changes = startTickWatch({ cluster, clock, namespaces, signal: until, pauseMs: 1000 });
  const context: Context = { cluster, fence: held, clock, stop: until, tracer };
  const recorder = createRecorder({ cluster, clock, log, instance: input.lease.identity });
  const onNote = ({ level, text }: LogNote, { namespace, group }: Zone): void => log[level](text, { namespace, group });
  const statuses = createGroupStatuses({ ...context, log });
  return {
    context,
    changes,
    recorder,
    statuses,
    reporter: createReporter({ ...input, recorder, recall: statuses.recall }),
    totals: await createLeaseTotals(held.annotations, input.metrics),
    notifier: createPodNotifier({ http: input.scaling.podHttp, clock, onNote, signal: until }),
    steps: createSteps(context, { onOwed: changes.wake, isPatient: input.once === true }),
    resyncedAt: new Map(),
    underWay: Promise.resolve(),
    newsAt: -Infinity,
  };
}

/** One tick, reported; undefined if the cluster could not be read. Never rejects. */
function tickOnce(input: RunInput, session: Session, busy: ReadonlySet<string>): Promise<TickResult | undefined> {
  const { context, reporter, statuses, totals, steps } = session;
  const { clock, tracer = NO_TRACER } = context;
  const startedAt = clock.now();
  return tracer.span(
    () => ({ name: "tick" }),
    async (span) => {
      await statuses.beginTick(input.namespaces, busy);
      const from = clock.monotonic();
      try {
        const result = await tick({
          ...input,
          context,
          steps,
          takeResync: (key) => takeResync(key, session),
          scaling: { ...input.scaling, notifier: session.notifier },
          report: reportsOf(input, session),
        });
        if (!input.once) session.changes.watchAfter(result);
        reporter.endTick(result, clock.monotonic() - from);
        statuses.endTick(result);
        session.underWay = Promise.all([session.underWay, input.keepBudgets(input.namespaces, result.groups, context)]);
        await totals.record(startedAt);
        span.set({ "zonewise.groups": result.groups.size, "zonewise.acted": result.acted });
        return result;
      } catch (error) {
        reporter.failTick(error);
        await totals.record(undefined);
        return undefined;
      }
    },
  );
}

/** True if the resync of the group is due: it counts as done then. */
function takeResync(key: string, { context, resyncedAt, totals }: Session): boolean {
  const now = context.clock.now();
  const isDue = isResyncDue(key, resyncedAt.get(key) ?? totals.tickedBefore, now);
  if (isDue) resyncedAt.set(key, now);
  return isDue;
}

function reportsOf({ log }: RunInput, { recorder, reporter, statuses, totals }: Session): TickInput["report"] {
  return {
    emitEvents: recorder.emitEvents,
    timesSuperseded: reporter.timesSuperseded,
    onOutcome(outcome: Outcome, tookMs: number) {
      reporter.report(outcome, tookMs);
      statuses.report(outcome, { tookMs, passes: totals.passes() });
    },
    onError: (error, step) => log.error("a step failed", { step, error }),
  };
}

/**
 * Steps under way call no further pod and begin no further write once the session is over; calls and writes under way
 * end under the Lease. Resolves with the results that no tick has reported.
 */
async function endSteps({ steps, totals }: Session): Promise<readonly StepResult[]> {
  await steps.queue.idle();
  if (steps.ended.length > 0) await totals.record(undefined);
  return steps.ended;
}

/** Events and statuses are optional: they do not hold up the end. Statuses are written under the Lease. */
async function flush({ clock }: RunInput, session: Session, held: AcquiredLease): Promise<void> {
  const { recorder, statuses, totals, underWay } = session;
  const flushing = new AbortController();
  const within = (ms: number, work: Promise<unknown>): Promise<unknown> =>
    Promise.race([work, clock.sleep(ms, flushing.signal)]);
  const ended = within(STATUS_MS, Promise.all([statuses.flush(), underWay]));
  // What was counted beside the last tick, as of budgets and certificates, goes onto the Lease with its release.
  const released = ended.then(() => totals.record(undefined)).then(held.release);
  await Promise.all([within(FLUSH_MS, recorder.flush()), released]).finally(() => flushing.abort());
}

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

type LeaseTotals = Awaited<ReturnType<typeof createLeaseTotals>>;

/**
 * The totals of the reconciler, kept on its Lease: written with each renewal, and read by the functions' `/metrics`.
 * `annotations` belong to the Lease that was just taken. Resolves before anything more is counted.
 */
export async function createLeaseTotals(annotations: Map<string, string>, metrics: Pick<Metrics, "readKept">) {
  const base = parseTotals(annotations.get(TOTALS));
  const start = await metrics.readKept();
  let { passes, lastTick }: Pick<Totals, "passes" | "lastTick"> = base;
  return {
    /** The number of the tick under way among all of the installation. */
    passes: (): number => passes + 1,
    /** When the last tick under an earlier Lease began, milliseconds since the epoch; undefined without one. */
    tickedBefore: parseTimestamp(base.lastTick ?? ""),
    /**
     * Takes over the process's own metrics after a tick. `startedAt` (milliseconds since the epoch) is undefined if it
     * could not read the cluster.
     */
    async record(startedAt: number | undefined): Promise<void> {
      if (startedAt !== undefined) {
        passes++;
        lastTick = formatTimestamp(startedAt);
      }
      const series = addGrowth({ base: base.series, start, now: await metrics.readKept() });
      annotations.set(TOTALS, formatTotals({ passes, ...(lastTick !== undefined && { lastTick }), series }));
    },
  };
}
