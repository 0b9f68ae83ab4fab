import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judgeAudit } from "./judge.ts";

const advisory = (id: string, name: string) => ({
  source: 1,
  name,
  dependency: name,
  title: "it leaks",
  url: `https://github.com/advisories/${id}`,
  severity: "high",
  range: "<2.0.0",
});
const report = (vulnerabilities: object): string =>
  JSON.stringify({ auditReportVersion: 2, vulnerabilities, metadata: {} });
const explain = (id: string) => ({ advisory: id, reason: "not reached" });
const ANSWERED = { kind: "answered", unexplained: [], stale: [] };

describe("what npm audit says", () => {
  it("is fine without a vulnerability", () => assert.deepEqual(judgeAudit(report({}), []), ANSWERED));

  it("is a line for each advisory, once for all packages that it reaches", () => {
    const a = { via: [advisory("GHSA-1", "a"), advisory("GHSA-2", "a")] };
    const result = judgeAudit(report({ a, b: { via: ["a"] }, c: { via: ["b", advisory("GHSA-2", "a")] } }), [
      explain("GHSA-2"),
    ]);
    assert.deepEqual(result, { ...ANSWERED, unexplained: ["GHSA-1 (high) a <2.0.0: it leaks"] });
  });

  it("is fine if each advisory is explained", () =>
    assert.deepEqual(judgeAudit(report({ a: { via: [advisory("GHSA-1", "a")] } }), [explain("GHSA-1")]), ANSWERED));

  it("shows explanations that are not needed any more", () =>
    assert.deepEqual(judgeAudit(report({}), [explain("GHSA-1")]), { ...ANSWERED, stale: ["GHSA-1"] }));

  it("is no answer, in npm's words, from a registry that has no audits", () => {
    const refused = JSON.stringify({
      message: "405 Method Not Allowed - POST",
      statusCode: 405,
      error: { summary: "" },
    });
    assert.deepEqual(judgeAudit(refused, []), { kind: "unsupported", message: "405 Method Not Allowed - POST" });
  });

  it("is a failure without an answer", () => {
    for (const statusCode of [500, 503, undefined])
      assert.deepEqual(judgeAudit(JSON.stringify({ message: "no luck", statusCode }), []), {
        kind: "failed",
        message: "no luck",
      });
  });

  it("must be JSON", () => assert.throws(() => judgeAudit("", []), SyntaxError));
});
