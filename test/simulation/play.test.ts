import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { it } from "node:test";
import { either } from "../runs.ts";
import { play } from "./play.ts";
import { describeShrunk } from "./shrink.ts";

/** Short ones. */
const SEEDS = [0, 3, 6, 7, 8];
const MIN_FAULTS = 8;
/** Played by `npm run test:all`, in a process of its own, where all that is reached is counted. */
const COUNTED_SEEDS = either([60], []);
const SIMULATE = join(import.meta.dirname, "simulate.ts");
/** The last one has nodes. */
const REPEATED = either([...Array.from({ length: 4 }, (_, seed) => seed), 70], [0]);
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

it("nodes get their updates one after the other, and their pods move (seed 25)", async () => {
  const lines: string[] = [];
  const { violations } = await play(25, { restMs: 0, trace: (line) => void lines.push(line) });
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

it("the same seed gives the same history, byte for byte", async () => {
  for (const seed of REPEATED) {
    const [first, second] = [await play(seed, { restMs: 0 }), await play(seed, { restMs: 0 })];
    assert.equal(second.digest, first.digest, `seed ${seed}`);
  }
});

for (const seeds of COUNTED_SEEDS)
  it(`${seeds} histories reach what they have reached before`, (t) => {
    const args = ["--seeds", String(seeds), "--rest", String(REST_MS / 1000), "--reach"];
    // V8 counts no blocks of what comes from a cache.
    const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" };
    const { status, stdout, stderr } = spawnSync(process.execPath, [SIMULATE, ...args], { env, encoding: "utf8" });
    const lines = stdout.split("\n").filter((line) => !line.startsWith("never "));
    assert.equal(status, 0, [...lines, stderr].join("\n"));
    for (const line of lines) t.diagnostic(line);
  });
