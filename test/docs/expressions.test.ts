/** The expressions that users copy: they are PromQL, and an alert does not pass because what it is about is gone. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import type { RolloutGate } from "../../infra/kubernetes/custom-resources.ts";
import { readGate } from "../../reconciler/gates/gate.ts";
import { findEmptyComparisons, sampleValues } from "../../reconciler/gates/placeholder-values.ts";
import { readExpression } from "../../reconciler/checks/expression.ts";
import { gateOf } from "../reconciler/gates/builders.ts";
import { PAGES, readPage, ROOT } from "./pages.ts";

interface Found {
  readonly expr: string;
  readonly successWhen: string;
}

interface Query {
  readonly expr?: unknown;
  readonly successWhen?: string;
}

interface Checked {
  readonly query: Query;
  readonly baseline: Query;
  readonly successWhen: string;
}

/** Gates have placeholders. */
const VALUES = sampleValues(gateOf());

/** Every query in a value, however deep. */
function queriesIn(value: unknown): Found[] {
  if (typeof value !== "object" || value === null) return [];
  const { query, baseline, successWhen = "NoData", ...rest } = value as Partial<Checked>;
  const own = [query, baseline].flatMap((one) =>
    typeof one?.expr === "string" ? [{ expr: one.expr, successWhen: one.successWhen ?? successWhen }] : [],
  );
  return [...own, ...Object.values(rest).flatMap(queriesIn)];
}

const blocksOf = (page: string): string[] => [...page.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, text = ""]) => text);
const EXAMPLES = globSync("examples/**/*.yaml", { cwd: ROOT });
const SOURCES = [
  ...PAGES.flatMap((path) => blocksOf(readPage(path)).map((text) => ({ path, text }))),
  ...EXAMPLES.map((path) => ({ path, text: readPage(path) })),
];
const FOUND = SOURCES.flatMap(({ path, text }) =>
  parseAllDocuments(text).flatMap((one) => queriesIn(one.toJS()).map((query) => ({ path, ...query }))),
);

describe("the expressions of the documentation", () => {
  it("are found", () => {
    const paths = new Set(FOUND.map(({ path }) => path));
    for (const path of ["docs/gates.md", "docs/phased-rollouts.md"]) assert.ok(paths.has(path), path);
  });
  for (const { path, expr, successWhen } of FOUND)
    it(`${path}: ${expr.replaceAll(/\s+/g, " ")}`, () => {
      assert.deepEqual(readExpression(expr, VALUES), { warnings: [] });
      if (successWhen === "WithinBaseline") return;
      if (successWhen === "NoData") assert.match(expr, /\bor absent\(/, "no data is no success");
      if (/\brate\(/.test(expr)) assert.match(expr, /\bor up\{[^}]+\} == 0\b/);
    });
});

describe("the gates of the examples", () => {
  const gates = EXAMPLES.flatMap((path) =>
    parseAllDocuments(readPage(path))
      .map((one) => one.toJS() as RolloutGate & { readonly kind?: string })
      .filter(({ kind }) => kind === "RolloutGate"),
  );
  it("are found", () => assert.ok(gates.some(({ metadata }) => metadata.name === "against-the-other-zones")));
  for (const object of gates)
    it(`${object.metadata.name} can be read, and compares pods that there are`, () => {
      const metadata = { ...object.metadata, namespace: "mimir" };
      const gate = readGate({ ...object, metadata }) ?? assert.fail();
      assert.ok(gate.checks.length > 0, "its spec cannot be read");
      assert.deepEqual(findEmptyComparisons(gate), []);
      for (const { query, baseline } of gate.checks)
        for (const expr of [query.expr, baseline?.expr ?? "up"])
          assert.deepEqual(readExpression(expr, sampleValues(gate)), { warnings: [] });
    });
});
