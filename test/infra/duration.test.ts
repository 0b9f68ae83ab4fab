/** Durations and timestamps (§0.9); expectations of Go's durations are what time.ParseDuration says. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { formatGoDuration, parseGoDuration, parsePrometheusDuration, shortDuration } from "../../infra/duration.ts";
import { formatGoTime, formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";

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
  // Go reads it; the time that it takes grows with the square of the length.
  `${"0".repeat(100)}1h`,
];

describe("a Go duration", () => {
  for (const [text, ms] of Object.entries(VALID))
    it(`${text} is ${ms} ms`, () => assert.equal(parseGoDuration(text), ms));
  for (const text of INVALID)
    it(`${JSON.stringify(text)} is none`, () => assert.equal(parseGoDuration(text), undefined));

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

describe("Prometheus' durations", () => {
  const valid = {
    "0": 0,
    "0s": 0,
    "1h": 3_600_000,
    "1h0m0s": 3_600_000,
    "1h30m": 5_400_000,
    "2w1d": 15 * 86_400_000,
    "1y": 365 * 86_400_000,
    "1s5ms": 1005,
  };
  for (const [text, ms] of Object.entries(valid))
    it(`reads ${text}`, () => assert.equal(parsePrometheusDuration(text), ms));
  for (const text of ["", "1", "-1h", "1.5h", "1m1h", "1h1h", "1 h", "1H", "1us", "h", "300y", "1h\n"])
    it(`refuses ${JSON.stringify(text)}`, () => assert.equal(parsePrometheusDuration(text), undefined));
});

describe("a duration for humans", () => {
  const cases = {
    "0s": 999,
    "45s": 45_900,
    "12h": 12 * 3_600_000,
    "2h10m": 7_859_000,
    "1m30s": 90_000,
    "3d": 3 * 86_400_000 + 59_000,
    "1h": 3_659_000,
  };
  for (const [text, ms] of Object.entries(cases))
    it(`${ms} ms are ${text}`, () => assert.equal(shortDuration(ms), text));
});

describe("a timestamp", () => {
  const valid = {
    "2026-01-02T03:04:05Z": Date.UTC(2026, 0, 2, 3, 4, 5),
    "2026-01-02T03:04:05.5Z": Date.UTC(2026, 0, 2, 3, 4, 5, 500),
    "2026-01-02T03:04:05+02:00": Date.UTC(2026, 0, 2, 1, 4, 5),
    "2024-02-29T00:00:00Z": Date.UTC(2024, 1, 29),
  };
  for (const [text, ms] of Object.entries(valid)) it(`reads ${text}`, () => assert.equal(parseTimestamp(text), ms));
  for (const text of [
    "",
    "2026-01-02",
    "2026-01-02 03:04:05Z",
    "2026-02-30T00:00:00Z",
    "2026-01-02T24:00:00Z",
    "2026-01-02T03:04:05",
    "1767322800",
    "2026-13-01T00:00:00Z",
  ])
    it(`refuses ${JSON.stringify(text)}`, () => assert.equal(parseTimestamp(text), undefined));
  it("is written to the second, and read back", () => {
    assert.equal(formatTimestamp(Date.UTC(2026, 0, 2, 3, 4, 5, 678)), "2026-01-02T03:04:05Z");
    assert.equal(parseTimestamp(formatTimestamp(0)), 0);
  });
  it("is written within the years that it can name", () => {
    for (const ms of [253_402_300_800_000, 8.64e15, 1e300, Infinity])
      assert.equal(formatTimestamp(ms), "9999-12-31T23:59:59Z");
    for (const ms of [-62_167_219_200_001, -8.65e15, -Infinity])
      assert.equal(formatTimestamp(ms), "0000-01-01T00:00:00Z");
  });
});

describe("Go's formats", () => {
  const DURATIONS: readonly [number, string][] = [
    [0, "0s"],
    [250, "250ms"],
    [1500, "1.5s"],
    [90_000, "1m30s"],
    [43_200_000, "12h0m0s"],
    [3_661_001, "1h1m1.001s"],
    [-5000, "-5s"],
  ];
  for (const [ms, expected] of DURATIONS)
    it(`${ms} ms are ${expected}`, () => assert.equal(formatGoDuration(ms), expected));
  it("for a time", () =>
    assert.equal(formatGoTime(Date.parse("2026-01-01T12:00:00Z") + 999), "2026-01-01 12:00:00 +0000 UTC"));
});
