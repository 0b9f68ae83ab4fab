/** The partition of a pod by its name (§5.4): Go's regular expressions, matched in linear time. */
import { RE2JS, RE2JSException } from "re2js";
import { onceForLast } from "../../infra/once.ts";

/** The partition that a pod of this name belongs to; undefined if the name does not tell. */
export type PartitionOf = (podName: string) => string | undefined;

/** A problem of an object, in the original's words. */
export interface BudgetProblem {
  readonly problem: string;
}

/**
 * Matching takes time by the length of the name times the size of the program: up to this size at most some
 * milliseconds for a name of 253 characters. Patterns in use have some 30 instructions.
 */
const MAX_INSTRUCTIONS = 300;
/** In characters. */
const MAX_LENGTH = 256;
/**
 * Compiling takes time in proportion to the length of what a pattern repeats: up to this length some 30 ms. Counts within
 * counts multiply, so all are taken to be.
 */
const MAX_REPEATED_LENGTH = 20_000;
const COUNT = /\{(?<least>\d+)(?:,(?<most>\d*))?\}/g;

const TOO_LARGE: BudgetProblem = {
  problem: `error parsing regexp: expression too large: podNamePartitionRegex may have ${MAX_LENGTH} characters, ${MAX_REPEATED_LENGTH} with what it repeats by counts, and ${MAX_INSTRUCTIONS} instructions at most`,
};

/**
 * Matches each form of a character beyond ASCII: the character itself, its number in hexadecimal or octal, or a class
 * of Unicode. Ranges of such characters have large tables, and to fold their case takes milliseconds each. An escape
 * is taken whole, so that `\\p` is none.
 */
const ESCAPE_OR_BEYOND =
  /(?<beyond>[\x80-\uffff]|\\[pP]|\\x[89a-f][0-9a-f]|\\x\{0*(?:[89a-f][0-9a-f]|[1-9a-f][0-9a-f]{2,})|\\[2-7][0-7]{2})|\\[^]/gi;
const BEYOND_ASCII: BudgetProblem = {
  problem:
    "error parsing regexp: invalid character: podNamePartitionRegex may name ASCII characters only, as names of pods have no others",
};

/** A pattern, and the capture group that is the partition. */
interface Pattern {
  readonly pattern: string;
  readonly group: number | undefined;
}

/** Clusters have one or two patterns. */
const MAX_PATTERNS = 100;

/** The patterns that were used last stay compiled. */
const compileOnce = onceForLast(MAX_PATTERNS, compile, ({ pattern, group }) => `${group} ${pattern}`);

/** Compiles `pattern`; its capture group `group` is the partition, or group 1 if there is only one (§5.4, §6.7). */
export function compilePartition(pattern: string, group: number | undefined): PartitionOf | BudgetProblem {
  return pattern.length > MAX_LENGTH ? TOO_LARGE : compileOnce({ pattern, group });
}

function compile({ pattern, group }: Pattern): PartitionOf | BudgetProblem {
  if (isBeyondAscii(pattern)) return BEYOND_ASCII;
  if (repeatedLength(pattern) > MAX_REPEATED_LENGTH) return TOO_LARGE;
  try {
    const regex = RE2JS.compile(`^${pattern}$`);
    if (regex.programSize() > MAX_INSTRUCTIONS) return TOO_LARGE;
    const chosen = chooseGroup(regex.groupCount(), group);
    if (typeof chosen === "object") return chosen;
    return remember((podName) => {
      const matcher = regex.matcher(podName);
      return matcher.find() ? matcher.group(chosen) || undefined : undefined;
    });
  } catch (error) {
    if (error instanceof RE2JSException) return { problem: error.message };
    throw error;
  }
}

/** Takes what only looks like a count for one, as in a class. */
function repeatedLength(pattern: string): number {
  const counts = [...pattern.matchAll(COUNT)].map(({ groups }) => Number(groups?.["most"] || groups?.["least"]));
  return counts.reduce((length, count) => length * Math.max(1, count), pattern.length);
}

function isBeyondAscii(pattern: string): boolean {
  return [...pattern.matchAll(ESCAPE_OR_BEYOND)].some(({ groups }) => groups?.["beyond"] !== undefined);
}

/** The most names that are remembered for a pattern. */
const MAX_NAMES = 5000;

/** Requests that are decided together ask about the same peers. */
function remember(partitionOf: PartitionOf): PartitionOf {
  const known = new Map<string, string | undefined>();
  return (podName) => {
    if (known.has(podName)) return known.get(podName);
    const partition = partitionOf(podName);
    if (known.size < MAX_NAMES) known.set(podName, partition);
    return partition;
  };
}

function chooseGroup(count: number, group: number | undefined): number | BudgetProblem {
  if (count === 0) return { problem: "regular expression requires at least one subexpression" };
  if (count > 1 && group === undefined)
    return { problem: "regular expression has multiple subexpressions and requires podNameRegexGroup to be set" };
  const chosen = group ?? 1;
  return chosen < 1 || chosen > count ? { problem: "regular expression subexpression index out of range" } : chosen;
}
