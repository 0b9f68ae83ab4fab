import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { fillPlaceholders, readExpression } from "../../../reconciler/checks/expression.ts";
import { type PlaceholderValues, rangeSince } from "../../../reconciler/checks/placeholders.ts";
import { runs } from "../../runs.ts";

const VALUES: PlaceholderValues = {
  group: { kind: "name", name: "in.gester" },
  zone: { kind: "name", name: "zone-b" },
  candidate_pods: { kind: "pods", sets: [{ set: "zone-a" }, { set: "set", ordinals: [3, 10] }] },
  other_pods: { kind: "pods", sets: [{ set: "set", ordinals: [] }] },
  range: { kind: "duration", seconds: 300 },
};

describe("placeholders", () => {
  for (const [name, expr, filled] of [
    ["a name in a label matcher", `up{group="$(group)"}`, `up{group="in.gester"}`],
    ["a name in a regular expression, where a dot is a dot", `up{a=~"$(group)/.+"}`, `up{a=~"in[.]gester/.+"}`],
    ["pods", "up{pod!~`$(candidate_pods)`}", "up{pod!~`(?:zone-a-[0-9]+|set-(?:3|10))`}"],
    ["no pods, which match nothing", `up{pod=~"$(other_pods)"}`, `up{pod=~"(?:-)"}`],
    ["durations", "rate(x[$(range)] offset $(range))", "rate(x[300s] offset 300s)"],
    ["beside a function that is not known", `nofunction(x{a="$(zone)"}[$(range)])`, `nofunction(x{a="zone-b"}[300s])`],
    ["nothing where nothing is to be filled in", `label_replace(x, "a", "$1", "b", "(.*)")`, undefined],
    ["nothing in a regular expression that ends", `x{a=~"b$"}`, undefined],
  ] as const)
    it(`fill in ${name}`, () => assert.deepEqual(fillPlaceholders(expr, VALUES), { expr: filled ?? expr }));

  const matcher = "must stand in the quoted value of a label matcher";
  for (const [expr, problem] of [
    [`up{a="$(zones)"}`, /^\$\(zones\) is no placeholder here: those are \$\(group\), \$\(zone\), /],
    [`up{a="$(toString)"}`, /^\$\(toString\) is no placeholder/],
    [`up{a="$()"}`, /^\$\(\) is no placeholder/],
    [`up{a=$(zone)}`, `$(zone) ${matcher}`],
    [`$(zone)`, `$(zone) ${matcher}`],
    [`up{$(zone)="a"}`, `$(zone) ${matcher}`],
    [`{"$(zone)"="a"}`, `$(zone) ${matcher}`],
    [`{"$(zone)"}`, `$(zone) ${matcher}`],
    [`label_replace(x, "a", "$(zone)", "b", "c")`, `$(zone) ${matcher}`],
    [`# $(zone)\nx`, `$(zone) ${matcher}`],
    [`up{a="$(candidate_pods)"}`, "$(candidate_pods) must stand in a label matcher with =~ or !~"],
    [`up{a="$(range)"}`, /^\$\(range\) must stand where a duration does/],
    ["rate(x[5$(range)])", /^\$\(range\) must stand where a duration does/],
    [`up{a="$(zone)"`, /not valid PromQL at character 14, at its end, once its placeholders are filled in$/],
  ] as const)
    it(`refuse ${JSON.stringify(expr)}`, () => {
      const found = fillPlaceholders(expr, VALUES).problem ?? "";
      if (typeof problem === "string") assert.equal(found, problem);
      else assert.match(found, problem);
      assert.equal(readExpression(expr, VALUES).error, found);
    });

  it("have no value where an object gives none", () =>
    assert.equal(readExpression(`up{a="$(zone)"}`).error, "$(zone) is no placeholder here: there is none"));

  it("never let a value be more than a string: what is no name of an object is not filled in", () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom(`x"} or vector(0) #`, "a`", "a\\", "a\nb", "a|b", ".*", "a{", "", "-", "a-"),
      fc.stringMatching(/^[a-z0-9.-]{1,20}$/),
    );
    const shape = (expr: string): string => expr.replaceAll(/"[^"]*"/g, `""`);
    let filled = 0;
    fc.assert(
      fc.property(text, fc.constantFrom("=", "!=", "=~", "!~"), fc.boolean(), (name, op, isPods) => {
        const value = isPods ? ({ kind: "pods", sets: [{ set: name }] } as const) : ({ kind: "name", name } as const);
        const written = `sum(up{a${op}"$(value)", b="c"}) > 0`;
        const { expr } = fillPlaceholders(written, { value });
        if (expr === undefined) return;
        filled++;
        assert.equal(shape(expr), shape(written));
        assert.deepEqual(readExpression(expr), { warnings: [] });
        const [, inner = ""] = /a\W+"([^"]*)"/.exec(expr) ?? [];
        if (op.includes("~")) assert.ok(new RegExp(`^(?:${inner})$`).test(isPods ? `${name}-7` : name), expr);
        else assert.equal(inner, name);
      }),
      { numRuns: runs(1000) },
    );
    assert.ok(filled > 0);
  });

  it("a range is the time since a moment, from a minute to an hour", () =>
    assert.deepEqual(
      [0, 90_400, 100 * 3_600_000, -1].map((ms) => rangeSince(0, ms)),
      [60, 90, 3600, 60].map((seconds) => ({ kind: "duration", seconds })),
    ));
});
