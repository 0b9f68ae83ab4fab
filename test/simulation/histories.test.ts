/** Many histories, in processes of their own, where all that they reach is counted. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { it } from "node:test";
import { either } from "../runs.ts";

/** Where each part begins, all at once: as many as a small machine has cores. Played by `npm run test:all` alone. */
const PARTS = either([[0, 15]], []);
const SEEDS = 15;
const SIMULATE = join(import.meta.dirname, "simulate.ts");
/** In which a settled world is watched; `npm run simulate` watches it for ten minutes. */
const REST_SECONDS = 60;

/** Plays histories, and resolves with what it printed; rejects with that if one of them breaks a rule. */
function playPart(from: number): Promise<string> {
  const args = ["--from", from, "--seeds", SEEDS, "--rest", REST_SECONDS, "--reach"].map(String);
  // V8 counts no blocks of what comes from a cache.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [SIMULATE, ...args], { env, maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
      error ? reject(new Error(`${stdout}\n${stderr}`, { cause: error })) : resolve(stdout),
    );
  });
}

for (const parts of PARTS)
  it(`${parts.length * SEEDS} histories break no rule, and what they reach is counted`, async () => {
    for (const told of await Promise.all(parts.map(playPart)))
      assert.match(told, new RegExp(`^[1-9]\\d* of \\d+ cells were reached by ${SEEDS} histories$`, "m"));
  });
