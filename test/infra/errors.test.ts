import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type ErrorCode,
  isRefused,
  isRetryable,
  isSuperseded,
  isTransient,
  RolloutError,
  wroteNothing,
} from "../../infra/errors.ts";

const QUESTIONS = {
  retry: isRetryable,
  again: isSuperseded,
  transient: isTransient,
  none: wroteNothing,
  refused: isRefused,
} as const;

/** Per code, the questions with the answer yes. A write with an unknown effect is never repeated as if it had none. */
const ANSWERS: Readonly<Record<ErrorCode, readonly (keyof typeof QUESTIONS)[]>> = {
  BadConfiguration: ["none", "refused"],
  Unauthorized: ["none", "refused"],
  Forbidden: ["none", "refused"],
  Invalid: ["none", "refused"],
  Throttled: ["retry", "transient", "none", "refused"],
  WebhookFailed: ["retry", "transient", "none", "refused"],
  NotFound: ["again", "transient", "none"],
  AlreadyExists: ["again", "transient", "none"],
  Conflict: ["retry", "again", "transient", "none"],
  Expired: ["retry", "again", "transient", "none"],
  Timeout: ["retry", "transient"],
  Unreachable: ["retry", "transient"],
  ServerError: ["retry", "transient"],
  Cancelled: [],
  LeaseLost: [],
};

const answersOf = (error: unknown): string[] =>
  Object.entries(QUESTIONS).flatMap(([name, holds]) => (holds(error) ? [name] : []));

describe("what follows from an error", () => {
  for (const [code, answers] of Object.entries(ANSWERS) as [ErrorCode, readonly string[]][]) {
    it(`of ${code}: ${answers.join(", ") || "nothing"}`, () =>
      assert.deepEqual(answersOf(new RolloutError(code, "")), answers));
  }

  it("is an unknown effect for other errors", () => {
    for (const error of [new Error("Conflict"), { code: "Conflict" }, "Conflict", undefined])
      assert.deepEqual(answersOf(error), []);
  });
});
