/**
 * `npm run simulate:planted`: plants each bug of the mutation table and prints after how many seeds an oracle finds it.
 *
 *     play each seed without bugs -> its line never ran: out of reach
 *                                 -> it ran and would differ in none: not met
 *                                 -> it would differ in some: play these with it -> no violation: not found
 *                                                                                -> violations: found, from each on again
 *
 * A history in which the bug would not differ is the same with it, so it is counted and not played.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import type { Mutation } from "../mutation/mutation.ts";
import { dig } from "../emulator/objects.ts";
import { MUTATIONS } from "../mutation/table.ts";
import { readOrExit, requireWhole } from "./options.ts";
import { startDifferences } from "./planted/differences.ts";
import { describePlanted, type Planted, plantedOf } from "./planted.ts";

const USAGE = `npm run simulate:planted -- [words] [options]: plants bugs, and prints which an oracle finds. The bugs
are those of the mutation table whose sentence and file have all the words.

  --seeds N      in how many histories one looks where bugs would differ, 100 by default
  --from S       the first of these seeds, 0 by default
  --having PART  looks only at those that have this part, such as deletions, budget or nodes.bound: for bugs whose
                 line no other history runs; several parts with commas between them
  --plays N      how many of those in which it would differ are played with a bug, at most; 20 by default
  --finds N      ends with a bug once so many histories have found it, 3 by default
  --every N      only each Nth bug
  --rest SECONDS for which a settled world is watched, 30 by default
  --runs FILE    keeps there in which histories which bugs would differ, and reads it if it exists; several with commas
                 between them are read as one
  --help
`;
const OPTIONS = {
  seeds: { type: "string", default: "100" },
  from: { type: "string", default: "0" },
  having: { type: "string", default: "" },
  plays: { type: "string", default: "20" },
  finds: { type: "string", default: "3" },
  every: { type: "string", default: "1" },
  rest: { type: "string", default: "30" },
  runs: { type: "string" },
  help: { type: "boolean", default: false },
} as const;

const options = readOrExit(() => {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS });
  requireWhole(values, ["seeds", "from", "plays", "finds", "every", "rest"]);
  return { ...values, words: positionals };
}, USAGE);
/** Milliseconds for all histories of a bug, on a machine that others use as well: one that does not end is found. */
const ROW_MS = 3_600_000;
const chosen = MUTATIONS.filter(({ breaks, file }) =>
  options.words.every((word) => `${breaks} ${file}`.includes(word)),
).filter((_, i) => i % Number(options.every) === 0);
if (chosen.length === 0) {
  console.error(`no bug has all of these words: ${options.words.join(" ")}`);
  process.exit(2);
}
const [plant, simulate] = ["plant.ts", "simulate.ts"].map((name) => join(import.meta.dirname, name));

/** The histories without any bug. */
interface Runs {
  /** How many there are, with those that do not have the parts. */
  readonly seeds: number;
  /** The digest of each that goes well. */
  readonly digests: readonly (readonly [seed: number, digest: string])[];
  /** By the sentence of a bug the seeds that run its line. */
  readonly ran: Readonly<Record<string, readonly number[]>>;
  /** By the sentence of a bug the seeds in which it would differ. */
  readonly differed: Readonly<Record<string, readonly number[]>>;
}

async function playWithout(): Promise<Runs> {
  const differences = startDifferences(MUTATIONS);
  const [{ play }, { drawWholeShape }] = await Promise.all([import("./play.ts"), import("./whole-shape.ts")]);
  differences.take();
  const digests: [number, string][] = [];
  const ran: Record<string, number[]> = {};
  const differed: Record<string, number[]> = {};
  const parts = options.having.split(",").filter((part) => part !== "");
  const from = Number(options.from);
  for (let seed = from; seed < from + Number(options.seeds); seed++) {
    const { shape } = drawWholeShape(seed);
    if (!parts.every((part) => dig(shape, ...part.split(".")))) continue;
    const { violations, digest } = await play(seed, { restMs: Number(options.rest) * 1000 });
    const taken = differences.take();
    if (violations.length > 0) console.log(`seed ${seed} fails without any bug: ${violations[0]}`);
    else digests.push([seed, digest]);
    for (const [i, { breaks }] of MUTATIONS.entries()) {
      if (taken.ran.has(i)) (ran[breaks] ??= []).push(seed);
      if (taken.differed.has(i)) (differed[breaks] ??= []).push(seed);
    }
  }
  return { seeds: Number(options.seeds), digests, ran, differed };
}

/** Plays the first histories in which the bug would differ, with the bug planted. */
async function playWith({ breaks }: Mutation, { seeds, digests, ran, differed }: Runs): Promise<Planted> {
  const ranIn = ran[breaks]?.length ?? 0;
  if (ranIn === 0) return { result: "out of reach", seeds, what: "no seed runs this line" };
  const differing = new Set(differed[breaks]);
  const all = digests.filter(([seed]) => differing.has(seed));
  const played = all.slice(0, Number(options.plays));
  const counts = { seeds: played.length < all.length ? (played.at(-1)?.[0] ?? 0) + 1 : seeds, ran: ranIn };
  if (played.length === 0)
    return plantedOf({ ...counts, differed: 0, output: "", errors: "", ended: true, digests: new Map() });
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
  const ended = child.signalCode === null;
  return plantedOf({ ...counts, differed: differing.size, output, errors, ended, digests: new Map(played) });
}

async function readRuns(): Promise<Runs> {
  const files = options.runs?.split(",") ?? [];
  if (files.length > 0 && files.every((file) => existsSync(file)))
    return files.map((file) => JSON.parse(readFileSync(file, "utf8")) as Runs).reduce(joinRuns);
  const runs = await playWithout();
  if (files[0] !== undefined) writeFileSync(files[0], JSON.stringify(runs));
  return runs;
}

function joinRuns(one: Runs, other: Runs): Runs {
  const joined = (a: Runs["ran"], b: Runs["ran"]): Runs["ran"] =>
    Object.fromEntries(
      [...new Set([...Object.keys(a), ...Object.keys(b)])].map((key) => [key, [...(a[key] ?? []), ...(b[key] ?? [])]]),
    );
  return {
    seeds: one.seeds + other.seeds,
    digests: [...one.digests, ...other.digests],
    ran: joined(one.ran, other.ran),
    differed: joined(one.differed, other.differed),
  };
}

const runs = await readRuns();
const found: Planted[] = [];
for (const mutation of chosen) {
  const planted = await playWith(mutation, runs);
  found.push(planted);
  console.log(`${describePlanted(planted)}\t${mutation.breaks}\t${mutation.file}`);
}
const count = (result: Planted["result"]): number => found.filter((planted) => planted.result === result).length;
console.log(
  `${count("found")} of ${chosen.length} planted bugs were found, ${count("not found")} were not, ` +
    `and ${count("out of reach")} are out of reach`,
);
