/**
 * One run of the reconciler: take the Lease, tick until the next run waits for it or the time budget is spent, release it.
 *
 *   wait for the Lease -> tick -> acted, or something changed: next tick at once; otherwise after the interval -> ... -> release -> exit code
 *     ^                                                                                                             |
 *     +-- it is free after all, as the next run died <-- stand by for a while <-- the next run waits: handed over --+
 */
import { firstOfSignals, type Clock } from "../infra/clock.ts";
import type { Cluster } from "../infra/kubernetes/cluster.ts";
import { hasCode, isRetryable } from "../infra/errors.ts";
import { acquireLease, type LeaseOptions } from "../infra/kubernetes/lease.ts";
import type { Log } from "../infra/log.ts";
import type { LeaseClock } from "../infra/server-clock.ts";
import type { Metrics } from "../infra/metrics/metrics.ts";
import type { CaInjection } from "./ca-injection.ts";
import type { GroupMemory } from "./report/memory.ts";
import type { TickResult } from "./report/outcome.ts";
import type { UpdateNodes } from "./node-updates/update-nodes.ts";
import type { ConcludeDownscales } from "./pending-downscales/conclude-downscales.ts";
import type { BudgetStatuses } from "./status-writer/budget-statuses.ts";
import { tickUntil } from "./term.ts";
import type { TickInput } from "./tick.ts";

export interface RunInput {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** Does not jump between API servers, so that the Lease is not lost by that. */
  readonly leaseClock: LeaseClock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  /** Goes on beside the ticks. */
  readonly caInjection: CaInjection;
  /** Done before each tick. */
  readonly concludeDownscales: ConcludeDownscales;
  /** Done after each tick; undefined where this installation updates no nodes. */
  readonly updateNodes?: UpdateNodes | undefined;
  readonly intervalMs: number;
  readonly budgetMs: number;
  readonly lease: LeaseOptions;
  readonly scaling: Omit<TickInput["scaling"], "notifier">;
  readonly budgets: TickInput["budgets"];
  readonly budgetStatuses: Pick<BudgetStatuses, "write">;
  readonly checking: TickInput["checking"];
  readonly phased: TickInput["phased"];
  /** Ends the run after the current step. */
  readonly stop: AbortSignal;
  /** Ticks once and ends, as a function call does. */
  readonly once?: boolean;
  /** What a process remembers from run to run: since when groups have been held. */
  readonly memory?: Map<string, GroupMemory>;
}

/** Between a Lease that was lost and the next attempt. */
const PAUSE_MS = 1000;

/** After a handover: the time that the next run has to take the Lease, and then the time in which it may prove to be free again. */
const HANDOVER_MS = 2000;
const STANDBY_MS = 8000;

export interface RunResult {
  /** 0, or 1 if the last tick failed for some group or as a whole, or if none was made as each Lease was lost before. */
  readonly exitCode: 0 | 1;
  /** The last tick that read the cluster; undefined if the Lease was never ours or the cluster never answered. */
  readonly last: TickResult | undefined;
}

/** Runs until another run has taken over, `stop` fires or the time budget is spent; never rejects. */
export async function run(given: RunInput): Promise<RunResult> {
  const input = { memory: new Map<string, GroupMemory>(), ...given };
  const { clock, log } = input;
  const ended = new AbortController();
  const stop = firstOfSignals(input.stop, ended.signal);
  const budget = clock.sleep(input.budgetMs, stop).then(() => ended.abort());
  let result: RunResult = { exitCode: 0, last: undefined };
  let previous: TermEnd | undefined;
  let leasesLost = 0;
  while (!stop.aborted) {
    const term = await serveTerm(input, { stop, before: result, previous }).catch((error: unknown) => explain(input, error, result));
    result = term.result;
    previous = term.end ?? previous;
    if (term.end === "lost") leasesLost++;
    if (isOver(input, term)) ended.abort();
    if (term.end === "lost" || term.end === undefined) await clock.sleep(PAUSE_MS, stop);
  }
  await budget;
  if (leasesLost === 0 || result.last) return result;
  log.error("no tick was made: each lease was lost before", { lease: input.lease.name, leasesLost });
  return { ...result, exitCode: 1 };
}

interface TermResult {
  readonly result: RunResult;
  /** Undefined if it is worth another try. */
  readonly end: TermEnd | undefined;
}

/** A run that did not get the Lease has waited long enough. */
function isOver({ once = false }: RunInput, { end }: TermResult): boolean {
  return end === "notTaken" || (once && end !== undefined);
}

/** What follows from an error while the Lease was to be taken. */
function explain({ log }: RunInput, error: unknown, before: RunResult): TermResult {
  if (hasCode(error, "Cancelled")) return { result: before, end: "notTaken" };
  log.error("the lease could not be taken", { error });
  // A run that has ticked is judged by its last tick: the next run may have the Lease already.
  const exitCode = before.last && isRetryable(error) ? before.exitCode : 1;
  return { result: { ...before, exitCode }, end: isRetryable(error) ? undefined : "notTaken" };
}

/** How the time under one Lease ended; `notTaken` if there was none. */
type TermEnd = "lost" | "handedOver" | "stopped" | "notTaken";

interface TermInput {
  readonly stop: AbortSignal;
  /** The result of the run so far. */
  readonly before: RunResult;
  readonly previous: TermEnd | undefined;
}

/** Ticks under one Lease, if it could be taken in time. Rejects if the cluster cannot say whose the Lease is. */
async function serveTerm(input: RunInput, { stop, before, previous }: TermInput): Promise<TermResult> {
  const { cluster, clock, leaseClock, log } = input;
  const patience = previous === "handedOver" ? await standBy(clock, stop) : stop;
  // A run that has had the Lease does not ask for it: two that do would hand it to and fro.
  const held = await acquireLease({ cluster, clock: leaseClock }, { ...input.lease, announces: previous === undefined }, patience);
  if (!held) {
    log.info("another process holds the lease", { lease: input.lease.name });
    return { result: before, end: "notTaken" };
  }
  const result = await tickUntil(input, { held, stop, before });
  return { result, end: held.lost.aborted ? "lost" : held.awaited.aborted ? "handedOver" : "stopped" };
}

/** Leaves the Lease to the next run. Resolves with a signal that fires when that run may be trusted to have it. */
async function standBy(clock: Clock, stop: AbortSignal): Promise<AbortSignal> {
  await clock.sleep(HANDOVER_MS, stop);
  const over = new AbortController();
  void clock.sleep(STANDBY_MS, stop).then(() => over.abort());
  return firstOfSignals(stop, over.signal);
}
