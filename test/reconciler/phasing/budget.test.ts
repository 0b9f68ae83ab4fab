/** A phased rollout under a zone-aware disruption budget. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { composeBudgets } from "../../../reconciler/reservations/compose.ts";
import { createMayDisrupt } from "../../../reconciler/reservations/may-disrupt.ts";
import { budgetDefinition, BUDGETS, reserved, writeBudget } from "../budget-stage.ts";
import { applySet, createRollout, edit, SETS, setPhasedStage } from "./stage.ts";

it("the pod below the partition is reserved in its budget before the partition is lowered, and a pod that another holds keeps it", async () => {
  const stage = await setPhasedStage();
  try {
    const { store } = stage.emulator;
    store.create("customresourcedefinitions.apiextensions.k8s.io", budgetDefinition());
    await stage.time.advance(1000);
    await applySet(stage, "x:1");
    await applySet(stage, "x:1", { name: "other" });
    for (const name of ["db", "other"])
      edit(stage, SETS, name, (set) => ({ ...set, metadata: { ...set.metadata, labels: { app: "cache" } } }));
    await stage.time.advance(10_000);
    writeBudget(stage, { selector: { matchLabels: { app: "cache" } }, maxUnavailable: 1 });
    const uidOf = (pod: string): string => store.get("pods", "default", pod)?.metadata.uid ?? "";
    const time = new Date(stage.clock.now()).toISOString();
    edit(stage, BUDGETS, "ingester", (budget) => ({
      ...budget,
      status: { disruptedPods: { "db-0": { uid: uidOf("db-0"), time, by: "a drain" } } },
    }));

    const { cluster } = stage.connect();
    const { budgets } = createMetrics();
    const log = createLog({ level: "error", write: () => {}, now: () => new Date(0) });
    const { reserver } = composeBudgets({ cluster, clock: stage.clock, log, metrics: budgets, identity: "one" });
    createRollout(stage);
    await stage.tick({ mayDisrupt: createMayDisrupt(reserver, stage.clock, budgets) });
    await stage.tickFor(10);
    await applySet(stage, "x:2");
    await stage.tickFor(60);
    assert.equal(stage.set().spec.updateStrategy.rollingUpdate?.partition, 3);
    assert.ok(stage.events.some(({ reason }) => reason === "StepHeld"));

    const uid = uidOf("db-2");
    for (let i = 0; i < 120 && stage.set().spec.updateStrategy.rollingUpdate?.partition === 3; i++) await stage.tickFor(1);
    assert.equal(stage.set().spec.updateStrategy.rollingUpdate?.partition, 2);
    assert.equal(reserved(stage)["db-2"]?.uid, uid);
  } finally {
    await stage.close();
  }
});
