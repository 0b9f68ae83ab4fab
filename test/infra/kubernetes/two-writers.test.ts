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
    [
      "while clocks of API servers agree and connections are lost",
      { serversApartMs: 2000, cuts: true, halts: true, clocksJump: false },
    ],
    ["while machines' clocks jump, too", { serversApartMs: 2000, cuts: true, halts: true, clocksJump: true }],
    [
      "while clocks of API servers are 8 s apart and connections are lost",
      { serversApartMs: 8000, cuts: true, halts: true, clocksJump: false },
    ],
    [
      "while clocks of API servers are an hour apart, as long as holders can renew",
      { serversApartMs: 3_600_000, cuts: false, halts: false, clocksJump: false },
    ],
  ];
  for (const [what, trouble] of CASES)
    it(what, async () => {
      const { violations, ...reached } = await playAll(trouble);
      assert.deepEqual(violations, []);
      assert.ok(reached.handovers > either(20, 6), JSON.stringify(reached));
      if (trouble.halts)
        assert.ok(reached.takeovers > either(20, 6) && reached.kills > either(10, 3), JSON.stringify(reached));
    });

  it("would not hold if clocks were apart and holders could not renew: neither alone does harm", async () => {
    const { violations } = await playAll({ serversApartMs: 3_600_000, cuts: true, halts: true, clocksJump: false });
    assert.ok(violations.length > 0);
  });
});
