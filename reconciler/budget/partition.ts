/** The partition of a pod by its name [5.4]: Go's regular expressions, matched in linear time. */
import { RE2JS, RE2JSException } from "re2js";

/** The partition that a pod of this name belongs to; undefined if the name does not tell. */
export type PartitionOf = (podName: string) => string | undefined;

/** What is wrong with an object, in upstream's words. */
export interface Problem {
  readonly problem: string;
}

/** Compiling takes time by the size of the program, so that is bounded before; no real pattern comes near. */
const LONGEST_PATTERN = 1000;
const LARGEST_PROGRAM = 32_768;
// RE2 itself refuses nested repetitions of more than this in all.
const MOST_REPETITIONS = 1000;
const REPETITION = /\{(\d+)(?:,(\d*))?\}/g;

/** Compiles `pattern`, of which capture group `group` is the partition; group 1 if there is but one [5.4, 6.7]. */
export function compilePartition(pattern: string, group: number | undefined): PartitionOf | Problem {
  if (isTooLarge(pattern)) return { problem: "error parsing regexp: expression too large" };
  const regex = compile(`^${pattern}$`);
  if ("problem" in regex) return regex;
  const groups = regex.groupCount();
  if (groups === 0) return { problem: "regular expression requires at least one subexpression" };
  if (groups > 1 && group === undefined)
    return { problem: "regular expression has multiple subexpressions and requires podNameRegexGroup to be set" };
  const chosen = group ?? 1;
  if (chosen < 1 || chosen > groups) return { problem: "regular expression subexpression index out of range" };
  return (podName) => {
    const matcher = regex.matcher(podName);
    return matcher.find() ? matcher.group(chosen) || undefined : undefined;
  };
}

function isTooLarge(pattern: string): boolean {
  if (pattern.length > LONGEST_PATTERN) return true;
  const counts = [...pattern.matchAll(REPETITION)].map(([, least, most]) => Math.max(1, Number(most || least)));
  const repetitions = counts.reduce((product, count) => Math.min(product * count, MOST_REPETITIONS), 1);
  return pattern.length * repetitions > LARGEST_PROGRAM;
}

function compile(expression: string): RE2JS | Problem {
  try {
    return RE2JS.compile(expression);
  } catch (error) {
    if (error instanceof RE2JSException) return { problem: error.message };
    throw error;
  }
}
