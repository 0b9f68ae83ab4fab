import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readAnswer, type QueryAnswer } from "../../../infra/prometheus/answer.ts";
import { failure, vector } from "../../prometheus/scripted.ts";

const NOT_PROMETHEUS = "the answer is not that of Prometheus' query API";
const scalar = { status: "success", data: { resultType: "scalar", result: [1, "5"] } };
const error = (code: string, message: string) => ({ kind: "Error", code, message }) as QueryAnswer;

const CASES: readonly (readonly [name: string, status: number, body: unknown, answer: QueryAnswer])[] = [
  ["an empty vector", 200, vector(0), { kind: "Vector", samples: 0, warnings: [] }],
  [
    "a vector with series",
    200,
    vector(2),
    { kind: "Vector", samples: 2, sample: `up{instance="pod-0"} 1`, value: "1", warnings: [] },
  ],
  [
    "a vector with a value that is not a number",
    200,
    { status: "success", data: { resultType: "vector", result: [{ metric: {}, value: [1, "NaN"] }] } },
    { kind: "Vector", samples: 1, sample: "{} NaN", value: "NaN", warnings: [] },
  ],
  [
    "a histogram",
    200,
    { status: "success", data: { resultType: "vector", result: [{ metric: { __name__: "h" }, histogram: [1, {}] }] } },
    { kind: "Vector", samples: 1, sample: "h{} (a histogram)", warnings: [] },
  ],
  [
    "warnings",
    200,
    vector(0, { warnings: ["store  a\nis down"] }),
    { kind: "Vector", samples: 0, warnings: ["store a is down"] },
  ],
  [
    "a partial answer of VictoriaMetrics, which has no warnings",
    200,
    vector(0, { isPartial: true }),
    { kind: "Vector", samples: 0, warnings: ["the answer is partial"] },
  ],
  [
    "a whole answer of VictoriaMetrics",
    200,
    vector(0, { isPartial: false }),
    { kind: "Vector", samples: 0, warnings: [] },
  ],
  ["a scalar", 200, scalar, error("NotAVector", "the expression gives a scalar, not an instant vector")],
  [
    "a result that is no list",
    200,
    { status: "success", data: { resultType: "vector", result: {} } },
    error("BadAnswer", "the vector in the answer cannot be read"),
  ],
  ["a success without data", 200, { status: "success" }, error("BadAnswer", NOT_PROMETHEUS)],
  ["another server's JSON", 200, { hello: "world" }, error("BadAnswer", NOT_PROMETHEUS)],
  ["a page in HTML", 200, "<html>", error("BadAnswer", NOT_PROMETHEUS)],
  ["an error with status 200", 200, failure("no such function"), error("BadQuery", "no such function")],
  ["a timeout with status 200", 200, failure("query timed out", "timeout"), error("Overloaded", "query timed out")],
  ["an unknown error with status 200", 200, failure("boom", "internal"), error("BadAnswer", "boom")],
  ["a bad expression", 400, failure("1:3: parse error"), error("BadQuery", "1:3: parse error (400)")],
  [
    "an expression that fails",
    422,
    failure("many-to-many matching", "execution"),
    error("NotEvaluated", "many-to-many matching (422)"),
  ],
  [
    "an expression that VictoriaMetrics cannot read",
    422,
    failure("cannot parse", "422"),
    error("BadQuery", "cannot parse (422)"),
  ],
  ["missing credentials", 401, "Unauthorized", error("Refused", "no error message of Prometheus (401)")],
  ["wrong credentials", 403, "secret of another server", error("Refused", "no error message of Prometheus (403)")],
  [
    "too much load",
    503,
    failure("query queue is full", "unavailable"),
    error("Overloaded", "query queue is full (503)"),
  ],
  ["too many requests", 429, "", error("Overloaded", "no error message of Prometheus (429)")],
  ["a missing page", 404, "not found", error("BadAnswer", "no error message of Prometheus (404)")],
  ["a redirect", 302, "", error("BadAnswer", "a redirect (302) is not followed")],
  ["an answer without a body", 204, "", error("BadAnswer", "no error message of Prometheus (204)")],
];

describe("answers of Prometheus", () => {
  for (const [name, status, body, answer] of CASES)
    it(`reads ${name}`, () =>
      assert.deepEqual(readAnswer({ status, body: typeof body === "string" ? body : JSON.stringify(body) }), answer));

  it("hides a secret that quoting would change", () => {
    const secret = 'pa"ss\\word';
    const body = JSON.stringify({
      status: "success",
      data: { resultType: "vector", result: [{ metric: { auth: secret }, value: [1, "1"] }] },
    });
    const answer = readAnswer({ status: 200, body }, (text) => text.replaceAll(secret, "***"));
    assert.deepEqual(answer, { kind: "Vector", samples: 1, sample: '{auth="***"} 1', value: "1", warnings: [] });
  });

  it("shortens what it shows, and keeps it on one line", () => {
    const answer = readAnswer({ status: 400, body: JSON.stringify(failure(`a\u0007\n${"b".repeat(1000)}`)) });
    assert.ok(answer.kind === "Error" && answer.message.length === 300 && answer.message.startsWith("a bbb"));
  });
});
