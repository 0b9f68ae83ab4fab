/** What a run counts beside its only tick is on the Lease once it is released, where the functions read it. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { METRICS } from "../../../infra/metrics/tables/metric-table.ts";
import { parseTotals, TOTALS } from "../../../infra/metrics/totals.ts";
import { createBudgetKeeper } from "../../../reconciler/budget/act/keep-budgets.ts";
import { run } from "../../../reconciler/run/run.ts";
import { setBudgetStage, writeBudget } from "../budget-stage.ts";
import { runInputOf } from "../stage.ts";

it("an invalid budget is counted by each run at rest, so that its alert goes on", async (t) => {
  const stage = await setBudgetStage();
  t.after(() => stage.close());
  writeBudget(stage, { maxUnavailable: -1 }, "invalid");
  const counts: number[] = [];
  for (const identity of ["first", "second", "third"]) {
    const { cluster } = stage.connect();
    const metrics = createMetrics();
    const log = createLog({ level: "error", write: () => {}, now: () => new Date(0) });
    const tools = { cluster, clock: stage.clock, log, emitEvents: () => {}, noteKind: () => {} };
    const keepBudgets = createBudgetKeeper({ ...tools, metrics: metrics.budgets });
    const stop = new AbortController();
    const input = { ...runInputOf(stage, cluster, identity), metrics, keepBudgets, stop: stop.signal };
    let isOver = false;
    const running = run(input).then(() => (isOver = true));
    for (let ms = 0; ms < 58_000; ms += 100) await stage.time.advance(100);
    stop.abort();
    while (!isOver) await stage.time.advance(100);
    await running;
    const [lease] = stage.emulator.store.list("leases.coordination.k8s.io", "default");
    const { series } = parseTotals(lease?.metadata.annotations?.[TOTALS]);
    const kept = series.get(METRICS.budgetsObserved.name) ?? [];
    counts.push(kept.find(({ labels }) => labels["result"] === "invalid")?.value ?? 0);
  }
  const [first = 0, second = 0, third = 0] = counts;
  assert.ok(first > 0 && second > first && third > second, counts.join(", "));
});
