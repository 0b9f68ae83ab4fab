/**
 * The row "Node updates" of the dashboard over what a scrape a minute of the node API reads during a campaign: every
 * panel has data. Time is simulated.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { showNodes } from "../../../functions/nodes/show-nodes.ts";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { fillVariables, readRules, testRules } from "../../cluster/observability/prometheus-server.ts";
import {
  createPolicy,
  NAMESPACE,
  NODES,
  report,
  setFleet,
  setNode,
  shadowOf,
  stepAgent,
} from "../../reconciler/nodes/act/stage.ts";
import { ROOT } from "../manifests.ts";
import { startRecording } from "./recording.ts";

const NEEDS_PROMTOOL =
  spawnSync("promtool", ["--version"]).status === 0 ? false : "there is no promtool: apt-get install prometheus";
const MINUTES = 30;

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

/** The panels of the row, which is the last one. */
function readRow(title: string): readonly (readonly [title: string, expr: string])[] {
  const { panels } = JSON.parse(readFileSync(join(ROOT, "infra/observability/dashboard.json"), "utf8")) as {
    panels: Panel[];
  };
  const row = panels.slice(panels.findIndex((panel) => panel.title === title) + 1);
  return row.flatMap((panel) =>
    (panel.targets ?? []).map(({ expr }) => [panel.title, fillVariables(expr, "5m")] as const),
  );
}

/** True at the end of the recording if the query had data in any minute of it. */
const hasData = (expr: string) => ({
  expr: `count(count_over_time((${expr})[${MINUTES}m:1m])) > bool 0`,
  eval_time: `${MINUTES - 1}m`,
  exp_samples: [{ labels: "{}", value: 1 }],
});

test("every panel of node updates has data during a campaign", { skip: NEEDS_PROMTOOL }, async (t) => {
  const stage = await setFleet(t);
  createPolicy(stage, "default", { health: { minReadySeconds: 0 } });
  const { cluster, clock } = stage;
  const log = createLog({ level: "error", format: "json", write: () => {}, now: () => new Date() });
  const shown = showNodes({ cluster, clock, log, metrics: createMetrics(), identity: "one", namespace: NAMESPACE });
  const recording = startRecording({ job: "brupop", namespace: NAMESPACE }, clock.now() / 1000);

  /** The first node cannot stage its update; the second one comes back in the old version. */
  function stepHost(node: string): void {
    const { spec, status } = shadowOf(stage, node) ?? assert.fail(`no shadow of ${node}`);
    const failing = { "node-1": "StagedAndPerformedUpdate", "node-2": "RebootedIntoUpdate" }[node];
    if (spec.state !== failing || status?.current_state === "ErrorReset") return stepAgent(stage, node);
    const failedAt = new Date(clock.now()).toISOString();
    if (node === "node-2") setNode(stage, node, { bootId: "boot-2" });
    const failure = { crash_count: (status?.crash_count ?? 0) + 1, state_transition_failure_timestamp: failedAt };
    report(stage, node, { current_state: "ErrorReset", ...failure });
  }

  while (recording.minutes() < MINUTES) {
    await stage.tick();
    for (const node of NODES) stepHost(node);
    recording.add(await shown.render());
    await stage.time.advance(60_000);
  }
  const panels = readRow("Node updates");
  assert.equal(panels.length, 10);
  const absent = { ...hasData("zonewise_node_updates_frozen > 1"), exp_samples: [] };
  const tests = [...panels.map(([, expr]) => hasData(expr)), absent];
  await testRules(readRules(), [{ interval: "1m", input_series: recording.series(), promql_expr_test: tests }]);
});
