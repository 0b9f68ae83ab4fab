/** Go's durations [0.9a]; expectations are what Go's time.ParseDuration says. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parseGoDuration } from "../../infra/duration.ts";

const VALID: Readonly<Record<string, number>> = {
  "0": 0,
  "+0": 0,
  "-0": 0,
  "-0s": 0,
  "0s": 0,
  "5s": 5000,
  "+5s": 5000,
  "-5s": -5000,
  "300ms": 300,
  "1m30s": 90_000,
  "1h1m1s1ms1us1ns": 3_661_001.001001,
  "12h": 43_200_000,
  "1.5h": 5_400_000,
  ".5s": 500,
  "5.s": 5000,
  "0.3ms": 0.3,
  "1s1h": 3_601_000,
  "1s1s": 2000,
  "1us": 0.001,
  "1µs": 0.001,
  "1μs": 0.001,
  "1.9ns": 0.000001,
  "9223372036854775807ns": 9_223_372_036_854.775,
  "-9223372036854775808ns": -9_223_372_036_854.775,
};

const INVALID = [
  "",
  "5",
  "-",
  "+",
  "s",
  ".",
  ".s",
  "-.s",
  "1d",
  "1w",
  "1h30",
  "5 s",
  " 5s",
  "5s ",
  "1e3s",
  "--5s",
  "+-5s",
  "5S",
  "1,5s",
  "0x1s",
  "9223372036854775808ns",
  "3000000h",
  "1m0",
  "١s",
];

describe("a Go duration", () => {
  for (const [text, ms] of Object.entries(VALID)) it(`${text} is ${ms} ms`, () => assert.equal(parseGoDuration(text), ms));
  for (const text of INVALID) it(`${JSON.stringify(text)} is none`, () => assert.equal(parseGoDuration(text), undefined));

  it("is the sum of its terms in any order", () => {
    const units = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
    const term = fc.tuple(fc.integer({ min: 0, max: 100_000 }), fc.constantFrom("h", "m", "s", "ms"));
    fc.assert(
      fc.property(fc.array(term, { minLength: 1, maxLength: 6 }), (terms) => {
        const sum = terms.reduce((total, [count, unit]) => total + count * units[unit], 0);
        assert.equal(parseGoDuration(terms.map(([count, unit]) => `${count}${unit}`).join("")), sum);
      }),
    );
  });
});
