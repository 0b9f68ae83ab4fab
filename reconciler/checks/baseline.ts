/**
 * A check that compares: the value of its query, the candidate, against that of its baseline. Each must give one
 * series; values that cannot be compared are an error, never a success.
 */
import * as z from "zod";
import { queryError, type QueryAnswer } from "../../infra/prometheus/answer.ts";

/** A bound as it is written, a decimal number: the API conventions have no fractions. */
const Bound = z.string().transform((text, context) => {
  if (/^\d{1,15}(?:\.\d{1,15})?$/.test(text)) return Number(text);
  context.addIssue("no decimal number");
  return z.NEVER;
});

export const baselineFields = z
  .object({
    expr: z.string(),
    /** `BeforeRollout`: as it was when the rollout was first seen. */
    at: z.enum(["Now", "BeforeRollout"]).default("Now"),
    maxRatio: Bound.optional(),
    minRatio: Bound.optional(),
    maxDifference: Bound.optional(),
  })
  .refine(({ maxRatio, minRatio, maxDifference }) => (maxRatio ?? minRatio ?? maxDifference) !== undefined);

export type Baseline = z.output<typeof baselineFields>;

/** The answers to the candidate's query and to the baseline's, as one answer. */
export function compareAnswers(candidate: QueryAnswer, baseline: QueryAnswer, bounds: Baseline): QueryAnswer {
  const [value, base] = [readValue(candidate, "the query"), readValue(baseline, "the baseline")];
  if (typeof value !== "number") return value;
  if (typeof base !== "number") return base;
  if (base < 0 && (bounds.maxRatio ?? bounds.minRatio) !== undefined)
    return queryError("NotComparable", `the baseline is ${round(base)}, and there is no ratio to a number below 0`);
  return { kind: "Comparison", isWithin: isWithin(value, base, bounds), text: describe(value, base, bounds) };
}

/** The value of the only series, or why there is none. */
function readValue(answer: QueryAnswer, which: string): number | QueryAnswer {
  if (answer.kind === "Error") return queryError(answer.code, `${which}: ${answer.message}`);
  if (answer.kind !== "Vector") return answer;
  const { samples, value, warnings } = answer;
  if (warnings.length > 0) return queryError("NotComparable", `${which} has warnings: ${warnings.join("; ")}`);
  if (samples !== 1) return queryError("NotComparable", `${which} gives ${samples} series in place of one`);
  const number = Number(value ?? NaN);
  return Number.isFinite(number) ? number : queryError("NotComparable", `${which} gives ${value ?? "a histogram"}`);
}

/** All bounds that are set. A baseline of 0 has no ratio: there, only a candidate of 0 is within one. */
function isWithin(value: number, base: number, { maxRatio, minRatio, maxDifference }: Baseline): boolean {
  return (
    (maxRatio === undefined || isAtMost(value, maxRatio * base)) &&
    (minRatio === undefined || isAtMost(minRatio * base, value)) &&
    (maxDifference === undefined || isAtMost(value - base, maxDifference))
  );
}

/** Decimal bounds are no binary fractions: 0.3 is within 3 times 0.1. */
const isAtMost = (value: number, bound: number): boolean => value <= bound + Math.abs(bound) * 1e-12;

const BOUNDS = {
  maxRatio: (bound: number) => `at most ${bound} times`,
  minRatio: (bound: number) => `at least ${bound} times`,
  maxDifference: (bound: number) => `at most ${bound} more`,
} as const;

/** `0.02 against 0.01; at most 1.5 times is allowed`. */
function describe(value: number, base: number, bounds: Baseline): string {
  const keys = ["maxRatio", "minRatio", "maxDifference"] as const;
  const allowed = keys.flatMap((key) => (bounds[key] === undefined ? [] : [BOUNDS[key](bounds[key])]));
  return `${round(value)} against a baseline of ${round(base)}; ${allowed.join(" and ")} is allowed`;
}

const round = (value: number): string => String(Number(value.toPrecision(6)));
