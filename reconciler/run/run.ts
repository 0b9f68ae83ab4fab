/**
 * One run of the reconciler: take the Lease, tick until the next run waits for it or the time budget is spent, release
 * it.
 *
 *   wait for the Lease -> tick -> acted, or something changed: next tick at once; otherwise after the interval -> ... -> release -> exit code
 *     ^                                                                                                             |
 *     +-- it is free after all, as the next run died <-- stand by for a while <-- the next run waits: handed over --+
 */
import { firstOfSignals, type Clock } from "../../infra/clock.ts";
import { hasCode, isRetryable } from "../../infra/errors.ts";
import { acquireLease } from "../../infra/kubernetes/lease.ts";
import type { GroupMemory } from "../report/log-lines.ts";
import { type RunInput, type RunResult, tickWhileLeader } from "./session.ts";

/** Milliseconds between a lost Lease and the next attempt. */
const PAUSE_MS = 1000;

/**
 * After a handover: the time that the next run has to take the Lease, and then the time in which it may prove to be
 * free again.
 */
const HANDOVER_MS = 2000;
const STANDBY_MS = 1000;

/** Runs until another run has taken over, `stop` fires or the time budget is spent; never rejects. */
export async function run(given: RunInput): Promise<RunResult> {
  const input = { memory: new Map<string, GroupMemory>(), ...given };
  const { clock, log } = input;
  const ended = new AbortController();
  const stop = firstOfSignals(input.stop, ended.signal);
  const budget = clock.sleep(input.budgetMs, stop).then(() => ended.abort());
  let result: RunResult = { exitCode: 0, last: undefined };
  let previous: SessionEnd | undefined;
  let leasesLost = 0;
  while (!stop.aborted) {
    const session = await serveSession(input, { stop, before: result, previous }).catch((error: unknown) =>
      explain(input, error, result),
    );
    result = session.result;
    previous = session.end ?? previous;
    if (session.end === "lost") leasesLost++;
    if (isOver(input, session)) ended.abort();
    if (session.end === "lost" || session.end === undefined) await clock.sleep(PAUSE_MS, stop);
  }
  await budget;
  if (leasesLost === 0 || result.last) return result;
  log.error("no tick was made: each lease was lost before", { lease: input.lease.name, leasesLost });
  return { ...result, exitCode: 1 };
}

interface SessionResult {
  readonly result: RunResult;
  /** Undefined if it is worth another try. */
  readonly end: SessionEnd | undefined;
}

/** A run that did not get the Lease has waited long enough. */
function isOver({ once = false }: RunInput, { end }: SessionResult): boolean {
  return end === "notTaken" || (once && end !== undefined);
}

/** The result of a session whose Lease could not be taken. */
function explain({ log }: RunInput, error: unknown, before: RunResult): SessionResult {
  if (hasCode(error, "Cancelled")) return { result: before, end: "notTaken" };
  log.error("the lease could not be taken", { error });
  // An API server that has just started knows no roles yet: a right that this run has had will be there again.
  const mayPass = isRetryable(error) || (before.last !== undefined && hasCode(error, "Forbidden"));
  // A run that has ticked is judged by its last tick: the next run may have the Lease already.
  const exitCode = before.last && mayPass ? before.exitCode : 1;
  return { result: { ...before, exitCode }, end: mayPass ? undefined : "notTaken" };
}

/** How the time under one Lease ended; `notTaken` if there was none. */
type SessionEnd = "lost" | "handedOver" | "stopped" | "notTaken";

interface SessionInput {
  readonly stop: AbortSignal;
  readonly before: RunResult;
  readonly previous: SessionEnd | undefined;
}

/** Ticks under one Lease, if it could be taken in time. Rejects if the holder of the Lease cannot be read. */
async function serveSession(input: RunInput, { stop, before, previous }: SessionInput): Promise<SessionResult> {
  const { cluster, clock, log } = input;
  const signal = previous === "handedOver" ? await standBy(clock, stop) : stop;
  // A run that has had the Lease does not ask for it again: two such runs would hand it to and fro.
  const held = await acquireLease({ cluster, clock }, { ...input.lease, announces: previous === undefined }, signal);
  if (!held) {
    log.info("another process holds the lease", { lease: input.lease.name });
    return { result: before, end: "notTaken" };
  }
  const result = await tickWhileLeader(input, { held, stop, before });
  return { result, end: held.lost.aborted ? "lost" : held.awaited.aborted ? "handedOver" : "stopped" };
}

/** Leaves the Lease to the next run. Resolves with a signal that fires when that run may be trusted to have it. */
async function standBy(clock: Clock, stop: AbortSignal): Promise<AbortSignal> {
  await clock.sleep(HANDOVER_MS, stop);
  const over = new AbortController();
  void clock.sleep(STANDBY_MS, stop).then(() => over.abort());
  return firstOfSignals(stop, over.signal);
}
