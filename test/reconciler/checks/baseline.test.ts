import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { QueryAnswer } from "../../../infra/prometheus/answer.ts";
import { type Baseline, baselineFields, compareAnswers } from "../../../reconciler/checks/baseline.ts";
import { judgeAnswer } from "../../../reconciler/checks/check.ts";
import { nextResult } from "../../../reconciler/checks/result.ts";
import { NO_STREAK } from "../../../reconciler/checks/check.ts";

const CHECK = { successWhen: "WithinBaseline", periodSeconds: 60 } as const;
const series = (value: string | undefined, more: object = {}): QueryAnswer => ({
  kind: "Vector",
  samples: 1,
  sample: `{} ${value}`,
  value,
  warnings: [],
  ...more,
});
const bounds = (some: Partial<Baseline>): Baseline => ({ expr: "x", at: "Now", ...some });
const judge = (value: number, base: number, some: Partial<Baseline>) =>
  judgeAnswer(CHECK, compareAnswers(series(String(value)), series(String(base)), bounds(some)));

describe("a check against its baseline", () => {
  for (const [value, base, some, verdict] of [
    [1.5, 1, { maxRatio: 1.5 }, "Success"],
    [1.6, 1, { maxRatio: 1.5 }, "Failure"],
    [0.3, 0.1, { maxRatio: 3 }, "Success"],
    [0.31, 0.1, { maxRatio: 3 }, "Failure"],
    [0.9, 1, { minRatio: 0.9 }, "Success"],
    [0.89, 1, { minRatio: 0.9 }, "Failure"],
    [1.1, 1, { maxDifference: 0.1 }, "Success"],
    [1.2, 1, { maxDifference: 0.1 }, "Failure"],
    [0, 5, { maxDifference: 0.1 }, "Success"],
    [2, 1, { maxRatio: 3, maxDifference: 0.5 }, "Failure"],
    [0.5, 1, { maxRatio: 3, minRatio: 0.9 }, "Failure"],
    [0, 0, { maxRatio: 1.5 }, "Success"],
    [0.001, 0, { maxRatio: 1.5 }, "Failure"],
    [0.001, 0, { maxDifference: 0.01 }, "Success"],
  ] as const)
    it(`${value} against ${base} within ${JSON.stringify(some)}: ${verdict}`, () =>
      assert.equal(judge(value, base, some), verdict));

  it("tells both numbers and the bounds", () => {
    const answer = compareAnswers(series("0.0212345678"), series("0.01"), bounds({ maxRatio: 1.5, maxDifference: 1 }));
    const { sample, lastVerdict } = nextResult(CHECK, NO_STREAK, { answer: { ...answer, at: 1 } });
    assert.deepEqual(
      [lastVerdict, sample],
      ["Failure", "0.0212346 against a baseline of 0.01; at most 1.5 times and at most 1 more is allowed"],
    );
  });

  const lost: QueryAnswer = { kind: "Error", code: "Unreachable", message: "refused" };
  for (const [name, value, base, message] of [
    ["the query is not answered", lost, series("1"), "Unreachable: the query: refused"],
    ["the baseline is not answered", series("1"), lost, "Unreachable: the baseline: refused"],
    [
      "there is no data",
      series(undefined, { samples: 0 }),
      series("1"),
      "NotComparable: the query gives 0 series in place of one",
    ],
    [
      "the baseline has no data",
      series("1"),
      series(undefined, { samples: 0 }),
      "NotComparable: the baseline gives 0 series in place of one",
    ],
    [
      "there are several series",
      series("1", { samples: 3 }),
      series("1"),
      "NotComparable: the query gives 3 series in place of one",
    ],
    ["it is no number", series("NaN"), series("1"), "NotComparable: the query gives NaN"],
    ["the baseline is infinite", series("1"), series("+Inf"), "NotComparable: the baseline gives +Inf"],
    [
      "the baseline is below 0",
      series("-10"),
      series("-10"),
      "NotComparable: the baseline is -10, and there is no ratio to a number below 0",
    ],
    ["it is a histogram", series(undefined), series("1"), "NotComparable: the query gives a histogram"],
    [
      "data may be missing",
      series("1", { warnings: ["partial"] }),
      series("1"),
      "NotComparable: the query has warnings: partial",
    ],
  ] as const)
    it(`is an error if ${name}`, () => {
      const answer = compareAnswers(value, base, bounds({ maxRatio: 1 }));
      const result = nextResult(CHECK, NO_STREAK, { answer: { ...answer, at: 1 } });
      assert.deepEqual([result.lastVerdict, result.message], ["Error", message]);
    });

  it("is an error without a comparison, as of an older process", () =>
    assert.equal(judgeAnswer(CHECK, series("1")), "Error"));

  it("reads its bounds as decimal numbers, and needs one", () => {
    const read = (some: object) => baselineFields.safeParse({ expr: "x", ...some }).data;
    assert.deepEqual(read({ maxRatio: "1.5" }), { expr: "x", at: "Now", maxRatio: 1.5 });
    assert.deepEqual(
      [
        {},
        { maxRatio: "-1" },
        { maxRatio: "1e3" },
        { maxRatio: "" },
        { maxRatio: 1.5 },
        { maxRatio: "1", at: "Then" },
      ].map(read),
      Array(6).fill(undefined),
    );
  });
});
