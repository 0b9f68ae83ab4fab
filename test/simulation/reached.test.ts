/** Many histories, in a process of their own, where all that they reach is counted. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { it } from "node:test";
import { either } from "../runs.ts";

/** Played by `npm run test:all` alone. */
const COUNTED_SEEDS = either([60], []);
const SIMULATE = join(import.meta.dirname, "simulate.ts");
/** In which a settled world is watched; `npm run simulate` watches it for ten minutes. */
const REST_SECONDS = 60;

for (const seeds of COUNTED_SEEDS)
  it(`${seeds} histories reach what they have reached before`, (t) => {
    const args = ["--seeds", String(seeds), "--rest", String(REST_SECONDS), "--reach"];
    // V8 counts no blocks of what comes from a cache.
    const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" };
    const { status, stdout, stderr } = spawnSync(process.execPath, [SIMULATE, ...args], { env, encoding: "utf8" });
    const lines = stdout.split("\n").filter((line) => !line.startsWith("never "));
    assert.equal(status, 0, [...lines, stderr].join("\n"));
    for (const line of lines) t.diagnostic(line);
  });
