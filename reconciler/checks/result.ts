/**
 * The result of a check: a summary of its answers since it began. The checks of gates and of PhasedRollouts go from
 * result to result here; each stores its results in a status of its own.
 *
 *   due --answer--> next result: successes, failures or errors in a row, due again --answer--> …
 *                       '--enough successes in a row, and the last answer is not old--> passing
 */
import * as z from "zod";
import type { QueryAnswer, QueryErrorCode } from "../../infra/prometheus/answer.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import {
  addVerdict,
  type CheckAnswer,
  type CheckSpec,
  type CheckVerdict,
  dueAt,
  hasPassed,
  isInFuture,
  isOld,
  judgeAnswer,
  NO_STREAK,
  type Streak,
  type Urgency,
} from "./check.ts";

interface CheckResult {
  readonly streak: Streak;
  readonly lastVerdict: CheckVerdict;
  /** The first series of the last answer, if it had any; of a comparison, both numbers. */
  readonly sample?: string | undefined;
  /** Why the last answer is an error. */
  readonly message?: string | undefined;
}

/** One of the checks of an object that may have several. */
export interface NamedCheck extends CheckSpec {
  readonly name: string;
}

export interface NamedResult extends CheckResult {
  readonly name: string;
}

/** A check, and when to ask it. */
export type PlannedCheck = NamedCheck & Urgency;

/** Answers by the name of their check. */
export type Answers = ReadonlyMap<string, CheckAnswer>;

/** Whether an error counts as a success. */
export type OnError = "Wait" | "Proceed";

/** The result after an answer. */
export function nextResult(
  check: Pick<CheckSpec, "successWhen" | "periodSeconds">,
  before: Streak,
  { answer, onError = "Wait" }: { readonly answer: CheckAnswer; readonly onError?: OnError },
): CheckResult {
  const verdict = judgeAnswer(check, answer);
  const counted = verdict === "Error" && onError === "Proceed" ? "Success" : verdict;
  return {
    lastVerdict: verdict,
    sample: sampleOf(answer),
    message: verdict === "Error" ? describeError(answer) : undefined,
    streak: addVerdict(before, counted, { check, at: answer.at }),
  };
}

function sampleOf(answer: QueryAnswer): string | undefined {
  if (answer.kind === "Vector") return answer.sample;
  return answer.kind === "Comparison" ? answer.text : undefined;
}

function describeError(answer: QueryAnswer): string {
  if (answer.kind === "Error") return `${answer.code}: ${answer.message}`;
  return answer.kind === "Vector" && answer.warnings.length > 0
    ? `no data, but with warnings: ${answer.warnings.join("; ")}`
    : "no baseline to compare with";
}

/** The codes of errors by which a query will never get an answer, as it is written. */
export const REFUSALS: ReadonlySet<string> = new Set<QueryErrorCode>(["BadQuery", "NotAVector"]);

/** True if the check's last answer says that its query will never get one, as it is written. */
export const isCheckRefused = ({ lastVerdict, message = "" }: Pick<CheckResult, "lastVerdict" | "message">): boolean =>
  lastVerdict === "Error" && REFUSALS.has(message.slice(0, message.indexOf(":")));

/** The results after these answers, in the order of the checks. A check without any answer has no result. */
export function nextResults(
  checks: readonly NamedCheck[],
  results: readonly NamedResult[],
  { answers, onError = "Wait" }: { readonly answers: Answers; readonly onError?: OnError },
): NamedResult[] {
  return checks.flatMap((check) => {
    const { name } = check;
    const answer = answers.get(name);
    if (answer) return [{ name, ...nextResult(check, streakOf(check, results), { answer, onError }) }];
    return results.find((result) => result.name === name) ?? [];
  });
}

/** The answers of a check so far. */
export function streakOf({ name }: Pick<NamedCheck, "name">, results: readonly NamedResult[]): Streak {
  return results.find((result) => result.name === name)?.streak ?? NO_STREAK;
}

/** When to ask each check; initial delays begin at `since`, in milliseconds since the epoch. */
export function planChecks(
  checks: readonly NamedCheck[],
  results: readonly NamedResult[],
  since: number,
): PlannedCheck[] {
  return checks.map((check) => {
    const isTroubled = results.some(({ name, lastVerdict }) => name === check.name && lastVerdict === "Error");
    return { ...check, dueAt: dueAt(check, since, streakOf(check, results)), isTroubled };
  });
}

/** True if the check has succeeded often enough in a row, and not too long ago. */
export function isPassing(check: CheckSpec, streak: Streak, now: number): boolean {
  return hasPassed(check, streak) && !isOld(check, streak, now);
}

/** Leaves out results whose time is in the future. */
export function dropFuture(results: readonly NamedResult[], now: number): NamedResult[] {
  return results.filter(({ streak: { lastAt = now } }) => !isInFuture(lastAt, now));
}

const count = z.int().min(0).default(0);

/** A result as a status stores it. */
export const storedResult = z.object({
  name: z.string(),
  lastVerdict: z.enum(["Success", "Failure", "Error"]),
  /** RFC 3339. */
  lastTime: z.string(),
  sample: z.string().optional(),
  message: z.string().optional(),
  consecutiveSuccesses: count,
  consecutiveFailures: count,
  consecutiveErrors: count,
});
export type StoredResult = z.output<typeof storedResult>;

/** Reads stored results. One that is older than `since`, or without a time, counts as none. */
export function readResults(stored: readonly StoredResult[], since: number): readonly NamedResult[] {
  return stored.flatMap(({ name, lastVerdict, sample, message, ...read }) => {
    const lastAt = parseTimestamp(read.lastTime);
    if (lastAt === undefined || lastAt < since) return [];
    const streak = {
      successes: read.consecutiveSuccesses,
      failures: read.consecutiveFailures,
      errors: read.consecutiveErrors,
      lastAt,
    };
    return [{ name, lastVerdict, sample, message, streak }];
  });
}

/** The result as it is stored. */
export function formatResult({ name, lastVerdict, sample, message, streak }: NamedResult): StoredResult {
  return {
    name,
    lastVerdict,
    lastTime: formatTimestamp(streak.lastAt ?? 0),
    ...(sample !== undefined && { sample }),
    ...(message !== undefined && { message }),
    consecutiveSuccesses: streak.successes,
    consecutiveFailures: streak.failures,
    consecutiveErrors: streak.errors,
  };
}
