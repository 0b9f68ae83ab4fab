/**
 * `npm run simulate:planted`: plants each bug of the mutation table, plays histories with it, and prints the first
 * violation that an oracle finds.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { MUTATIONS } from "../mutation/table.ts";
import { readOrExit, requireWhole } from "./options.ts";

const USAGE = `npm run simulate:planted -- [words] [options]: plants bugs, and prints which an oracle finds. The bugs
are those of the mutation table whose sentence and file have all the words.

  --seeds N       how many histories are played with a bug, at most; 20 by default
  --from S        the first of these seeds, 0 by default
  --every N       only each Nth bug
  --rest SECONDS  for which a settled world is watched, 30 by default
  --help
`;
const OPTIONS = {
  seeds: { type: "string", default: "20" },
  from: { type: "string", default: "0" },
  every: { type: "string", default: "1" },
  rest: { type: "string", default: "30" },
  help: { type: "boolean", default: false },
} as const;

const options = readOrExit(() => {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS });
  requireWhole(values, ["seeds", "from", "every", "rest"]);
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
const [plant = "", simulate = ""] = ["plant.ts", "simulate.ts"].map((name) => join(import.meta.dirname, name));
const { seeds, from, rest } = options;
const args = ["--import", plant, simulate, "--seeds", seeds, "--from", from, "--rest", rest, "--finds", "1"];

/** What shows the bug: the first violation, or how it keeps a history from its end. */
async function play(breaks: string): Promise<string | undefined> {
  const child = spawn(process.execPath, args, {
    // Half of the start goes into reading what no bug changes.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), "zonewise-planted"), ...process.env, ZONEWISE_PLANT: breaks },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: ROW_MS,
    killSignal: "SIGKILL",
  });
  // Its output may end before it is known how the process ended.
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  if (child.exitCode === 0) return undefined;
  const [, seed, violation] = /^seed (\d+): .*\n {2}(.*)$/m.exec(output) ?? [];
  if (seed !== undefined) return `seed ${seed}: ${violation}`;
  return child.signalCode ? "a history does not end" : errors.split("\n").find((line) => /error/i.test(line));
}

let found = 0;
for (const { breaks, file } of chosen) {
  const violation = await play(breaks);
  if (violation !== undefined) found++;
  console.log([violation === undefined ? "not found" : "found", breaks, file, violation ?? ""].join("\t"));
}
console.log(`${found} of ${chosen.length} planted bugs were found, each in at most ${seeds} histories`);
