import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseBypass, parseMaxUnavailable } from "../../../reconciler/model/annotations.ts";
import { zone } from "../builders.ts";

const TABLE: readonly [string, string | undefined, number | undefined, number, boolean][] = [
  ["nothing set", undefined, 10, 1, false],
  ["a number", "3", 10, 3, false],
  ["a word", "xxx", 10, 1, true],
  ["zero", "0", 10, 1, true],
  ["a negative number", "-1", 10, 1, true],
  ["a percentage", "30%", 10, 3, false],
  ["a percentage, rounded down", "25%", 10, 2, false],
  ["half of three", "50%", 3, 1, false],
  ["a percentage of an unknown number", "30%", undefined, 1, false],
  ["more than 100 %", "300%", 10, 1, true],
  ["0 %", "0%", 10, 1, true],
  ["white space around it", "  4 ", 10, 4, false],
  ["white space inside", "4 %", 10, 1, true],
  ["a plus sign", "+5", 10, 5, false],
  ["100 %", "100%", 7, 7, false],
  ["a fraction", "1.5", 10, 1, true],
  ["a hexadecimal number", "0x10", 10, 1, true],
  ["an exponent", "1e3", 10, 1, true],
  ["more digits than an integer has", "99999999999999999999", 10, 1, true],
  ["nothing", "", 10, 1, true],
  ["a lone percent sign", "%", 10, 1, true],
  ["more than the zone has", "50", 3, 50, false],
];

describe("rollout-max-unavailable", () => {
  for (const [name, written, replicas, value, problem] of TABLE) {
    it(`${name}: ${JSON.stringify(written)} of ${replicas} is ${value}`, () => {
      const parsed = parseMaxUnavailable(written, replicas);
      assert.equal(parsed.value, value);
      assert.equal(parsed.problem !== undefined, problem);
      if (problem) assert.match(parsed.problem ?? "", /rollout-max-unavailable/);
    });
  }
});

describe("rollout-paused", () => {
  for (const [written, value, problem] of [
    [undefined, false, false],
    ["true", true, false],
    ["false", false, false],
    ["True", false, true],
    ["yes", false, true],
  ] as const) {
    it(`${written} ${value ? "pauses" : "does not pause"}${problem ? "and is reported" : ""}`, () => {
      const { paused, problems } = zone({ annotations: { ...(written && { "grafana.com/rollout-paused": written }) } });
      assert.deepEqual([paused, problems.length > 0], [value, problem]);
    });
  }
});

describe("the reason of a bypass", () => {
  const UNTIL = "2026-01-01T12:00:00Z";
  const HALF = "\ud83d";
  for (const [name, written, reason] of [
    ["is as it is written", "a known alert", "a known alert"],
    ["is one line", " a\n\tknown\u0007 alert ", "a known alert"],
    ["is absent if it is empty", " \n ", undefined],
    ["is cut after 200 characters", "x".repeat(300), "x".repeat(200)],
    [
      "has no half of a character where it is cut, which no status could store",
      `${"x".repeat(199)}😀`,
      `${"x".repeat(199)}�`,
    ],
    ["has no half of a character that was written", `a ${HALF} b`, "a � b"],
  ] as const)
    it(name, () => assert.equal(parseBypass(UNTIL, written).value?.reason, reason));
});
