/**
 * The alerts with their real durations, over what a scrape a minute reads of the functions beside the reconciler. Time
 * is simulated: no alert fires in a quarter of an hour of rollouts and evictions, and then each fires on its fault.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readRules, testRules } from "../../cluster/observability/prometheus-server.ts";
import { define } from "../../demo/definitions.ts";
import { writeBudget } from "../../reconciler/budget-stage.ts";
import { deploy, setStage } from "../../reconciler/stage.ts";
import { breakStrategy, crashTemplate, hookThat, NAMESPACE, startProcesses, startTime } from "./simulated-hour.ts";

const NEEDS_PROMTOOL =
  spawnSync("promtool", ["--version"]).status === 0 ? false : "there is no promtool: apt-get install prometheus";
const HOOKS = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const QUIET_MINUTES = 17;

/**
 * Fails unless the alerts fire as expected: at none of the quiet minutes, and each not yet at one minute, but at
 * another.
 */
async function checkAlerts(
  series: object[],
  quiet: number,
  expected: Readonly<Record<string, readonly [notYet: number, by: number]>>,
) {
  const checks = Object.entries(expected).flatMap(([alert, [notYet, by]]) => [
    firing(`alertname="${alert}",`, notYet, 0),
    firing(`alertname="${alert}",`, by, 1),
  ]);
  const none = Array.from({ length: quiet }, (_, minute) => firing("", minute, 0));
  await testRules(readRules(), [{ interval: "1m", input_series: series, promql_expr_test: [...none, ...checks] }]);
}

const firing = (matcher: string, minute: number, value: number) => ({
  expr: `count(count by (alertname) (ALERTS{${matcher}alertstate="firing"})) or vector(0)`,
  eval_time: `${minute}m`,
  exp_samples: [{ labels: "{}", value }],
});

test(
  "no alert fires in a quarter of an hour of ordinary work, and each fires on its fault",
  { skip: NEEDS_PROMTOOL, timeout: 300_000 },
  async (t) => {
    const stage = await setStage();
    const { store } = stage.emulator;
    const folder = await mkdtemp(join(tmpdir(), "quarter-hour-"));
    t.after(async () => {
      await stage.close();
      await rm(folder, { recursive: true });
    });
    await stage.emulator.writeKubeconfig(join(folder, "kubeconfig"));
    await define(store, ["rolloutgroups", "rolloutgates", "zoneawarepoddisruptionbudgets"]);
    const { scrape, reconcile, evict } = await startProcesses(stage, join(folder, "kubeconfig"));
    const { recording, during, minute } = startTime(stage, scrape);
    const minutes = async (count: number, work: (i: number) => unknown = () => {}): Promise<void> => {
      for (let i = 0; i < count; i++) {
        await work(i);
        await minute();
      }
    };

    let stop = new AbortController();
    let running = reconcile(stop.signal);
    const hook = store.create(HOOKS, hookThat("Fail"));
    const rollOut = (image: string): void => {
      for (const group of ["ingester", "store"]) deploy(stage, image, { group, podLabels: { "rollout-group": group } });
    };
    writeBudget(stage);
    rollOut("x:1");
    await minutes(QUIET_MINUTES, async (i) => {
      if (i % 6 === 2) rollOut(`x:${i}`);
      if (i % 6 === 5) for (const zone of ["a", "b"]) await during(evict(`ingester-zone-${zone}-0`));
    });
    const valuesOf = (start: string): string | undefined =>
      recording.series().find(({ series }) => series.startsWith(start))?.values;
    assert.match(valuesOf('zonewise_pods_replaced_total{namespace="default",rollout_group="store"') ?? "", / 27$/);
    assert.match(
      valuesOf('rollout_operator_zpdb_eviction_requests_total{reason="denied",status="429",job=') ?? "",
      / [1-9]\d*$/,
    );

    stop.abort();
    await during(running);
    store.remove("secrets", NAMESPACE, "rollout-operator-self-signed-certificate");
    crashTemplate(stage, "ingester");
    breakStrategy(stage, "store-zone-b");
    store.update(HOOKS, {
      ...(store.get(HOOKS, undefined, hook.metadata.name) ?? hook),
      ...hookThat("Ignore", hook.metadata),
    });
    deploy(stage, "x:1", { group: "cache", annotations: { "grafana.com/rollout-downscale-leader": "nobody" } });
    writeBudget(stage, { selector: { matchLabels: { name: "nothing" } }, podNamePartitionRegex: "(a)(b)" }, "invalid");
    stop = new AbortController();
    running = reconcile(stop.signal, { SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION: "1h" });
    await minutes(10);

    stop.abort();
    await during(running);
    const stoppedAt = recording.minutes();
    // Each decision waits for a slow API server: as many as there are callers are always being made.
    stage.emulator.faults.inject({ resource: "pods", verb: "list", effect: { kind: "latency", ms: 20_000 } });
    let isOver = false;
    const asking = Array.from({ length: 20 }, async () => {
      while (!isOver) await evict("ingester-zone-c-0");
    });
    await minutes(14);
    isOver = true;
    await during(Promise.all(asking));

    await checkAlerts(recording.series(), QUIET_MINUTES, {
      IncorrectWebhookConfigurationFailurePolicy: [QUIET_MINUTES + 4, QUIET_MINUTES + 8],
      BadZoneAwarePodDisruptionBudgetConfiguration: [QUIET_MINUTES + 4, QUIET_MINUTES + 9],
      ZonewiseGroupFailing: [QUIET_MINUTES + 9, QUIET_MINUTES + 13],
      ZonewiseCertificateExpiring: [QUIET_MINUTES + 4, QUIET_MINUTES + 8],
      ZonewiseGroupBlocked: [QUIET_MINUTES + 14, QUIET_MINUTES + 18],
      ZonewiseRolloutStuck: [QUIET_MINUTES + 19, QUIET_MINUTES + 23],
      ZonewiseTickMissing: [stoppedAt + 8, stoppedAt + 12],
      HighNumberInflightZpdbRequests: [stoppedAt + 5, stoppedAt + 12],
    });
  },
);
