import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { fillPlaceholders, type PlaceholderValues, rangeSince } from "../../../reconciler/checks/placeholders.ts";
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
    ["a name with spaces after the operator", `up{a!~ '$(group)'}`, `up{a!~ 'in[.]gester'}`],
    ["names in other quotes", "up{a='$(group)',b!=`$(zone)`}", "up{a='in.gester',b!=`zone-b`}"],
    [
      "a name beside escaped quotes",
      String.raw`up{a=~"\"$(group)\"",b="\\$(group)"}`,
      String.raw`up{a=~"\"in[.]gester\"",b="\\in.gester"}`,
    ],
    [
      "a name in an argument",
      `label_replace(x, "a", "$(zone)", "b", "c")`,
      `label_replace(x, "a", "zone-b", "b", "c")`,
    ],
    ["a quoted name of a metric", `{"$(group)"}`, `{"in.gester"}`],
    ["after a comment with a quote", `# it's "\nup{a=~"$(group)"}`, `# it's "\nup{a=~"in[.]gester"}`],
    ["within a string with a comment's sign", `up{a="#$(zone)"}`, `up{a="#zone-b"}`],
    ["what is no PromQL, as Prometheus says what is wrong", `up{a="$(zone)"`, `up{a="zone-b"`],
    ["a string that does not end", `up{a="$(zone)`, `up{a="zone-b`],
    ["no pods, which match nothing", `up{pod=~"$(other_pods)"}`, `up{pod=~"(?:-)"}`],
    ["durations", "rate(x[$(range)] offset $(range))", "rate(x[300s] offset 300s)"],
    ["beside a function that is not known", `nofunction(x{a="$(zone)"}[$(range)])`, `nofunction(x{a="zone-b"}[300s])`],
    ["nothing where nothing is to be filled in", `label_replace(x, "a", "$1", "b", "(.*)")`, undefined],
    ["nothing in a regular expression that ends", `x{a=~"b$"}`, undefined],
  ] as const)
    it(`fill in ${name}`, () => assert.deepEqual(fillPlaceholders(expr, VALUES), { expr: filled ?? expr }));

  const quotes = "must stand in quotes";
  for (const [expr, problem] of [
    [`up{a="$(zones)"}`, /^\$\(zones\) is not a placeholder here: those are \$\(group\), \$\(zone\), /],
    [`up{a="$(toString)"}`, /^\$\(toString\) is not a placeholder/],
    [`up{a="$()"}`, /^\$\(\) is not a placeholder/],
    [`up{a=$(zone)}`, `$(zone) ${quotes}`],
    [`$(zone)`, `$(zone) ${quotes}`],
    [`up{$(zone)="a"}`, `$(zone) ${quotes}`],
    [`# $(zone)\nx`, `$(zone) ${quotes}`],
    [`up{a="$(candidate_pods)"}`, "$(candidate_pods) must stand in the quotes after =~ or !~"],
    [`up{pod=~$(candidate_pods)}`, "$(candidate_pods) must stand in the quotes after =~ or !~"],
    [`label_replace(x, "a", "b", "c", "$(candidate_pods)")`, /must stand in the quotes after =~ or !~/],
    [`up{pod=~"a",pod="$(candidate_pods)"}`, /must stand in the quotes after =~ or !~/],
    [`up{a="$(range)"}`, /^\$\(range\) must stand where a duration does/],
    ["rate(x[5$(range)])", /^\$\(range\) must stand where a duration does/],
    ["rate(x[$(range)m])", /^\$\(range\) must stand where a duration does/],
    ["rate(x[1.$(range)])", /^\$\(range\) must stand where a duration does/],
    [`up{a="$("}) $(zone)`, /^\$\("}\) is not a placeholder/],
    ["a".repeat(4097), "the expression is longer than 4096 characters"],
  ] as const)
    it(`refuse ${JSON.stringify(expr.slice(0, 60))}`, () => {
      const found = fillPlaceholders(expr, VALUES).problem ?? "";
      if (typeof problem === "string") assert.equal(found, problem);
      else assert.match(found, problem);
    });

  it("have no value where an object gives none", () =>
    assert.equal(fillPlaceholders(`up{a="$(zone)"}`).problem, "$(zone) is not a placeholder here: there is none"));

  it("are bounded with the pods that they stand for", () => {
    const ordinals = Array.from({ length: 1000 }, (_, i) => i);
    const many: PlaceholderValues = { pods: { kind: "pods", sets: [{ set: "set", ordinals }] } };
    assert.match(fillPlaceholders('up{pod=~"$(pods)"}', many).expr ?? "", /\|999\)\)"}$/);
    assert.equal(
      fillPlaceholders(`up{pod=~"${"$(pods)".repeat(500)}"}`, many).problem,
      "the expression is longer than 100000 characters once its placeholders are filled in",
    );
  });

  it("never let a value be more than a string: what is no name of an object is not filled in", () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom(`x"} or vector(0) #`, "a`", "a\\", "a\nb", "a|b", ".*", "a{", "", "-", "a-"),
      fc.stringMatching(/^[a-z0-9.-]{1,20}$/),
    );
    const drawn = fc.record({
      name: text,
      op: fc.constantFrom("=", "!=", "=~", "!~"),
      quote: fc.constantFrom('"', "'", "`"),
      isPods: fc.boolean(),
    });
    const shape = (expr: string): string => expr.replaceAll(/(["'`])[^"'`]*\1/g, "$1$1");
    let filled = 0;
    fc.assert(
      fc.property(drawn, ({ name, op, quote, isPods }) => {
        const value = isPods ? ({ kind: "pods", sets: [{ set: name }] } as const) : ({ kind: "name", name } as const);
        const written = `sum(up{a${op}${quote}$(value)${quote}, b="c"}) > 0`;
        const { expr } = fillPlaceholders(written, { value });
        if (expr === undefined) return;
        filled++;
        assert.equal(shape(expr), shape(written));
        const [, inner = ""] = /a[=!~]+["'`]([^"'`]*)["'`]/.exec(expr) ?? [];
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
