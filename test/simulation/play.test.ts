import assert from "node:assert/strict";
import { it } from "node:test";
import { either } from "../runs.ts";
import { play } from "./play.ts";

const SEEDS = either(200, 20);
const REPEATED = either(20, 2);
/** In which a settled world is watched; `npm run simulate` watches it for ten minutes. */
const REST_MS = 60_000;

it("no history breaks what must never happen, and each settles once faults and people stop", async (t) => {
  const reached = new Set<string>();
  let calls = 0;
  for (let seed = 0; seed < SEEDS; seed++) {
    const history = await play(seed, { restMs: REST_MS });
    assert.deepEqual(history.violations, [], `npm run simulate -- --seed ${seed} --trace`);
    for (const cell of history.reached.keys()) reached.add(cell.split(" at ")[0] ?? "");
    calls += history.calls;
  }
  t.diagnostic(`${SEEDS} histories, ${calls} calls of the API`);
  // What the others need is rarer than twenty histories.
  const KINDS = ["requestLost", "answerLost", "slowRequest", "slowAnswer", "stale", "throttled", "serverError"];
  for (const fault of KINDS) assert.ok(reached.has(fault), `no history reached ${fault}`);
});

it("the same seed gives the same history, byte for byte", async () => {
  for (let seed = 0; seed < REPEATED; seed++) {
    const [first, second] = [await play(seed, { restMs: 0 }), await play(seed, { restMs: 0 })];
    assert.equal(second.digest, first.digest, `seed ${seed}`);
  }
});
