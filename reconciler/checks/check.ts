/**
 * Checks: a query of Prometheus that is repeated until it has succeeded often enough in a row. A check waits for its
 * initial delay, then asks once a period; after errors it asks again sooner at first.
 *
 *   since --initial delay--> answer -> Success --period--> answer -> Success … successThreshold in a row: passed
 *                                   -> Failure --period--> the successes begin again … failureThreshold in a row: failed
 *                                   -> Error --5 s, 10 s, 20 s … at most the period--> the successes begin again
 *
 * All times in milliseconds since the epoch.
 */
import * as z from "zod";
import type { QueryAnswer } from "../../infra/prometheus/answer.ts";
import type { Baseline } from "./baseline.ts";

export interface CheckQuery {
  readonly expr: string;
  readonly url: string;
  readonly insecureSkipVerify?: boolean | undefined;
  readonly caBundle?: string | undefined;
  /** Name of a Secret in the object's own namespace. */
  readonly secretRef?: string | undefined;
}

/**
 * The meaning of an answer: `NoData` is an alert, which must not fire; `Data` is a condition, which must hold;
 * `WithinBaseline` is a number that is compared with another one.
 */
export type SuccessWhen = "NoData" | "Data" | "WithinBaseline";

export interface CheckSpec {
  readonly query: CheckQuery;
  readonly successWhen: SuccessWhen;
  readonly baseline?: Baseline | undefined;
  readonly initialDelaySeconds: number;
  readonly periodSeconds: number;
  /** Successes in a row; at least 1. */
  readonly successThreshold: number;
  /** Failures in a row; without it a check never fails finally. */
  readonly failureThreshold?: number | undefined;
}

/** The fields of a check that users write, wherever an object has checks. */
export const checkFields = z.object({
  name: z.string(),
  query: z.object({
    expr: z.string(),
    url: z.string(),
    insecureSkipVerify: z.boolean().optional(),
    caBundle: z.string().optional(),
    secretRef: z.string().optional(),
  }),
  successWhen: z.enum(["NoData", "Data"]),
  initialDelaySeconds: z.number().default(60),
  periodSeconds: z.number().default(60),
  successThreshold: z.number().default(3),
});

/** The answer to a query, and when it came. */
export type CheckAnswer = QueryAnswer & { readonly at: number };

export type CheckVerdict = "Success" | "Failure" | "Error";

/** The results of a check since it began, or began again. */
export interface Streak {
  /** In a row, up to the last answer. */
  readonly successes: number;
  readonly failures: number;
  readonly errors: number;
  /** When the last answer came; undefined before the first. */
  readonly lastAt?: number | undefined;
}

export const NO_STREAK: Streak = { successes: 0, failures: 0, errors: 0 };

/** An empty answer with warnings may lack data, and so does not mean that no alert fires. */
export function judgeAnswer({ successWhen }: Pick<CheckSpec, "successWhen">, answer: QueryAnswer): CheckVerdict {
  if (answer.kind === "Error") return "Error";
  if (answer.kind === "Comparison") return answer.isWithin ? "Success" : "Failure";
  if (successWhen === "WithinBaseline") return "Error";
  if (successWhen === "Data") return answer.samples > 0 ? "Success" : "Failure";
  if (answer.samples > 0) return "Failure";
  return answer.warnings.length > 0 ? "Error" : "Success";
}

/** An answer counts for two periods, and for a minute at least. */
const KEPT_MS = 60_000;

/** True if the last answer is missing, or too old to count at this time. */
export function isOld(
  { periodSeconds }: Pick<CheckSpec, "periodSeconds">,
  { lastAt }: Pick<Streak, "lastAt">,
  at: number,
): boolean {
  return lastAt === undefined || at - lastAt > Math.max(2 * periodSeconds * 1000, KEPT_MS);
}

/**
 * True if a recorded time is more than a minute ahead of now: the clock was turned back, or was that of another node.
 * Results from then would count for longer than they may, and the next check would be due far too late.
 */
export function isInFuture(at: number, now: number): boolean {
  return at - now > KEPT_MS;
}

/**
 * Adds the verdict of an answer. An answer that is not later than the last one was counted already. If the last one is
 * old, the counts begin again.
 */
export function addVerdict(
  before: Streak,
  verdict: CheckVerdict,
  { check, at }: { readonly check: Pick<CheckSpec, "periodSeconds">; readonly at: number },
): Streak {
  if (before.lastAt !== undefined && at <= before.lastAt) return before;
  const streak = isOld(check, before, at) ? NO_STREAK : before;
  return {
    successes: verdict === "Success" ? streak.successes + 1 : 0,
    failures: verdict === "Failure" ? streak.failures + 1 : 0,
    errors: verdict === "Error" ? streak.errors + 1 : 0,
    lastAt: at,
  };
}

/** True once the check has succeeded often enough in a row. */
export function hasPassed({ successThreshold }: Pick<CheckSpec, "successThreshold">, { successes }: Streak): boolean {
  return successes >= Math.max(1, successThreshold);
}

/** True once the check has failed often enough in a row. */
export function hasFailed({ failureThreshold }: Pick<CheckSpec, "failureThreshold">, { failures }: Streak): boolean {
  return failureThreshold !== undefined && failures >= Math.max(1, failureThreshold);
}

/** How urgent the next question of a check is. */
export interface Urgency {
  /** Milliseconds since the epoch. */
  readonly dueAt: number;
  /** The last answer was an error. */
  readonly isTroubled: boolean;
}

const FIRST_PAUSE_MS = 5000;
/** A period of 0 means as often as possible. */
const MIN_PAUSE_MS = 1000;
/** Keeps the pause a finite number. */
const MAX_DOUBLINGS = 20;

/** When the check is due: not before the initial delay after `since` is over. It may lie in the past. */
export function dueAt(
  spec: Pick<CheckSpec, "initialDelaySeconds" | "periodSeconds">,
  since: number,
  streak: Streak,
): number {
  const first = since + Math.max(0, spec.initialDelaySeconds) * 1000;
  return streak.lastAt === undefined ? first : Math.max(first, streak.lastAt + pauseMs(spec, streak));
}

/**
 * Milliseconds to the next answer: the period; after errors 5 s, doubled with each further one, and at most the period.
 */
function pauseMs({ periodSeconds }: Pick<CheckSpec, "periodSeconds">, { errors }: Streak): number {
  const period = Math.max(MIN_PAUSE_MS, periodSeconds * 1000);
  return errors === 0 ? period : Math.min(period, FIRST_PAUSE_MS * 2 ** Math.min(errors - 1, MAX_DOUBLINGS));
}
