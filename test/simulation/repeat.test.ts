import assert from "node:assert/strict";
import { it } from "node:test";
import { either } from "../runs.ts";
import { play } from "./play.ts";

/** The last one has nodes. */
const SEEDS = either([...Array.from({ length: 4 }, (_, seed) => seed), 70], [11]);

it("the same seed gives the same history, byte for byte", async () => {
  for (const seed of SEEDS) {
    const [first, second] = [await play(seed, { restMs: 0 }), await play(seed, { restMs: 0 })];
    assert.equal(second.digest, first.digest, `seed ${seed}`);
    assert.deepEqual(first.violations, []);
  }
});
