import assert from "node:assert/strict";
import { it } from "node:test";
import { play } from "./play.ts";
import { describeShrunk } from "./shrink.ts";

/** The second one broke a rule that has been mended since. `histories.test.ts` plays others. */
const SEEDS = [23, 36];
const MIN_FAULTS = 4;
/** In which a settled world is watched; `npm run simulate` watches it for ten minutes. */
const REST_MS = 60_000;

it("no history breaks what must never happen, and each settles once faults and people stop", async (t) => {
  const reached = new Set<string>();
  let calls = 0;
  for (const seed of SEEDS) {
    const history = await play(seed, { restMs: REST_MS });
    if (history.violations.length > 0) assert.fail(await describeShrunk(history, REST_MS));
    for (const [cell, times] of history.cells) if (times > 0) reached.add(cell.split(" at ")[0] ?? "");
    calls += history.calls;
  }
  t.diagnostic(`${SEEDS.length} histories, ${calls} calls of the API`);
  // Each history has some of the faults only.
  t.diagnostic(`${reached.size} kinds of faults`);
  assert.ok(reached.size >= MIN_FAULTS, `only these faults happened: ${[...reached].join(", ")}`);
});

it("nodes get their updates one after the other, and their pods move (seed 11)", async () => {
  const lines: string[] = [];
  const { violations } = await play(11, { restMs: 0, trace: (line) => void lines.push(line) });
  assert.deepEqual(violations, []);
  const nodesThat = (what: string): string[] =>
    lines.flatMap((line) => new RegExp(` host +(\\S+) ${what}$`).exec(line)?.[1] ?? []);
  assert.ok(nodesThat("asked").length > 1, "hosts are asked to reboot");
  assert.deepEqual(nodesThat("up").toSorted(), nodesThat("down").toSorted());
  assert.ok(
    lines.some((line) => /node-api-\d+ +POST pods\/ingester-\S+\/eviction -> 201/.test(line)),
    "pods are evicted",
  );
});
