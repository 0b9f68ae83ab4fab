/**
 * The alerts and the dashboard name only metrics that exist, with labels that they have, and each alert has its runbook.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { METRICS } from "../../../infra/metrics/tables/metric-table.ts";
import { fillVariables, readRules, type Rule } from "../../cluster/observability/prometheus-server.ts";
import { ROOT } from "../manifests.ts";

interface Alert extends Rule {
  readonly alert: string;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

const all = readRules().groups.flatMap((group) => group.rules);
const rules = all.filter((rule): rule is Alert => rule.alert !== undefined);
const records = all.filter((rule) => rule.record !== undefined);
const dashboard = JSON.parse(readFileSync(join(ROOT, "infra/observability/dashboard.json"), "utf8")) as Dashboard;
const panels = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const));
const NAMES = new Set<string>(
  Object.values(METRICS)
    .flatMap(({ name, type }) =>
      type === "histogram" ? ["_bucket", "_sum", "_count"].map((end) => name + end) : [name],
    )
    .concat(records.map(({ record = "" }) => record)),
);
/** Labels that Prometheus adds to all series of a target. */
const OF_TARGET = ["cluster", "job", "namespace", "pod", "le"];

const KEYWORDS = new Set(["and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring"]);
const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const MATCHERS = /\{([^}]*)\}/g;

/** What the query names that does not exist. Whether it is PromQL, promtool and a real Prometheus say. */
function findUnknown(query: string): string[] {
  const text = fillVariables(query, "5m")
    .replaceAll(/"(?:\\.|[^"\\])*"/g, "")
    .replaceAll(/\[[^\]]*\]/g, "");
  const lists = [GROUPING, MATCHERS].flatMap((one) =>
    [...text.matchAll(one)].flatMap(([, list = ""]) => list.split(",")),
  );
  const labels = lists.map((one) => one.replace(/[=!].*/, "").trim()).filter((label) => label !== "");
  const rest = text.replaceAll(GROUPING, " ").replaceAll(MATCHERS, " ");
  const metrics = [...rest.matchAll(/\b[a-zA-Z_:][\w:]*(?![\w:]|\s*\()/g)]
    .map(([name]) => name)
    .filter((name) => !KEYWORDS.has(name));
  const rows = Object.values(METRICS).filter(({ name }) => metrics.some((metric) => metric.startsWith(name)));
  const grouped = records
    .filter(({ record = "" }) => metrics.includes(record))
    .flatMap(({ expr }) => /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(", ") ?? []);
  const known = new Set<string>([...OF_TARGET, ...grouped, ...rows.flatMap((row) => row.labels as readonly string[])]);
  return [...metrics.filter((metric) => !NAMES.has(metric)), ...labels.filter((label) => !known.has(label))];
}

/** Stands for a place of the user's: the chart's default, which its template replaces. */
const RUNBOOK_BASE = "https://zonewise.example/";

it("the chart puts its value in place of the base of runbook_url", () => {
  const read = (path: string): string => readFileSync(join(ROOT, "infra/helm/zonewise", path), "utf8");
  assert.ok(read("values.yaml").includes(`runbookBase: ${RUNBOOK_BASE}\n`));
  assert.ok(
    read("templates/observability.yaml").includes(`replace "${RUNBOOK_BASE}" .Values.prometheusRule.runbookBase`),
  );
});

describe("the alerts", () => {
  const page = "docs/operate/runbooks.md";
  const sections = readFileSync(join(ROOT, page), "utf8").split(/^## /m).slice(1);
  for (const { alert = "", expr, annotations } of rules)
    it(`${alert} names metrics that exist, and has a section`, () => {
      assert.deepEqual(findUnknown(expr), []);
      assert.equal(annotations["runbook_url"], `${RUNBOOK_BASE}${page}#${alert.toLowerCase()}`);
      assert.ok(URL.canParse(annotations["runbook_url"]), "it is absolute");
      const section = sections.find((one) => one.startsWith(`${alert}\n`)) ?? assert.fail(alert);
      assert.match(section, /\*\*Look at\*\*[^]*\*\*Do:?\*\*/);
    });
  it("are all that have a section", () =>
    assert.deepEqual(
      sections.map((section) => section.split("\n")[0]).toSorted(),
      rules.map(({ alert }) => alert).toSorted(),
    ));
});

describe("the recording rules", () => {
  for (const { record, expr } of records)
    it(`${record} names metrics that exist`, () => assert.deepEqual(findUnknown(expr), []));
  it("are there", () => assert.ok(records.length > 0));
});

describe("in a Prometheus of several clusters", () => {
  for (const { alert, record, expr } of all)
    it(`${alert ?? record} keeps the cluster wherever it adds up`, () =>
      assert.deepEqual(
        (expr.match(/\bby \([^)]*\)/g) ?? []).filter((by) => !/\bcluster\b/.test(by)),
        [],
      ));

  /** Each selector of a query, with its name. */
  const selectorsIn = (expr: string): string[] =>
    expr.match(/[a-z_:]+\{[^}]*\}|\b(?:zonewise|brupop|rollout_operator)_\w+/g) ?? [];
  for (const [title, expr] of panels)
    it(`${title}: its query asks for the chosen clusters and jobs`, () => {
      assert.ok(selectorsIn(expr).length > 0);
      for (const selector of selectorsIn(expr)) {
        assert.ok(selector.includes('cluster=~"$cluster"'), selector);
        if (!selector.startsWith("kube_") && !selector.includes(":"))
          assert.ok(selector.includes('job=~"$job"'), selector);
      }
    });
});

describe("the dashboard", () => {
  for (const [title, expr] of panels)
    it(`${title}: its query names metrics that exist`, () => assert.deepEqual(findUnknown(expr), []));
  it("has queries", () => assert.ok(panels.length > 20, `${panels.length}`));
});
