import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { it } from "node:test";
import { promisify } from "node:util";
import { either } from "../runs.ts";

/** The last one has nodes, as a quarter of the others. */
const SEEDS = either([...Array.from({ length: 49 }, (_, seed) => seed), 70], [11]);
/** For which a settled world is watched. */
const REST_SECONDS = either("60", "0");
const SIMULATE = join(import.meta.dirname, "simulate.ts");

/** The digests of histories, played one after the other in a process of its own. Rejects if one breaks a rule. */
async function digestsOf(seeds: readonly number[]): Promise<readonly string[]> {
  const args = [SIMULATE, "--seed", seeds.join(","), "--rest", REST_SECONDS];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return [...stdout.matchAll(/^digest (\w+)$/gm)].map(([, digest = ""]) => digest);
}

it(`the same seed gives the same history, byte for byte, whatever was played before it: ${SEEDS.length} of them`, async () => {
  const [first, second] = await Promise.all([digestsOf(SEEDS), digestsOf(SEEDS.toReversed())]);
  assert.equal(first.length, SEEDS.length);
  assert.deepEqual(second.toReversed(), first);
});
