/** A phased rollout under a zone-aware disruption budget. */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { createLog } from "../../../../infra/log.ts";
import { createMetrics } from "../../../../infra/metrics/metrics.ts";
import { composeBudgets } from "../../../../reconciler/budget/act/compose.ts";
import { createMayDisrupt } from "../../../../reconciler/budget/act/may-disrupt.ts";
import { budgetDefinition, BUDGETS, reserved, writeBudget } from "../../budget-stage.ts";
import type { KubeObject } from "../../../emulator/objects.ts";
import { partitionOf } from "./play.ts";
import { applySet, createRollout, edit, FIRING, type PhasedStage, SETS, setPhasedStage } from "./stage.ts";

interface Budgeted extends PhasedStage {
  /** Reserves the pod for a drain, as the eviction webhook does; undefined ends all reservations. */
  drain(pod?: string): void;
  uidOf(pod: string): string;
}

/** The sets `db` and `other` under one budget of one unavailable pod, and a PhasedRollout of `db`. */
async function open(t: TestContext, policy: "OrderedReady" | "Parallel" = "OrderedReady"): Promise<Budgeted> {
  const stage = await setPhasedStage();
  t.after(() => stage.close());
  const { store } = stage.emulator;
  store.create("customresourcedefinitions.apiextensions.k8s.io", budgetDefinition());
  await stage.time.advance(1000);
  await applySet(stage, "x:1", { policy });
  await applySet(stage, "x:1", { name: "other" });
  for (const name of ["db", "other"])
    edit(stage, SETS, name, (set) => ({ ...set, metadata: { ...set.metadata, labels: { app: "cache" } } }));
  await stage.time.advance(10_000);
  writeBudget(stage, { selector: { matchLabels: { app: "cache" } }, maxUnavailable: 1 });
  const { cluster } = stage.connect();
  const { budgets } = createMetrics();
  const log = createLog({ level: "error", write: () => {}, now: () => new Date(0) });
  const { reserver } = composeBudgets({ cluster, clock: stage.clock, log, identity: "one" });
  createRollout(stage);
  await stage.tick({ mayDisrupt: createMayDisrupt(reserver, stage.clock, budgets) });
  await stage.tickFor(10);
  const uidOf = (pod: string): string => store.get("pods", "default", pod)?.metadata.uid ?? "";
  const reservation = (pod: string) => ({
    [pod]: {
      kind: "eviction",
      uid: uidOf(pod),
      pinned: true,
      time: new Date(stage.clock.now()).toISOString(),
      by: "a drain",
    },
  });
  const drain = (pod?: string): void =>
    edit(stage, BUDGETS, "ingester", (budget) => ({
      ...budget,
      status: { disruptedPods: pod === undefined ? {} : reservation(pod) },
    }));
  return { ...stage, drain, uidOf };
}

it("the pod below the partition is reserved in its budget before the partition is lowered, and a pod that another holds keeps it", async (t) => {
  const stage = await open(t);
  stage.drain("db-0");
  await applySet(stage, "x:2");
  await stage.tickFor(60);
  assert.equal(partitionOf(stage), 3);
  assert.ok(stage.events.some(({ reason }) => reason === "StepHeld"));

  const uid = stage.uidOf("db-2");
  for (let i = 0; i < 120 && partitionOf(stage) === 3; i++) await stage.tickFor(1);
  assert.equal(partitionOf(stage), 2);
  assert.equal(reserved(stage)["db-2"]?.uid, uid);
});

for (const policy of ["OrderedReady", "Parallel"] as const)
  it(`in a rollback each pod that is ready is reserved in its budget before it is released, one after the other (${policy})`, async (t) => {
    const stage = await open(t, policy);
    await applySet(stage, "x:2", { policy });
    for (let i = 0; i < 200 && partitionOf(stage) !== 1; i++) await stage.tickFor(1);
    stage.answer = FIRING;
    for (let i = 0; i < 100 && !stage.pods().includes("db-1@x:2"); i++) await stage.tickFor(1);
    // As the admission policy does.
    edit(stage, SETS, "db", (set) => raised(set));
    stage.drain("other-0");
    await applySet(stage, "x:1", { policy });
    await stage.tickFor(60);
    assert.deepEqual(
      stage.pods().filter((pod) => pod.endsWith("x:2")),
      ["db-1@x:2", "db-2@x:2"],
      "the drain has the budget",
    );
    assert.ok(stage.events.some(({ reason, message }) => reason === "StepHeld" && message.startsWith("db-2 stays")));

    stage.drain();
    const uid = stage.uidOf("db-2");
    await stage.tick();
    assert.equal(partitionOf(stage), 2);
    assert.equal(reserved(stage)["db-2"]?.uid, uid);
    for (let i = 0; i < 60 && partitionOf(stage) !== 3; i++) {
      await stage.tickFor(1);
    }
    await stage.tickFor(20);
    assert.deepEqual(
      stage.pods().filter((pod) => pod.startsWith("db-")),
      ["db-0@x:1", "db-1@x:1", "db-2@x:1"],
    );
    assert.equal(stage.rollout().status.phase, "Updated");
  });

function raised(set: KubeObject): KubeObject {
  const updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition: 3 } };
  return { ...set, spec: { ...(set as unknown as { spec: object }).spec, updateStrategy } };
}
