/** docs/reference has a row for every entry of the code's tables, with the same text, and no other row. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { safeParse } from "zod/mini";
import * as targets from "../../functions/index.ts";
import type { Variable } from "../../infra/config/variable-schemas.ts";
import { VARIABLE_ROWS } from "../../infra/config/variables.ts";
import type { MetricRow } from "../../infra/metrics/registry.ts";
import { METRICS } from "../../infra/metrics/tables/metric-table.ts";
import { ANNOTATIONS, LABELS } from "../../reconciler/model/annotations.ts";
import { VERDICTS } from "../../reconciler/budget/verdict.ts";
import { policySpec } from "../../reconciler/nodes/policy.ts";
import { FAILURE_REASONS, SKIP_REASONS } from "../../reconciler/nodes/snapshot.ts";
import { namesIn, readPage, readSources, rowsOf } from "./pages.ts";

const sorted = (names: Iterable<string>): string[] => [...new Set(names)].toSorted();
const code = (name: string): string => `\`${name}\``;

function assertRows(page: string, names: readonly string[]): void {
  assert.deepEqual(sorted(namesIn(page)), sorted(names));
}

/** The section under a heading of the second level. */
function sectionOf(page: string, heading: string): string {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  assert.ok(section, heading);
  return section;
}

describe("docs/reference/variables.md", () => {
  const page = readPage("docs/reference/variables.md");

  function rowOf(name: string, { default: value, fallback, schema, meaning, allowed, oldName }: Variable): string {
    const unset = safeParse(schema, undefined).success ? "" : "required";
    const stated =
      value !== undefined ? code(value) : fallback !== undefined ? `the value of ${code(fallback)}` : unset;
    const old = oldName === undefined ? "" : `; ${code(oldName)} is its old name`;
    return `| ${code(name)} | ${stated} | ${meaning}; ${allowed}${old} |`;
  }

  for (const [name, row] of VARIABLE_ROWS)
    it(`describes ${name} like the table of variables`, () =>
      assert.ok(page.includes(rowOf(name, row)), rowOf(name, row)));
  it("has no other row", () =>
    assertRows(
      page,
      VARIABLE_ROWS.map(([name]) => name),
    ));
});

describe("docs/reference/metrics.md", () => {
  const page = readPage("docs/reference/metrics.md");
  const metrics: readonly MetricRow[] = Object.values(METRICS);

  for (const { name, type, labels, help } of metrics) {
    const row = `| ${code(name)} | ${type} | ${labels.map(code).join(", ")} | ${help} |`;
    it(`describes ${name} like the table of metrics`, () => assert.ok(page.includes(row), row));
  }
  it("has no other row", () =>
    assertRows(
      page,
      metrics.map(({ name }) => name),
    ));
  for (const answer of new Set(Object.values(VERDICTS).map((verdict) => verdict.code)))
    it(`names the reasons of the decisions that are answered with ${answer}`, () => {
      const [, list = ""] = page.match(new RegExp(`^  - ${answer}, (.*?)\\n(?:  )?- `, "ms")) ?? [];
      const named = [...list.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
      const facts = Object.values(VERDICTS).filter((verdict) => verdict.code === answer);
      assert.deepEqual(sorted(named), sorted(facts.map(({ metric }) => metric)));
    });
  it("names the metrics that are kept on the Lease", () => {
    const [, list = ""] = page.match(/^- Of the Lease \(L\): (.*?)\n- /ms) ?? [];
    const named = metrics.map(({ name }) => name).filter((name) => list.includes(code(name)));
    assert.deepEqual(
      named,
      metrics.filter(({ kept, name }) => kept !== undefined || name === METRICS.lastTick.name).map(({ name }) => name),
    );
  });
});

describe("docs/reference/labels-and-annotations.md", () => {
  const page = readPage("docs/reference/labels-and-annotations.md");
  const sources = readSources("functions", "reconciler", "infra", "test/drill");
  const known = [...Object.values(LABELS), ...Object.values(ANNOTATIONS)];

  for (const name of known) it(`has ${name}`, () => assert.ok(namesIn(page).includes(name)));
  it("has every other of our names that the code contains", () => {
    const written = [...sources.matchAll(/"((?:zonewise|grafana\.com)\/[\w-]+)"/g)].map(([, name]) => name ?? "");
    assert.ok(written.length > known.length, `${written.length} names`);
    assert.deepEqual(
      written.filter((name) => !namesIn(page).includes(name)),
      [],
    );
  });
  it("has no row without code", () =>
    assert.deepEqual(
      namesIn(page).filter((name) => name.includes("…") || !sources.includes(`"${name}"`)),
      [],
    ));
});

describe("docs/reference/reasons.md", () => {
  const page = readPage("docs/reference/reasons.md");
  const [, events = ""] = page.split("## Other Events");

  it("has every other Event, with its type, and no Event without code", () => {
    const sources = readSources("functions", "reconciler");
    const drafted = [
      ...sources.matchAll(/\b(normal|warning)\([^")]*,\s+"(\w+)"/g),
      ...sources.matchAll(/type: "(\w+)",\s+reason: "(\w+)"/g),
    ];
    const types = drafted.map(([, type = "", name = ""]) => `${name} ${type.charAt(0).toUpperCase()}${type.slice(1)}`);
    assert.deepEqual(
      sorted(rowsOf(events).map(([name = "", type = ""]) => `${name.replaceAll("`", "")} ${type}`)),
      sorted(types),
    );
  });
});

describe("docs/node-updates", () => {
  const operate = readPage("docs/node-updates/operate.md");
  for (const [heading, names] of [
    ["Why a node waits", SKIP_REASONS],
    ["How an attempt ends", FAILURE_REASONS],
  ] as const)
    it(`has every reason under "${heading}", in order, and no other`, () =>
      assert.deepEqual(
        rowsOf(sectionOf(operate, heading)).map(([name]) => name),
        names.map(code),
      ));
  it("has every field of the policy, in order, and no other", () => {
    const fields = rowsOf(sectionOf(readPage("docs/node-updates/reference.md"), "The policy")).map(([name]) => name);
    assert.deepEqual(fields, Object.keys(policySpec.shape).map(code));
  });
});

describe("docs/reference/webhooks.md", () => {
  const page = readPage("docs/reference/webhooks.md");
  const [top = ""] = page.split("## Downscales");

  it("has every path that is served, and no other", () => {
    const served = [
      ...readSources("functions", "reconciler/budget").matchAll(
        /"(\/(?:(?:admission|pods)\/|mutate-|validate-)[\w-]+)"/g,
      ),
    ].map(([, path]) => path ?? "");
    assert.deepEqual(sorted(namesIn(top).filter((name) => name.startsWith("/"))), sorted(served));
  });
  it("has every target, and no other", () => {
    const rows = rowsOf(top);
    const named = rows.map(([first = "", second = ""]) => (first.startsWith("`/") ? second : first));
    assert.deepEqual(sorted(named), sorted(Object.keys(targets).map(code)));
  });
  it("has a section for downscales and one for disruption budgets", () => {
    assert.match(sectionOf(page, "Downscales"), /`DownscaleUndone`/);
    assert.match(sectionOf(page, "Disruption budgets"), /`status\.disruptedPods`/);
  });
});

describe("the decisions of disruption budgets, in docs/spec/behaviour.md", () => {
  it("are those of the code, with their codes and the metric's reasons", () => {
    const [, section = ""] = readPage("docs/spec/behaviour.md").split(/\*\*§5\.[12] /);
    const rows = section.split("\n").map((line) => line.slice(2, -2).split(" | "));
    const listed = rows.flatMap((cells) =>
      /^`[\w-]+`$/.test(cells.at(-1) ?? "") ? [`${cells.at(-3)?.slice(0, 3)} ${cells.at(-1)}`] : [],
    );
    assert.deepEqual(
      sorted(listed),
      sorted(Object.values(VERDICTS).map((verdict) => `${verdict.code} ${code(verdict.metric)}`)),
    );
  });
});
