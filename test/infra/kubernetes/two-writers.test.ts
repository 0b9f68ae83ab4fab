/**
 * Never two writers: processes that contend for the Lease while clocks jump, answers are lost, machines freeze and
 * processes are killed.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { either } from "../../runs.ts";
import { playContest, type Played, type Trouble } from "./two-writers.ts";

const PLAYS = either(25, 8);

async function playAll(trouble: Trouble) {
  const all: Played[] = [];
  for (let seed = 1; seed <= PLAYS; seed++) all.push(await playContest(seed, trouble));
  const sum = (count: (played: Played) => number): number => all.reduce((total, played) => total + count(played), 0);
  return {
    violations: all.flatMap(({ violations }) => violations),
    takeovers: sum(({ takeovers }) => takeovers),
    handovers: sum(({ handovers }) => handovers),
    kills: sum(({ kills }) => kills),
  };
}

describe("of processes that contend for a Lease, only one may write", () => {
  const CASES: readonly [what: string, Trouble][] = [
    ["while all is well", { cuts: false, halts: false, clocksJump: false }],
    ["while connections are lost and processes stand still", { cuts: true, halts: true, clocksJump: false }],
    ["while machines' clocks jump, too", { cuts: true, halts: true, clocksJump: true }],
  ];
  for (const [what, trouble] of CASES)
    it(what, async () => {
      const { violations, ...reached } = await playAll(trouble);
      assert.deepEqual(violations, []);
      assert.ok(reached.handovers > either(20, 6), JSON.stringify(reached));
      if (trouble.halts)
        assert.ok(reached.takeovers > either(20, 6) && reached.kills > either(10, 3), JSON.stringify(reached));
    });
});
