import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CheckAnswer, NO_STREAK } from "../../../reconciler/checks/check.ts";
import {
  dropFuture,
  formatResult,
  isPassing,
  type NamedCheck,
  type NamedResult,
  nextResult,
  nextResults,
  planChecks,
  readResults,
} from "../../../reconciler/checks/result.ts";
import { formatTimestamp } from "../../../infra/timestamp.ts";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const MINUTE = 60_000;

const check = (name = "errors"): NamedCheck => ({
  name,
  query: { expr: "up == 0", url: "prometheus:9090" },
  successWhen: "NoData",
  initialDelaySeconds: 0,
  periodSeconds: 60,
  successThreshold: 2,
});
const vector = (sample?: string, ...warnings: string[]): CheckAnswer => ({
  kind: "Vector",
  samples: sample === undefined ? 0 : 1,
  ...(sample !== undefined && { sample }),
  warnings,
  at: NOW,
});
const lost: CheckAnswer = { kind: "Error", code: "Unreachable", message: "refused", at: NOW };
const result = (lastAt = NOW - MINUTE, name = "errors"): NamedResult => ({
  name,
  lastVerdict: "Success",
  sample: undefined,
  message: undefined,
  streak: { ...NO_STREAK, successes: 1, lastAt },
});

describe("the result of a check", () => {
  for (const [title, answer, expected] of [
    ["a success", vector(), ["Success", undefined, undefined, [2, 0, 0]]],
    ["a failure, with the first series", vector("up{} 0"), ["Failure", "up{} 0", undefined, [0, 1, 0]]],
    ["an error, with its code", lost, ["Error", undefined, "Unreachable: refused", [0, 0, 1]]],
    [
      "an empty answer that may lack data, with the warnings",
      vector(undefined, "a store is down", "slow"),
      ["Error", undefined, "no data, but with warnings: a store is down; slow", [0, 0, 1]],
    ],
  ] as const)
    it(`is ${title}`, () => {
      const next = nextResult(check(), result().streak, { answer });
      const { successes, failures, errors, lastAt } = next.streak;
      const counted = [successes, failures, errors];
      assert.deepEqual([next.lastVerdict, next.sample, next.message, counted], expected);
      assert.equal(lastAt, NOW);
    });

  it("counts an error as a success where errors let pass, and still says that it was one", () => {
    const { lastVerdict, message, streak } = nextResult(check(), result().streak, {
      answer: lost,
      onError: "Proceed",
    });
    assert.deepEqual([lastVerdict, message, streak.successes], ["Error", "Unreachable: refused", 2]);
  });

  it("stays without an answer, is forgotten without its check, and comes with the first answer", () => {
    const [errors, latency, load] = [check("errors"), check("latency"), check("load")];
    const stored = [result(NOW - MINUTE, "removed"), result(NOW - MINUTE, "errors")];
    const next = nextResults([load, latency, errors], stored, { answers: new Map([["latency", vector()]]) });
    assert.deepEqual(
      next.map(({ name, streak }) => [name, streak.successes, streak.lastAt]),
      [
        ["latency", 1, NOW],
        ["errors", 1, NOW - MINUTE],
      ],
    );
  });

  it("makes its check due again after a period, and sooner if it was an error", () => {
    const checks = [check("fine"), check("troubled"), check("new")];
    const fine = result(NOW, "fine");
    const troubled: NamedResult = {
      name: "troubled",
      lastVerdict: "Error",
      streak: { ...NO_STREAK, errors: 1, lastAt: NOW },
    };
    assert.deepEqual(
      planChecks(checks, [fine, troubled], NOW - MINUTE).map((one) => [one.name, one.dueAt - NOW, one.isTroubled]),
      [
        ["fine", MINUTE, false],
        ["troubled", 5000, true],
        ["new", -MINUTE, false],
      ],
    );
  });

  for (const [title, successes, ago, expected] of [
    ["with enough successes, two periods ago", 2, 2 * MINUTE, true],
    ["not with too few", 1, 0, false],
    ["not once the last answer is older than two periods", 2, 2 * MINUTE + 1, false],
  ] as const)
    it(`is passing ${title}`, () =>
      assert.equal(isPassing(check(), { ...NO_STREAK, successes, lastAt: NOW - ago }, NOW), expected));

  it("does not count if it is from a time that is more than a minute ahead", () => {
    const near = result(NOW + MINUTE);
    assert.deepEqual(dropFuture([near, result(NOW + MINUTE + 1)], NOW), [near]);
  });

  it("is read as it was stored", () => {
    const stored = { ...result(NOW), sample: "up{} 0", message: "refused" };
    assert.deepEqual(readResults([formatResult(stored)], NOW), [stored]);
  });

  for (const [title, lastTime] of [
    ["is older than what it is about", formatTimestamp(NOW - 1000)],
    ["has no readable time", "yesterday"],
  ] as const)
    it(`counts as none if it ${title}`, () =>
      assert.deepEqual(readResults([{ ...formatResult(result(NOW)), lastTime }], NOW), []));
});
