/** Runs test files one after the other in this process, each as a suite with its path as its name. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { ROOT } from "./files.ts";
import { AFTER_FILE, AFTER_SHARD, changesSince, type Grace, type ProcessState, stateOf } from "./process-state.ts";
import { takeEach } from "./queue.ts";

/** Milliseconds for a file. */
const FILE_MS = 600_000;
/** Milliseconds in which the last results reach the runner. */
const FLUSH_MS = 1000;

const { ZONEWISE_TEST_SEED: seed } = process.env;
// The seed of all random cases: without it, each run has others, and a failure prints its own.
if (seed !== undefined) (await import("fast-check")).configureGlobal({ seed: Number(seed) });

/** A file with a process of its own. */
export const runAlone = async (file: string): Promise<void> => void (await runFile(file));

/** Those that no other shard has taken, by a folder that they share. Each file must leave the process as it found it. */
export async function runShard(files: readonly string[], taken: string): Promise<void> {
  let first: ProcessState | undefined;
  let isLeft = false;
  for (const file of takeEach(files, taken)) {
    const before = await runFile(file);
    first ??= before;
    if (await hasChanged(`${file} leaves the process as it found it`, before, AFTER_FILE)) isLeft = true;
  }
  if (first && !isLeft) isLeft = await hasChanged("nothing of these files keeps the process", first, AFTER_SHARD);
  // What is left open would keep it for ever.
  if (isLeft) setTimeout(() => process.exit(1), FLUSH_MS).unref();
}

/** The state of the process before the file was loaded, once its last test and its hooks have ended. */
async function runFile(file: string): Promise<ProcessState> {
  const { promise, resolve } = Promise.withResolvers<ProcessState>();
  void describe(file, { timeout: FILE_MS }, async () => {
    const before = stateOf();
    try {
      await import(join(ROOT, file));
    } finally {
      // Registered last, it runs after the file's own hooks.
      after(() => resolve(before));
    }
  });
  return await promise;
}

/** Adds a test that fails if there are changes. */
async function hasChanged(name: string, before: ProcessState, grace: Grace): Promise<boolean> {
  const changes = await changesSince(before, grace);
  if (changes.length > 0) await it(name, () => assert.fail(changes.join("; ")));
  return changes.length > 0;
}
