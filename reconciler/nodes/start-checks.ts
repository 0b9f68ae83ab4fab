/**
 * Checks of Prometheus that must have passed before a node starts. They are asked while a node could start, and never
 * hold one that is active.
 *
 *   a node could start, or an attempt has ended --initial delay--> answers --each check has passed, and not long ago--> nodes start
 *
 * The results are in the policy's status: a process may die at any time. A policy that has changed asks again.
 */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import {
  addVerdict,
  type CheckAnswer,
  type CheckSpec,
  dueAt,
  hasPassed,
  isOld,
  judgeAnswer,
  NO_STREAK,
  type Streak,
  type Urgency,
} from "../checks/check.ts";
import type { Policy } from "./policy.ts";
import type { StartCheckResult, StartChecks } from "./policy-status.ts";
import type { Skip, StartCheckAnswers } from "./snapshot.ts";

export interface NamedCheck extends CheckSpec {
  readonly name: string;
}

export type DueStartCheck = NamedCheck & Urgency;

type CheckedPolicy = Pick<Policy, "checks" | "generation" | "status">;

/**
 * The results that count at `now`; none if an attempt has just ended (`ended`), or if the policy has changed. Undefined
 * without checks.
 */
export function currentChecks(
  { checks, generation, status }: CheckedPolicy,
  now: number,
  ended: boolean,
): StartChecks | undefined {
  if (checks.length === 0) return undefined;
  const since = parseTimestamp(status.checks?.since ?? "");
  // A stored time in the future was written by a clock that ran ahead.
  if (!status.checks || since === undefined || since > now || ended || generation !== status.observedGeneration)
    return { since: formatTimestamp(now), results: [] };
  return {
    ...status.checks,
    results: status.checks.results.filter(({ lastTime }) => (parseTimestamp(lastTime) ?? now) <= now),
  };
}

/** The checks to ask now. */
export function dueChecks({ checks }: Pick<Policy, "checks">, current: StartChecks, now: number): DueStartCheck[] {
  const since = parseTimestamp(current.since) ?? now;
  const planned = checks.map((check) => {
    const streak = streakOf(check, current);
    return { ...check, dueAt: dueAt(check, since, streak), isTroubled: streak.errors > 0 };
  });
  return planned.filter((check) => check.dueAt <= now);
}

/** The results with these answers. */
export function addAnswers(
  { checks }: Pick<Policy, "checks">,
  current: StartChecks,
  answers: StartCheckAnswers,
): StartChecks {
  const results = checks.flatMap((check) => {
    const before = current.results.find(({ name }) => name === check.name);
    const answer = answers.get(check.name);
    if (!answer) return before ? [before] : [];
    return [resultOf(check, answer, streakOf(check, current))];
  });
  return { ...current, results };
}

function resultOf(check: NamedCheck, answer: CheckAnswer, before: Streak): StartCheckResult {
  const verdict = judgeAnswer(check, answer);
  const { successes, failures, errors } = addVerdict(before, verdict, { check, at: answer.at });
  const text =
    answer.kind === "Error" ? { message: answer.message } : answer.sample !== undefined && { sample: answer.sample };
  return {
    name: check.name,
    lastVerdict: verdict,
    lastTime: formatTimestamp(answer.at),
    consecutiveSuccesses: successes,
    consecutiveFailures: failures,
    consecutiveErrors: errors,
    ...text,
  };
}

function streakOf({ name }: NamedCheck, { results }: StartChecks): Streak {
  const found = results.find((result) => result.name === name);
  if (!found) return NO_STREAK;
  const { consecutiveSuccesses: successes, consecutiveFailures: failures, consecutiveErrors: errors, lastTime } = found;
  return { successes, failures, errors, totalFailures: failures, lastAt: parseTimestamp(lastTime) };
}

/**
 * Why no node starts: the first check that fails, otherwise the first without an answer, otherwise the first that has
 * not passed yet.
 */
export function whyChecksHold(
  { checks }: Pick<Policy, "checks">,
  current: StartChecks,
  now: number,
): Omit<Skip, "node"> | undefined {
  const held = checks.filter((check) => {
    const streak = streakOf(check, current);
    return !hasPassed(check, streak) || isOld(check, streak, now);
  });
  const skips = held.map((check) => describe(check, current));
  return ["CheckFailing", "CheckUnreachable", "CheckPending"]
    .map((wanted) => skips.find(({ reason }) => reason === wanted))
    .find(Boolean);
}

function describe({ name, successThreshold }: NamedCheck, { results }: StartChecks): Omit<Skip, "node"> {
  const {
    lastVerdict,
    sample = "no data",
    message = "",
    consecutiveSuccesses = 0,
  } = results.find((result) => result.name === name) ?? {};
  if (lastVerdict === "Failure") return { reason: "CheckFailing", message: `check ${name} fails: ${sample}` };
  if (lastVerdict === "Error")
    return { reason: "CheckUnreachable", message: `check ${name} has no answer: ${message || "partial data"}` };
  return {
    reason: "CheckPending",
    message: `check ${name} has succeeded ${consecutiveSuccesses} of ${successThreshold} times in a row`,
  };
}
