import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readExpression } from "../../../reconciler/checks/expression.ts";

const GOOD = [
  "up",
  `sum by (job) (rate(http_requests_total{code=~"5..", job!="x"}[5m])) / sum by (job) (rate(http_requests_total[5m])) > 0.05`,
  `ALERTS{alertstate="firing"}`,
  "max_over_time(up[1h:1m] offset 5m)",
  "vector(1)",
  "histogram_quantile(0.99, sum by (le) (rate(x_bucket[5m])))",
  "x == bool 1 or y",
  "sum(x > bool 1) > 2",
  "up # a comment",
  "# a comment\nup",
  "-up",
];

describe("the reading of expressions", () => {
  for (const expr of GOOD) it(`accepts ${expr}`, () => assert.deepEqual(readExpression(expr), { warnings: [] }));

  for (const [expr, place] of [
    ["up{", "at character 4, at its end"],
    ["sum by (a) (x) >", "at character 17, at its end"],
    ["up down", `at character 4, near "down"`],
    ["", "at character 1, at its end"],
    ["nofunction(x) +", "at character 16, at its end"],
    ["up{}(x)", `at character 5, near "(x)"`],
    [`${"f(".repeat(2)}x))`, `at character 2, near "(f(x))"`],
    ["rate(x[5])) ", `at character 11, near ")"`],
  ] as const)
    it(`refuses ${JSON.stringify(expr)}, and says where`, () => {
      const { error } = readExpression(expr);
      assert.equal(error, `the expression is not valid PromQL ${place}`);
    });

  for (const [expr, warning] of [
    ["1", /gives a scalar/],
    ["(1 + 2) * 3", /gives a scalar/],
    ["-time()", /gives a scalar/],
    ["scalar(up)", /gives a scalar/],
    [`"text"`, /gives a string/],
    ["up[5m]", /gives a range vector/],
    ["up[5m:1m]", /gives a range vector/],
    ["up == bool 1", /comparison with bool/],
    ["(up > bool 0)", /comparison with bool/],
  ] as const)
    it(`warns of ${expr}`, () => {
      const { error, warnings } = readExpression(expr);
      assert.equal(error, undefined);
      assert.equal(warnings.length, 1);
      assert.match(warnings.join(), warning);
    });

  for (const [expr, names] of [
    ["holt_winters(x[5m], 0.1, 0.2) > 1", ["holt_winters"]],
    ["sum(xrate(x[5m])) / max_of(a, b)", ["xrate", "max_of"]],
  ] as const)
    it(`leaves ${expr} to Prometheus, which may have other functions`, () => {
      const { error, warnings } = readExpression(expr);
      assert.deepEqual([error, warnings.length], [undefined, names.length]);
      names.forEach((name, i) =>
        assert.match(warnings[i] ?? "", new RegExp(`^${name} is no function that is known here`)),
      );
    });

  it("bounds the functions that it does not know", () =>
    assert.match(readExpression(`${"nofunction(".repeat(9)}x${")".repeat(9)}`).error ?? "", /at character 99, near/));

  it("warns of both a scalar and its comparison with bool", () =>
    assert.equal(readExpression("1 > bool 2").warnings.length, 2));

  it("bounds what it reads", () =>
    assert.equal(readExpression("a".repeat(10_001)).error, "the expression is longer than 10000 characters"));
});
