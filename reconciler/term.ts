/** The time under one Lease: ticks until it is to end, then the Lease is released and what is left to report is written. */
import { firstOfSignals } from "../infra/clock.ts";
import type { AcquiredLease } from "../infra/kubernetes/lease.ts";
import { startChangeWatch, zonesOf } from "./change-watch.ts";
import { createFreshness, type Freshness } from "../infra/kubernetes/freshness.ts";
import type { Zone } from "./model/zone.ts";
import { isFailure, type LogNote, type TickResult } from "./report/outcome.ts";
import { createRecorder, type Recorder } from "./report/recorder.ts";
import { createReporter, type Reporter } from "./report/reporter.ts";
import { dueForResync, resyncedThrough, recordResync } from "./resync.ts";
import type { RunInput, RunResult } from "./run.ts";
import { createPodNotifier, type PodNotifier } from "./scaler/pod-notifier.ts";
import { LAST_STARTED, tick } from "./tick.ts";

/** Time for Events that still wait to be written at the end. */
const FLUSH_MS = 3000;

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
  const session = { held, until, reporter, notifier, freshness: createFreshness(clock, log) };
  let verdict = before;
  log.info("holding the lease", { lease: input.lease.name, identity: input.lease.identity });

  while (!until.aborted) {
    await input.settleDownscales({ namespaces: input.namespaces, fence: held, recorder, signal: until });
    const result = await tickOnce(input, session);
    const acted = await updateNodes(input, { ...session, recorder, result });
    verdict = addTick(verdict, result);
    if (result) changes.watchFrom(result.resourceVersions);
    if (input.once || held.awaited.aborted) break;
    if (!acted) await changes.wait(input.intervalMs);
  }
  sayWhyItEnds(held, input);
  if (input.once) await injecting;
  over.abort();
  const flushing = new AbortController();
  // Events are a courtesy: they do not hold up the end.
  const flushed = Promise.race([recorder.flush(), clock.sleep(FLUSH_MS, flushing.signal)]).finally(() => flushing.abort());
  await Promise.all([flushed, held.release(), injecting]);
  return verdict;
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
  const changed = await updateNodes?.({ fence: held, freshness, recorder, signal: until });
  return changed === true || result?.acted === true;
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
