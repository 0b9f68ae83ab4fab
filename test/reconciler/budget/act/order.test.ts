/** A reservation made during the tick's reads must not count as one whose pod is gone. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { createLog } from "../../../../infra/log.ts";
import { createBudgetMaintenance } from "../../../../reconciler/budget/act/maintain-budgets.ts";
import { reserved, setBudgetStage, startProcess, writeBudget } from "../../budget-stage.ts";
import { tickOnce } from "../../stage.ts";

const POD = "ingester-zone-a-0";

it("a pod that was recreated and reserved after the list of pods keeps its reservation", async (t) => {
  const stage = await setBudgetStage();
  t.after(() => stage.close());
  writeBudget(stage);
  const { cluster } = stage.connect();
  const clock = stage.clock;
  const log = createLog({ level: "error", write: () => {}, now: () => new Date(clock.now()) });
  let raced = false;
  const racing: Cluster = {
    ...cluster,
    async *list(resource, query, call) {
      yield* cluster.list(resource, query, call);
      if (resource.plural !== "pods" || raced) return;
      raced = true;
      stage.emulator.store.remove("pods", "default", POD, { gracePeriodSeconds: 0 });
      await stage.time.advance(3000);
      assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "Allowed");
    },
  };
  const maintenance = createBudgetMaintenance({
    cluster: racing,
    clock,
    log,
    onBudgets: () => {},
  });
  // The first tick of a process always reads the budgets.
  await tickOnce(stage, cluster, { maintenance });
  await tickOnce(stage, racing, { maintenance, takeResync: () => true });
  assert.ok(raced);
  assert.deepEqual(Object.keys(reserved(stage)), [POD]);
});
