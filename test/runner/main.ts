/**
 * Runs test files with node:test: most of them in one process a core, each of which takes the next file;
 * beside them those that need a process of their own.
 *
 *     node test/runner/main.ts [--all] [--rest] [pattern ...]
 *
 * Without a pattern it leaves out the end-to-end tests, `*.e2e.test.ts`. `--all` plays them, too, and the counts of
 * test/runs.ts whole; `--rest` with it runs only what a run without `--all` leaves out or reduces.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { WHOLE } from "../runs.ts";
import { buildEntries } from "./build.ts";
import { findTests, isInRest, isShort, longFirst, needsOwnProcess, startsEntries } from "./files.ts";
import { createTally } from "./tally.ts";

/** Milliseconds for a process: whatever hangs ends. */
const PROCESS_MS = 1_800_000;
const OPTIONS = { all: { type: "boolean", default: false }, rest: { type: "boolean", default: false } } as const;

const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
const found = findTests(positionals.length > 0 ? positionals : ["test/**/*.test.ts"]);
// Whoever names files wants them.
const files = values.rest
  ? found.filter(isInRest)
  : found.filter(values.all || positionals.length > 0 ? () => true : isShort);
const alone = longFirst(files.filter(needsOwnProcess));
const shared = longFirst(files.filter((file) => !alone.includes(file)));
// No more: each loads nearly all of the sources.
const shards = Math.min(availableParallelism(), shared.length);

const folder = mkdtempSync(join(tmpdir(), "zonewise-tests-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
// Until all is known to be well: this process may end too soon as well.
process.exitCode = 1;

const urlOf = (name: string): string => JSON.stringify(pathToFileURL(join(import.meta.dirname, name)).href);

/** A module that makes the call of shard.ts: a process of node:test takes no arguments of its own. */
function writeModule(call: string, i: number): string {
  const path = join(folder, `${i}.mjs`);
  const shard = `const { runAlone, runShard } = await import(${urlOf("shard.ts")});`;
  writeFileSync(path, `import ${urlOf("test-context.ts")};\n${shard}\nawait ${call};\n`);
  return path;
}

if (files.some(startsEntries)) await buildEntries();
if (values.all) process.env[WHOLE] = "1";
const taken = join(folder, "taken");
mkdirSync(taken);
const tally = createTally(files);
const events = run({
  files: [
    ...Array.from({ length: shards }, () => `runShard(${JSON.stringify(shared)}, ${JSON.stringify(taken)})`),
    ...alone.map((file) => `runAlone(${JSON.stringify(file)})`),
  ].map(writeModule),
  // The shards use the cores; those alone mostly wait, for processes and for the clock.
  concurrency: shards + 3,
  timeout: PROCESS_MS,
  // A third less time for the collection of garbage, of which tests make much.
  execArgv: ["--max-semi-space-size=64"],
});
events.on("test:pass", (data) => tally.note("pass", data));
events.on("test:fail", (data) => tally.note("fail", data));
events.compose(new spec()).pipe(process.stdout);
events.on("end", () => {
  for (const file of tally.unfinished()) console.log(`✖ ${file} did not run to its end: its process ended before`);
  console.log(`\n${tally.summary()}`);
  process.exitCode = tally.hasPassed() ? 0 : 1;
});
