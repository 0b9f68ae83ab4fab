/** Many histories, in processes of their own, where all that they reach is counted. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { either } from "../runs.ts";
import { lostCells, mergeReach, parseReach } from "./reach.ts";

/** Played by `npm run test:all` alone. */
const COUNTED_SEEDS = either([30], []);
/** At once: as many as a small machine has cores. */
const PARTS = 2;
const SIMULATE = join(import.meta.dirname, "simulate.ts");
const RECORD = join(import.meta.dirname, "reached.txt");
/** In which a settled world is watched; `npm run simulate` watches it for ten minutes. */
const REST_SECONDS = 60;

/** Plays histories, and resolves with what it printed; rejects with that if one of them breaks a rule. */
function playPart(from: number, seeds: number, path: string): Promise<string> {
  const args = ["--from", from, "--seeds", seeds, "--rest", REST_SECONDS, "--reach-to", path].map(String);
  // V8 counts no blocks of what comes from a cache.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [SIMULATE, ...args], { env }, (error, stdout, stderr) =>
      error ? reject(new Error(`${stdout}\n${stderr}`, { cause: error })) : resolve(stdout),
    );
  });
}

for (const seeds of COUNTED_SEEDS)
  it(`${seeds} histories reach what they have reached before`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "zonewise-reach-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const size = Math.ceil(seeds / PARTS);
    const parts = Array.from({ length: PARTS }, (_, i) => ({ from: i * size, path: join(folder, `${i}.txt`) }));
    const told = await Promise.all(parts.map(({ from, path }) => playPart(from, size, path)));
    for (const line of told) t.diagnostic(line);
    const found = mergeReach(parts.map(({ path }) => parseReach(readFileSync(path, "utf8"))));
    assert.equal(found.seeds, size * PARTS);
    assert.deepEqual(lostCells(parseReach(readFileSync(RECORD, "utf8")), found), []);
  });
