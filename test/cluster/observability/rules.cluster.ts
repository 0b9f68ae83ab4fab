/** The alerts by `promtool test rules`: when each fires, when it does not, and how long it takes. */
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { fillVariables, readRules, testRules } from "./prometheus-server.ts";

const GROUP = '{namespace="cache", rollout_group="ingester"}';
const HOOK =
  'kube_validating_webhook_failure_policy{namespace="cache", type="MutatingWebhook", policy="Ignore", webhook';
const INVALID =
  'rollout_operator_zpdb_configurations_observed_total{job="functions", namespace="cache", result="invalid"}';
const IN_FLIGHT = 'rollout_operator_zpdb_inflight_eviction_requests{job="functions", namespace="cache"}';
const LAST_TICK = 'zonewise_last_tick_timestamp_seconds{job="functions", namespace="cache"}';
const EXPIRY = 'zonewise_certificate_expiry_timestamp_seconds{job="functions", namespace="cache"}';
const LAST_STEP = `zonewise_rollout_last_step_timestamp_seconds${GROUP}`;
const STEP_DEADLINE = `zonewise_rollout_progress_deadline_seconds${GROUP}`;
const FAILED = `rollout_operator_group_reconciles_failed_total${GROUP}`;
const BLOCKED = (reason: string): string =>
  `zonewise_group_held{namespace="cache", rollout_group="ingester", reason="${reason}"}`;

const BYPASS = 'zonewise_gates_bypassed_until_timestamp_seconds{namespace="cache", rollout_group="ingester", zone="a"}';

const FROZEN = 'zonewise_node_updates_frozen{namespace="brupop"}';
const ACTIVE = 'zonewise_node_updates_active{namespace="brupop"}';
const CRASHES = 'zonewise_node_update_crash_count{namespace="brupop", node="node-1"}';
const LAST_PASS = 'zonewise_node_updates_last_pass_timestamp_seconds{job="functions", namespace="cache"}';
const deadline = (name: string): string =>
  `zonewise_node_update_phase_deadline_timestamp_seconds{namespace="brupop", node="node-1", phase="${name}"}`;

/**
 * Series at one value a minute, and the minutes at which the alert does not fire yet, and fires; none if it never does.
 */
const CASES: readonly (readonly [
  name: string,
  alert: string,
  series: Readonly<Record<string, string>>,
  quietAt: number,
  firesAt?: number,
])[] = [
  [
    "a webhook that fails open",
    "IncorrectWebhookConfigurationFailurePolicy",
    { [`${HOOK}="pod-eviction-cache.grafana.com"}`]: "1x30" },
    4,
    6,
  ],
  [
    "a webhook that fails closed",
    "IncorrectWebhookConfigurationFailurePolicy",
    { [`${HOOK}="pod-eviction-cache.grafana.com"}`]: "0x30" },
    25,
  ],
  [
    "zpdb-validation, which fails open by design",
    "IncorrectWebhookConfigurationFailurePolicy",
    { [`${HOOK}="zpdb-validation-cache.grafana.com"}`]: "1x30" },
    25,
  ],
  ["an invalid budget", "BadZoneAwarePodDisruptionBudgetConfiguration", { [INVALID]: "0+2x30" }, 5, 7],
  ["a budget that was invalid once", "BadZoneAwarePodDisruptionBudgetConfiguration", { [INVALID]: "0 1x30" }, 12],
  ["many evictions that wait", "HighNumberInflightZpdbRequests", { [IN_FLIGHT]: "20x30" }, 4, 6],
  ["some evictions that wait", "HighNumberInflightZpdbRequests", { [IN_FLIGHT]: "10x30" }, 25],
  ["ticks that end", "ZonewiseTickMissing", { [LAST_TICK]: "0+60x5 300x30" }, 14, 17],
  ["ticks every minute", "ZonewiseTickMissing", { [LAST_TICK]: "0+60x60" }, 30],
  ["no totals at all", "ZonewiseTickMissing", {}, 4, 6],
  ["a rollout without a step", "ZonewiseRolloutStuck", { [LAST_STEP]: "0x60", [STEP_DEADLINE]: "1800x60" }, 20, 22],
  [
    "a rollout whose steps take hours",
    "ZonewiseRolloutStuck",
    { [LAST_STEP]: "0x90", [STEP_DEADLINE]: "7200x90" },
    64,
    67,
  ],
  [
    "a rollout with a step every ten minutes",
    "ZonewiseRolloutStuck",
    { [LAST_STEP]: "0x10 600x10 1200x10 1800x10", [STEP_DEADLINE]: "1800x40" },
    38,
  ],
  ["a group that fails", "ZonewiseGroupFailing", { [FAILED]: "0+12x30" }, 10, 12],
  ["a group that failed once", "ZonewiseGroupFailing", { [FAILED]: "0x2 1x30" }, 13],
  ["a group that does not", "ZonewiseGroupFailing", { [FAILED]: "7x30" }, 25],
  ["a group that somebody has to fix", "ZonewiseGroupBlocked", { [BLOCKED("LeaderNotFound")]: "1x30" }, 14, 16],
  ["a group that waits by itself", "ZonewiseGroupBlocked", { [BLOCKED("ZoneNotReady")]: "1x30" }, 25],
  ["a bypass of gates for half an hour", "ZonewiseGatesBypassed", { [BYPASS]: "1800x60" }, 0, 2],
  ["a bypass that is over", "ZonewiseGatesBypassed", { [BYPASS]: "1800x60" }, 31],
  ["a certificate for a week less a minute", "ZonewiseCertificateExpiring", { [EXPIRY]: "604740x30" }, 4, 6],
  ["a policy that is frozen", "ZonewiseNodeUpdatesFrozen", { [FROZEN]: "0x5 1x30" }, 10, 12],
  ["a policy that was frozen", "ZonewiseNodeUpdatesFrozen", { [FROZEN]: "1x3 0x30" }, 20],
  ["a node that has failed three times", "ZonewiseNodeUpdateFailing", { [CRASHES]: "3x30" }, 4, 6],
  ["a node that has failed twice", "ZonewiseNodeUpdateFailing", { [CRASHES]: "2x30" }, 25],
  ["a node that drains for ever", "ZonewiseNodeOutOfService", { [deadline("Draining")]: "3600x120" }, 79, 82],
  [
    "a node that drains for as long as its policy lets it",
    "ZonewiseNodeOutOfService",
    { [deadline("Draining")]: "21600x360" },
    370,
  ],
  ["a node that stages for long", "ZonewiseNodeOutOfService", { [deadline("Staging")]: "600x120" }, 110],
  [
    "a node in one phase after the other",
    "ZonewiseNodeOutOfService",
    { [deadline("Draining")]: "3600x59", [deadline("Rebooting")]: "_x60 5400x55" },
    104,
  ],
  ["passes that end", "ZonewiseNodeUpdatesMissing", { [LAST_PASS]: "0+60x5 300x30", [ACTIVE]: "0x40" }, 19, 22],
  ["passes every minute", "ZonewiseNodeUpdatesMissing", { [LAST_PASS]: "0+60x60", [ACTIVE]: "1x60" }, 40],
  ["passes of node updates that were removed", "ZonewiseNodeUpdatesMissing", { [LAST_PASS]: "0x60" }, 40],
  ["a certificate for a year", "ZonewiseCertificateExpiring", { [EXPIRY]: "31536000x30" }, 25],
];

/** By name only: summaries are for people. */
const expect = (alert: string, minute: number, count: number): object => ({
  expr: `count(ALERTS{alertname="${alert}", alertstate="firing"}) or vector(0)`,
  eval_time: `${minute}m`,
  exp_samples: [{ labels: "{}", value: count }],
});

for (const [name, alert, series, quietAt, firesAt] of CASES)
  it(`${name}: ${alert} ${firesAt === undefined ? "does not fire" : `fires after ${firesAt} minutes`}`, async () => {
    const input = Object.entries(series).map(([key, values]) => ({ series: key, values }));
    const checks = [expect(alert, quietAt, 0), ...(firesAt === undefined ? [] : [expect(alert, firesAt, 1)])];
    await testRules(readRules(), [{ interval: "1m", input_series: input, promql_expr_test: checks }]);
  });

it("the dashboard lists the webhooks that fail open, and no other", async () => {
  const { panels } = JSON.parse(
    readFileSync(new URL("../../../infra/observability/dashboard.json", import.meta.url), "utf8"),
  ) as { panels: readonly { title: string; targets?: readonly { expr: string }[] }[] };
  const expr = panels.find(({ title }) => title === "Webhooks that fail open")?.targets?.[0]?.expr;
  const input = [
    ["pod-eviction", "0x5"],
    ["zpdb-validation", "1x5"],
  ].map(([webhook, values]) => ({ series: `${HOOK}="${webhook}-cache.grafana.com"}`, values }));
  const listed = '{type="MutatingWebhook", webhook="zpdb-validation-cache.grafana.com"}';
  const check = { expr: fillVariables(expr ?? "", "5m"), eval_time: "1m", exp_samples: [{ labels: listed, value: 1 }] };
  await testRules(readRules(), [{ interval: "1m", input_series: input, promql_expr_test: [check] }]);
});
