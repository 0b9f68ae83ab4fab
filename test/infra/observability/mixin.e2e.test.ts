/** The mixin, by jsonnet. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { readRules } from "../../cluster/observability/prometheus-server.ts";
import { ROOT } from "../manifests.ts";

const lacks = (tool: string, name: string): false | string =>
  spawnSync(tool, ["--version"]).status === 0 ? false : `there is no ${tool}: apt-get install ${name}`;

describe("the mixin", { skip: lacks("jsonnet", "jsonnet") }, () => {
  interface Mixin {
    readonly prometheusAlerts: ReturnType<typeof readRules>;
    readonly prometheusRules: ReturnType<typeof readRules>;
    readonly grafanaDashboards: Readonly<Record<string, { readonly panels: readonly object[] }>>;
  }
  function build(settings: string): Mixin {
    const file = `local mixin = (import 'infra/observability/mixin/mixin.libsonnet') ${settings};
      { [name]: mixin[name] for name in ['prometheusAlerts', 'prometheusRules', 'grafanaDashboards'] }`;
    const { status, stdout, stderr } = spawnSync("jsonnet", ["-e", file], {
      cwd: ROOT,
      encoding: "utf8",
      maxBuffer: 10_000_000,
    });
    assert.equal(status, 0, stderr);
    return JSON.parse(stdout) as Mixin;
  }

  it("has all rules and the dashboard", () => {
    const { prometheusAlerts, prometheusRules, grafanaDashboards } = build("");
    assert.deepEqual([...prometheusAlerts.groups, ...prometheusRules.groups], readRules().groups);
    assert.ok((grafanaDashboards["zonewise.json"]?.panels.length ?? 0) > 20);
  });

  it("puts the place of the runbooks and more labels into each alert", () => {
    const { prometheusAlerts } = build("{ _config+:: { runbookBase: 'https://wiki/', alertLabels: { team: 'db' } } }");
    for (const { labels, annotations } of prometheusAlerts.groups.flatMap(({ rules }) => rules)) {
      assert.equal(labels?.["team"], "db");
      assert.ok(labels?.["severity"]);
      assert.match(annotations?.["runbook_url"] ?? "", /^https:\/\/wiki\/docs\/operate\/runbooks\.md#/);
    }
  });
});
