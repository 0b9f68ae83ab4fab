/**
 * Which catch blocks and retries of the product have run, by V8's counts of blocks. Whatever is imported before
 * `startCoverage` is counted by whole functions at best.
 */
import { readFileSync } from "node:fs";
import { type Profiler, Session } from "node:inspector";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Node, parse } from "acorn";
import { changedSources } from "./load.ts";

/** A place in a file, with the name of its cell. */
interface Place {
  readonly cell: string;
  readonly offset: number;
  /** A second attempt: the function that begins here runs more often than the place. */
  readonly attempt?: number;
}

export interface Coverage {
  /** The cells that ran since the last call. */
  readonly take: () => ReadonlySet<string>;
  /** All cells of the files that were loaded so far. */
  readonly known: () => ReadonlySet<string>;
}

const ROOT = `${pathToFileURL(join(import.meta.dirname, "../..")).href}/`;
const PRODUCT = ["functions/", "reconciler/", "infra/"];

/** Of the files whose paths begin so. */
export function startCoverage(of: readonly string[] = PRODUCT): Coverage {
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  const files = new Map<string, ReturnType<typeof createFile>>();

  function read(): Map<string, readonly Profiler.FunctionCoverage[]> {
    let scripts: readonly Profiler.ScriptCoverage[] = [];
    // Within one thread the answer comes before `post` returns.
    session.post("Profiler.takePreciseCoverage", (_, { result }) => void (scripts = result));
    const own = scripts.filter(({ url }) => of.some((start) => url.startsWith(`${ROOT}${start}`)));
    for (const { url } of own) if (!files.has(url)) files.set(url, createFile(url));
    const found = new Map(own.map(({ url, functions }) => [url, functions]));
    for (const [url, file] of files) file.add(found.get(url) ?? []);
    return found;
  }

  return {
    take: () => new Set([...read().keys()].flatMap((url) => files.get(url)?.ran() ?? [])),
    known: () => new Set([...files.values()].flatMap((file) => file.places().map(({ cell }) => cell))),
  };
}

const keyOf = ({ ranges: [whole] }: Profiler.FunctionCoverage): string => `${whole?.startOffset}-${whole?.endOffset}`;
const contains = ({ startOffset, endOffset }: Profiler.CoverageRange, offset: number): boolean =>
  startOffset <= offset && offset < endOffset;
const sizeOf = ({ startOffset, endOffset }: Profiler.CoverageRange): number => endOffset - startOffset;

interface Named {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

const FUNCTIONS = new Set(["ArrowFunctionExpression", "FunctionDeclaration", "FunctionExpression"]);

/** The functions of a text that have a name, outer ones first. V8 names only those that it has compiled so far. */
function namesIn(source: string): readonly Named[] {
  const found: Named[] = [];
  visit(parse(stripTypeScriptTypes(source), { ecmaVersion: "latest", sourceType: "module" }), "");
  return found;

  /** `given` is what the parent calls it: a variable or a property. */
  function visit(node: Node, given: string): void {
    const fields = node as Node & Readonly<Record<string, unknown>>;
    const name = nameOf(fields["id"] ?? fields["key"]);
    if (FUNCTIONS.has(node.type) && (name || given))
      found.push({ name: name || given, start: node.start, end: node.end });
    for (const [key, value] of Object.entries(fields))
      for (const child of [value].flat())
        if (isNode(child)) visit(child, key === "init" || key === "value" ? name : "");
  }
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "type" in value;
const nameOf = (id: unknown): string => (isNode(id) && "name" in id && typeof id.name === "string" ? id.name : "");

function createFile(url: string) {
  const path = url.slice(ROOT.length);
  const source = changedSources.get(url) ?? readFileSync(fileURLToPath(url), "utf8");
  /** The latest counts of each function; those that did not run since the last call are not among the new ones. */
  const functions = new Map<string, Profiler.FunctionCoverage>();
  /** The counts since the last call. */
  let latest = new Map<string, Profiler.FunctionCoverage>();
  let places: readonly Place[] | undefined;
  let names: readonly Named[] | undefined;

  /** The innermost function around an offset: what V8 has not compiled yet is in none of its own. */
  const ownerOf = (offset: number): Profiler.FunctionCoverage | undefined =>
    [...functions.values()]
      .filter(({ ranges: [whole] }) => whole && contains(whole, offset))
      .toSorted(({ ranges: [a] }, { ranges: [b] }) => (a ? sizeOf(a) : 0) - (b ? sizeOf(b) : 0))[0];

  function countIn(own: Profiler.FunctionCoverage | undefined, offset: number): number {
    const around = own?.ranges.filter((range) => contains(range, offset)).toSorted((a, b) => sizeOf(a) - sizeOf(b));
    return around?.[0]?.count ?? 0;
  }

  function countNow(offset: number): number {
    const owner = ownerOf(offset);
    return countIn(owner && latest.get(keyOf(owner)), offset);
  }

  function placesOf(): readonly Place[] {
    names ??= namesIn(source);
    const named = (kind: string, offset: number): string => {
      const around = (names ?? []).filter(({ start, end }) => start <= offset && offset < end);
      return `${kind} ${path} ${around.map(({ name }) => name).join(".") || "-"}`;
    };
    const found = [
      ...[...source.matchAll(/\bcatch (?:\(\w+\) )?\{|\.catch\(\s*(?=(?:async )?\()/g)].map((match) => {
        const offset = match.index + match[0].length;
        return { cell: named("catch", offset), offset };
      }),
      ...[...source.matchAll(/\bretryOnConflict\(attempt,/g)].map(({ index }) => {
        const attempts = [...functions.values()].filter(({ functionName }) => functionName === "attempt");
        const starts = attempts.map(({ ranges: [whole] }) => whole?.startOffset ?? 0).filter((start) => start < index);
        return { cell: named("retry", index), offset: index, attempt: Math.max(...starts) };
      }),
    ];
    const seen = new Map<string, number>();
    return found.map((place) => {
      const times = (seen.get(place.cell) ?? 0) + 1;
      seen.set(place.cell, times);
      return times === 1 ? place : { ...place, cell: `${place.cell} ${times}` };
    });
  }

  return {
    add(found: readonly Profiler.FunctionCoverage[]): void {
      latest = new Map(found.map((one) => [keyOf(one), one]));
      for (const one of found) {
        const key = keyOf(one);
        if (!functions.has(key)) places = undefined;
        functions.set(key, one);
      }
    },
    places: (): readonly Place[] => (places ??= placesOf()),
    ran(): readonly string[] {
      return (places ??= placesOf())
        .filter(({ offset, attempt }) => countNow(attempt ?? offset) > (attempt === undefined ? 0 : countNow(offset)))
        .map(({ cell }) => cell);
    },
  };
}
