/**
 * `npm run simulate:planted`: plants each bug of the mutation table and prints after how many seeds an oracle finds it.
 *
 *     out of reach by its file -> why
 *     where does each seed come? -> its line never ran: out of reach
 *                                -> it ran in some: play these with it -> no violation: not found
 *                                                                      -> violations: found, from each of them on again
 *
 * A history that does not run the line is the same with the bug, so it is counted and not played.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { locate, type Mutation } from "../mutation/mutation.ts";
import { dig } from "../emulator/objects.ts";
import { MUTATIONS } from "../mutation/table.ts";
import { startCoverage } from "./coverage.ts";
import { readOrExit, requireWhole } from "./options.ts";
import { describePlanted, formatPlanted, parsePlanted, type Planted, plantedOf, whyOutOfReach } from "./planted.ts";

const USAGE = `npm run simulate:planted -- [words] [options]: plants bugs, and prints which an oracle finds. The bugs
are those of the mutation table whose sentence and file have all the words.

  --seeds N      of how many histories one looks where they come, 100 by default
  --having PART  looks only at those that have this part, such as deletions, budget or nodes.lifecycle: for bugs whose
                 line no other history runs; several parts with commas between them
  --plays N      how many of those that run its line are played with a bug, at most; 20 by default
  --finds N      ends with a bug once so many histories have found it, 3 by default
  --every N      only each Nth bug
  --new          only bugs that planted.txt does not have
  --rest SECONDS for which a settled world is watched, 30 by default
  --runs FILE    keeps there which histories run which lines, and reads it if it exists
  --write        writes planted.txt; what it has of other bugs stays
  --help
`;
const OPTIONS = {
  seeds: { type: "string", default: "100" },
  having: { type: "string", default: "" },
  plays: { type: "string", default: "20" },
  finds: { type: "string", default: "3" },
  every: { type: "string", default: "1" },
  new: { type: "boolean", default: false },
  rest: { type: "string", default: "30" },
  runs: { type: "string" },
  write: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

const options = readOrExit(() => {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS });
  requireWhole(values, ["seeds", "plays", "finds", "every", "rest"]);
  return { ...values, words: positionals };
}, USAGE);
/** Milliseconds for all histories of a bug, on a machine that others use as well: one that does not end is found. */
const ROW_MS = 3_600_000;
const ROOT = join(import.meta.dirname, "../..");
const TABLE = join(import.meta.dirname, "planted.txt");
const readTable = (): Map<string, Planted> =>
  existsSync(TABLE) ? parsePlanted(readFileSync(TABLE, "utf8")) : new Map<string, Planted>();
const known = options.new ? readTable() : new Map<string, Planted>();
const chosen = MUTATIONS.filter(
  ({ breaks, file }) => !known.has(breaks) && options.words.every((word) => `${breaks} ${file}`.includes(word)),
).filter((_, i) => i % Number(options.every) === 0);
if (chosen.length === 0) {
  console.error(`no bug has all of these words: ${options.words.join(" ")}`);
  process.exit(2);
}
const [plant, simulate] = ["plant.ts", "simulate.ts"].map((name) => join(import.meta.dirname, name));

/** The histories without any bug. */
interface Runs {
  /** The digest of each that goes well. */
  readonly digests: readonly (readonly [seed: number, digest: string])[];
  /** By the sentence of a bug the seeds that run its line. */
  readonly seeds: Readonly<Record<string, readonly number[]>>;
}

async function playWithout(): Promise<Runs> {
  const coverage = startCoverage();
  const { play } = await import("./play.ts");
  coverage.take();
  const digests: [number, string][] = [];
  const seeds: Record<string, number[]> = {};
  const places = MUTATIONS.map((mutation) => ({
    ...mutation,
    at: locate(readFileSync(join(ROOT, mutation.file), "utf8"), mutation)?.index ?? -1,
  }));
  const parts = options.having.split(",").filter((part) => part !== "");
  const { drawWholeShape } = await import("./whole-shape.ts");
  for (let seed = 0; seed < Number(options.seeds); seed++) {
    const { shape } = drawWholeShape(seed);
    if (!parts.every((part) => dig(shape, ...part.split(".")))) continue;
    const { violations, digest } = await play(seed, { restMs: Number(options.rest) * 1000 });
    coverage.take();
    if (violations.length > 0) console.log(`seed ${seed} fails without any bug: ${violations[0]}`);
    else digests.push([seed, digest]);
    for (const { breaks, file, at } of places) if (coverage.hasRun(file, at)) (seeds[breaks] ??= []).push(seed);
  }
  return { digests, seeds };
}

/** Plays the first histories that run the line, with the bug planted. */
async function playWith({ breaks }: Mutation, { digests, seeds }: Runs): Promise<Planted> {
  const running = new Set(seeds[breaks]);
  const all = digests.filter(([seed]) => running.has(seed));
  const played = all.slice(0, Number(options.plays));
  const last = played.length < all.length ? (played.at(-1)?.[0] ?? 0) + 1 : Number(options.seeds);
  if (played.length === 0) return { result: "out of reach", seeds: last, what: "no seed runs this line" };
  const list = played.map(([seed]) => seed).join(",");
  const args = ["--import", plant, simulate, "--seed", list, "--rest", options.rest, "--finds", options.finds];
  const child = spawn(process.execPath, args as string[], {
    // Half of the start goes into reading what no bug changes.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), "zonewise-planted"), ...process.env, ZONEWISE_PLANT: breaks },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: ROW_MS,
    killSignal: "SIGKILL",
  });
  // Its output may end before it is known how the process ended.
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return plantedOf({ output, errors, ended: child.signalCode === null, seeds: last, digests: new Map(played) });
}

async function readRuns(): Promise<Runs> {
  if (options.runs !== undefined && existsSync(options.runs))
    return JSON.parse(readFileSync(options.runs, "utf8")) as Runs;
  const runs = await playWithout();
  if (options.runs !== undefined) writeFileSync(options.runs, JSON.stringify(runs));
  return runs;
}

const runs = await readRuns();
const found: Planted[] = [];
for (const mutation of chosen) {
  const why = whyOutOfReach(mutation);
  const planted =
    why === undefined ? await playWith(mutation, runs) : ({ result: "out of reach", seeds: 0, what: why } as const);
  found.push(planted);
  console.log(`${describePlanted(planted)}\t${mutation.breaks}`);
  // Another process may have written it meanwhile.
  if (options.write) writeFileSync(TABLE, formatPlanted(readTable().set(mutation.breaks, planted), MUTATIONS));
}
const count = (result: Planted["result"]): number => found.filter((planted) => planted.result === result).length;
console.log(
  `${count("found")} of ${chosen.length} planted bugs were found, ${count("not found")} were not, ` +
    `and ${count("out of reach")} are out of reach`,
);
