/** The client against a real Prometheus, plain and behind TLS with credentials. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { certify } from "../../certify.ts";
import { createPrometheusClient, type PrometheusQuery } from "../../../infra/prometheus/act/client.ts";
import { fillPlaceholders } from "../../../reconciler/checks/placeholders.ts";
import { sampleValues } from "../../../reconciler/gates/placeholder-values.ts";
import { FOUND } from "../../docs/expressions.ts";
import { gateOf } from "../../builders/gates.ts";
import { PROMETHEUS_MISSING, startGuard, startRealPrometheus, type RealPrometheus } from "../../prometheus/real.ts";

describe("a real Prometheus", { skip: PROMETHEUS_MISSING }, () => {
  let prometheus: RealPrometheus;
  const client = createPrometheusClient({ timeoutMs: 60_000, allowedHosts: [] });
  const ask = (expr: string, more: Partial<PrometheusQuery> = {}) =>
    client.query({ url: prometheus.url, expr, ...more });
  before(async () => {
    prometheus = await startRealPrometheus();
  });
  after(() => prometheus[Symbol.asyncDispose]());

  it("answers with series, or without", async () => {
    const full = await ask("test_errors");
    assert.match(
      full.kind === "Vector" ? (full.sample ?? "") : "",
      /^test_errors\{instance="127\.0\.0\.1:\d+", job="test"\} 0$/,
    );
    assert.deepEqual(await ask("test_errors > 0"), { kind: "Vector", samples: 0, warnings: [] });
  });

  it("follows its exporter", async () => {
    prometheus.errors = 7;
    await prometheus.until("test_errors == 7", true);
    const answer = await ask("test_errors > 0");
    assert.ok(
      answer.kind === "Vector" && answer.samples === 1 && answer.sample?.endsWith(" 7"),
      JSON.stringify(answer),
    );
    prometheus.errors = 0;
    await prometheus.until("test_errors > 0", false);
  });

  for (const [expr, code, words] of [
    ["up{", "BadQuery", /parse error/],
    ["nofunction(up)", "BadQuery", /unknown function/],
    ["up + on() group_left() (up or vector(1))", "NotEvaluated", /many-to-many matching not allowed.*\(422\)/],
    ['label_replace(up, "a", "$1", "b", "(")', "NotEvaluated", /invalid regular expression/],
    ["1", "NotAVector", /scalar/],
    [`"text"`, "NotAVector", /string/],
    ["up[1m]", "NotAVector", /matrix/],
  ] as const)
    it(`gets ${code} for ${expr}`, async () => {
      const answer = await ask(expr);
      assert.equal(answer.kind === "Error" ? answer.code : answer.kind, code, JSON.stringify(answer));
      assert.match(answer.kind === "Error" ? answer.message : "-", words);
    });

  it("understands every expression of the documentation", async () => {
    for (const { path, expr } of FOUND) {
      const filled = fillPlaceholders(expr, sampleValues(gateOf()));
      const answer = await ask(filled.expr ?? "");
      assert.equal(answer.kind, "Vector", `${path}: ${expr}: ${JSON.stringify(answer)}`);
    }
  });

  for (const [name, authorization] of [
    ["basic", `Basic ${Buffer.from("user:password").toString("base64")}`],
    ["bearer", "Bearer token"],
  ] as const)
    it(`answers behind TLS and ${name} authentication, and refuses others`, async () => {
      const { caPem, certPem, keyPem } = await certify("prometheus");
      await using guard = await startGuard(prometheus.url, authorization, { cert: certPem, key: keyPem });
      const to = { url: guard.url, caBundle: caPem };
      for (const trust of [to, { url: guard.url, insecureSkipVerify: true }]) {
        const answer = await ask("test_errors", { ...trust, credentials: { authorization, secrets: [] } });
        assert.equal(answer.kind, "Vector", JSON.stringify(answer));
      }
      for (const [more, code] of [
        [to, "Refused"],
        [{ ...to, credentials: { authorization: "Bearer wrong", secrets: [] } }, "Refused"],
        [{ url: guard.url }, "Unreachable"],
      ] as const) {
        const refused = await ask("test_errors", more);
        assert.equal(refused.kind === "Error" && refused.code, code, JSON.stringify(refused));
      }
    });
});
