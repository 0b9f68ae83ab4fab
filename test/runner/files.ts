/**
 * Which test files share a process, which have one of their own, and which a control plane takes: by names and imports,
 * not by a list.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

/** What belongs to the whole process, or leaves it: a file that reaches one of these through `test/` runs alone. */
const OWN_PROCESS: readonly RegExp[] = [
  /\bfrom "node:(?:child_process|cluster|worker_threads)"/,
  /\bfrom "(?:playwright-core|node:inspector)"/,
  /\bfrom "[./]*infra\/build\.ts"/,
  /\b(?:Object\.assign\(|delete )process\.env\b|\bprocess\.env(?:\.\w+|\[[^\]]+\]) = /,
  /\bObject\.assign\(globalThis\b/,
  /\bprocess\.(?:chdir|exit|abort)\(|\bprocess\.exitCode = /,
];
/** Who imports it has counts that only `--all` plays whole. */
const COUNTS = join(ROOT, "test/runs.ts");

/** Who imports it starts entry points as processes. */
const ENTRIES = join(ROOT, "test/entries.ts");

const IMPORT = /\bfrom "(\.[^"]+\.ts)"|\bimport\("(\.[^"]+\.ts)"\)/g;

interface Source {
  /** Paths of what it imports from `test/`. */
  readonly imports: readonly string[];
  readonly isOwn: boolean;
}

const sources = new Map<string, Source>();

function sourceOf(path: string): Source {
  const known = sources.get(path);
  if (known) return known;
  const text = readFileSync(path, "utf8");
  const named = [...text.matchAll(IMPORT)].map(([, from, dynamic]) => join(dirname(path), from ?? dynamic ?? ""));
  const imports = named.filter((other) => other.startsWith(join(ROOT, "test/")) && existsSync(other));
  const source = { imports, isOwn: OWN_PROCESS.some((sign) => sign.test(text)) };
  sources.set(path, source);
  return source;
}

/** `path` and every file of `test/` that it imports, directly or not. */
function reach(path: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  for (const other of sourceOf(path).imports) reach(other, seen);
  return seen;
}

/** The test files by glob patterns or paths, relative to the root, in the order of their names. */
export const findTests = (patterns: readonly string[]): string[] =>
  globSync(patterns, { cwd: ROOT, exclude: ["node_modules"] }).toSorted();

/** Whether a test file, relative to the root, needs a process of its own. */
export const needsOwnProcess = (file: string): boolean =>
  [...reach(join(ROOT, file))].some((path) => sourceOf(path).isOwn);

/**
 * Whether a test file is left out of a short run: with processes of ours, a browser, a shell, an image or another
 * program it tries what a user has.
 */
const isEndToEnd = (file: string): boolean => file.endsWith(".e2e.test.ts");

/** Whether a test file has counts that a short run reduces. */
export const isCounted = (file: string): boolean => reach(join(ROOT, file)).has(COUNTS);

/** Whether a test file starts entry points as processes. */
export const startsEntries = (file: string): boolean => reach(join(ROOT, file)).has(ENTRIES);

/** Whether `npm test` plays it, whole or with fewer cases. */
export const isShort = (file: string): boolean => !isEndToEnd(file);

/** Whether `npm test` leaves it out, or plays fewer of its cases. */
export const isInRest = (file: string): boolean => isEndToEnd(file) || isCounted(file);

/** Of those with a process of their own in a short run, the longest: it plays in real time. */
const IN_REAL_TIME = /^test\/demo\b/;

/** The longest come first, and those whose counts are reduced: what is left at the end is short. */
export const longFirst = (files: readonly string[]): string[] => {
  const rank = (file: string): number => (isEndToEnd(file) || IN_REAL_TIME.test(file) ? 0 : isCounted(file) ? 1 : 2);
  return files.toSorted((a, b) => rank(a) - rank(b));
};

const REAL_NODE = /^test\/cluster\/real-node\//;
/** The longest of the others, up to 11 minutes a file: begun last, one would run alone at the end. */
const LONG = /^test\/cluster\/nodes\//;

/** The tests on a real cluster that a control plane may take, in this order. */
export function filesFor(files: readonly string[], hasRealNode: boolean): string[] {
  const rank = (file: string): number => [REAL_NODE, LONG, /./].findIndex((kind) => kind.test(file));
  return files
    .filter((file) => hasRealNode || !REAL_NODE.test(file))
    .toSorted((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}
