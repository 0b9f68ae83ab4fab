/** The alerts and recording rules over two clusters, by promtool; and the mixin, by jsonnet. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { readRules, testRules } from "../../cluster/observability/prometheus-server.ts";
import { ROOT } from "../manifests.ts";

const lacks = (tool: string, name: string): false | string =>
  spawnSync(tool, ["--version"]).status === 0 ? false : `there is no ${tool}: apt-get install ${name}`;

const one = (cluster: string, series: string, labels: string, values: string) => ({
  series: `${series}{cluster="${cluster}", ${labels}}`,
  values,
});
const GROUP = 'namespace="mimir", rollout_group="ingester"';
const sample = (labels: string, value: number) => ({ labels: `{${labels}}`, value });

describe("two clusters in one Prometheus", { skip: lacks("promtool", "prometheus") }, () => {
  const tick = (cluster: string, values: string) =>
    one(cluster, "zonewise_last_tick_timestamp_seconds", 'job="mimir/rollout-operator", namespace="mimir"', values);
  const firing = (minute: number, ...samples: readonly ReturnType<typeof sample>[]) => ({
    expr: 'count by (cluster) (ALERTS{alertname="ZonewiseTickMissing", alertstate="firing"})',
    eval_time: `${minute}m`,
    exp_samples: samples,
  });

  it("miss the ticks of the one whose series are gone, and not of the other", async () => {
    const series = [tick("a", "0+60x60"), tick("b", "0+60x20 _x40")];
    const checks = [firing(18), firing(50, sample('cluster="b"', 1))];
    await testRules(readRules(), [{ interval: "1m", input_series: series, promql_expr_test: checks }]);
  });

  it("miss the ticks of the one whose reconciler stands still, and not of the other", async () => {
    const series = [tick("a", "0+60x60"), tick("b", "0+60x20 1200x40")];
    const checks = [firing(18), firing(50, sample('cluster="b"', 1))];
    await testRules(readRules(), [{ interval: "1m", input_series: series, promql_expr_test: checks }]);
  });

  it("do not take an installation for missing that has another job now", async () => {
    const again = one(
      "a",
      "zonewise_last_tick_timestamp_seconds",
      'job="renamed", namespace="mimir"',
      "_x20 1200+60x40",
    );
    const series = [tick("a", "0+60x20 _x40"), again];
    await testRules(readRules(), [
      { interval: "1m", input_series: series, promql_expr_test: [firing(18), firing(50)] },
    ]);
  });

  it("say which groups wait, why, and for how long", async () => {
    const phase = (cluster: string, name: string) =>
      one(cluster, "zonewise_group_phase", `${GROUP}, phase="${name}", pod="x"`, "1x20");
    const series = [
      phase("a", "Waiting"),
      phase("b", "Ready"),
      one("a", "zonewise_group_held", `${GROUP}, reason="GateWaiting", pod="x"`, "1x20"),
      // The other replica shows them from now on.
      one("a", "zonewise_group_held", `${GROUP}, reason="GateWaiting", pod="y"`, "1x20"),
      one("a", "zonewise_rollout_last_step_timestamp_seconds", GROUP, "60x20"),
    ];
    const says = (expr: string, ...samples: readonly ReturnType<typeof sample>[]) => ({
      expr,
      eval_time: "10m",
      exp_samples: samples,
    });
    const recorded = (name: string, labels: string, value: number) =>
      says(name, { labels: `${name}{${labels}}`, value });
    const reason = `cluster="a", ${GROUP}, reason="GateWaiting"`;
    const checks = [
      says(
        "cluster_phase:zonewise_groups:count",
        { labels: 'cluster_phase:zonewise_groups:count{cluster="a", phase="Waiting"}', value: 1 },
        { labels: 'cluster_phase:zonewise_groups:count{cluster="b", phase="Ready"}', value: 1 },
      ),
      recorded("cluster_namespace_rollout_group_reason:zonewise_group_held:max", reason, 1),
      recorded("cluster_reason:zonewise_groups_held:count", 'cluster="a", reason="GateWaiting"', 1),
      recorded("cluster_namespace_rollout_group:zonewise_rollout_wait_seconds:max", `cluster="a", ${GROUP}`, 540),
    ];
    await testRules(readRules(), [{ interval: "1m", input_series: series, promql_expr_test: checks }]);
  });
});

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
