import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { QueryAnswer } from "../../../infra/prometheus/answer.ts";
import {
  addVerdict,
  dueAt,
  hasFailed,
  hasPassed,
  judgeAnswer,
  NO_STREAK,
  type CheckVerdict,
} from "../../../reconciler/checks/check.ts";

const vector = (samples: number, ...warnings: string[]): QueryAnswer => ({ kind: "Vector", samples, warnings });
const lost: QueryAnswer = { kind: "Error", code: "Unreachable", message: "refused" };
const check = { periodSeconds: 40 };
const streakOf = (verdicts: readonly CheckVerdict[]) =>
  verdicts.reduce((streak, verdict, i) => addVerdict(streak, verdict, { check, at: i + 1 }), NO_STREAK);
const S = "Success";
const F = "Failure";
const E = "Error";

describe("a check", () => {
  for (const [successWhen, answer, verdict] of [
    ["NoData", vector(0), S],
    ["NoData", vector(1), F],
    ["NoData", vector(0, "a store is down"), E],
    ["NoData", vector(1, "a store is down"), F],
    ["NoData", lost, E],
    ["Data", vector(0), F],
    ["Data", vector(1), S],
    ["Data", vector(0, "a store is down"), F],
    ["Data", vector(1, "a store is down"), S],
    ["Data", lost, E],
  ] as const)
    it(`judges ${JSON.stringify(answer)} as ${verdict} under ${successWhen}`, () =>
      assert.equal(judgeAnswer({ successWhen }, answer), verdict));

  for (const [verdicts, expected] of [
    [[], { successes: 0, failures: 0, errors: 0 }],
    [[S, S], { successes: 2, failures: 0, errors: 0 }],
    [[S, S, F], { successes: 0, failures: 1, errors: 0 }],
    [[S, S, E], { successes: 0, failures: 0, errors: 1 }],
    [[F, E, F], { successes: 0, failures: 1, errors: 0 }],
    [[E, E, S], { successes: 1, failures: 0, errors: 0 }],
  ] as const)
    it(`counts ${verdicts.join(", ") || "nothing"}`, () => {
      const { lastAt, ...counted } = streakOf(verdicts);
      assert.deepEqual(counted, expected);
      assert.equal(lastAt, verdicts.length || undefined);
    });

  it("counts an answer once", () => {
    const streak = addVerdict(NO_STREAK, S, { check, at: 10 });
    assert.equal(addVerdict(streak, S, { check, at: 10 }), streak);
    assert.equal(addVerdict(streak, F, { check, at: 9 }), streak);
  });

  for (const [periodSeconds, at, successes] of [
    [40, 80_001, 3],
    [40, 80_002, 1],
    [5, 60_001, 3],
    [5, 60_002, 1],
  ] as const)
    it(`with a period of ${periodSeconds} s has ${successes} successes in a row if the next one comes at ${at} ms`, () => {
      const before = { ...NO_STREAK, successes: 2, failures: 0, lastAt: 1 };
      const after = addVerdict(before, S, { check: { periodSeconds }, at });
      assert.equal(after.successes, successes);
    });

  const spec = { initialDelaySeconds: 60, periodSeconds: 60 };
  for (const [name, timing, streak, due] of [
    ["first after the initial delay", spec, NO_STREAK, 61_000],
    ["at once without an initial delay", { ...spec, initialDelaySeconds: 0 }, NO_STREAK, 1000],
    ["a period after an answer", spec, { ...NO_STREAK, successes: 1, lastAt: 70_000 }, 130_000],
    ["5 s after an error", spec, { ...NO_STREAK, errors: 1, lastAt: 70_000 }, 75_000],
    ["20 s after the third error", spec, { ...NO_STREAK, errors: 3, lastAt: 70_000 }, 90_000],
    ["a period after many errors", spec, { ...NO_STREAK, errors: 2000, lastAt: 70_000 }, 130_000],
    [
      "no more than a period after an error",
      { ...spec, periodSeconds: 2 },
      { ...NO_STREAK, errors: 1, lastAt: 70_000 },
      72_000,
    ],
    [
      "a second later with a period of 0",
      { ...spec, periodSeconds: 0 },
      { ...NO_STREAK, failures: 1, lastAt: 70_000 },
      71_000,
    ],
    ["not before an initial delay that was made longer", spec, { ...NO_STREAK, successes: 1, lastAt: 500 }, 61_000],
  ] as const)
    it(`is due ${name}`, () => assert.equal(dueAt(timing, 1000, streak), due));

  it("passes only after enough successes in a row, and fails only after enough failures in a row", () =>
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom<CheckVerdict>(S, F, E), { maxLength: 30 }),
        fc.integer({ min: 1, max: 5 }),
        fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
        (verdicts, successThreshold, failureThreshold) => {
          const streak = streakOf(verdicts);
          const last = (count: number, verdict: CheckVerdict) =>
            verdicts.length >= count && verdicts.slice(-count).every((one) => one === verdict);
          assert.equal(hasPassed({ successThreshold }, streak), last(successThreshold, S));
          assert.equal(
            hasFailed({ failureThreshold }, streak),
            failureThreshold !== undefined && last(failureThreshold, F),
          );
        },
      ),
    ));

  it("passes with no threshold below one", () => assert.equal(hasPassed({ successThreshold: 0 }, NO_STREAK), false));
});
