import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createFreshness } from "../../../../infra/kubernetes/freshness.ts";
import { createLog } from "../../../../infra/log.ts";
import { gatherZones } from "../../../../reconciler/snapshot/gather.ts";
import { listBudgets } from "../../../../reconciler/budget/act/gather-budget.ts";
import { createBudgetStatuses } from "../../../../reconciler/group-status/act/budget-statuses.ts";
import { BUDGETS, setBudgetStage, writeBudget } from "../../budget-stage.ts";
import type { Stage } from "../../stage.ts";

interface Status {
  readonly disruptedPods?: object;
  readonly zones?: readonly { readonly healthy: number; readonly disruptionsAllowed?: number }[];
  readonly conditions?: readonly { readonly status: string; readonly reason: string }[];
}

function maintainerOf(stage: Stage) {
  const { cluster, calls } = stage.connect();
  const { clock } = stage;
  const log = createLog({ level: "error", write: () => {}, now: () => new Date(0) });
  const statuses = createBudgetStatuses({ cluster, clock, log });
  return {
    calls,
    async tick() {
      const source = { cluster, freshness: createFreshness(clock, log) };
      statuses.note("default", await listBudgets("default", source));
      const { groups } = await gatherZones(["default"], source);
      await statuses.write(groups, { write: () => ({}) }, new AbortController().signal);
    },
  };
}

const statusOf = (stage: Stage, name = "ingester"): Status => ({
  ...(stage.emulator.store.get(BUDGETS, "default", name)?.["status"] as Status | undefined),
});
const writes = (calls: readonly string[]): number => calls.filter((call) => call.startsWith("PUT")).length;

describe("the status of a disruption budget", () => {
  let stage: Stage;
  before(async () => void (stage = await setBudgetStage()));
  after(() => stage.close());

  it("says what it protects, and is written when that changes, every 30 s at most", async () => {
    writeBudget(stage);
    const { calls, tick } = maintainerOf(stage);
    await tick();
    const { zones, conditions } = statusOf(stage);
    assert.deepEqual(
      zones?.map(({ healthy, disruptionsAllowed }) => [healthy, disruptionsAllowed]),
      [
        [3, 1],
        [3, 1],
        [3, 1],
      ],
    );
    assert.deepEqual(
      conditions?.map(({ status, reason }) => [status, reason]),
      [["True", "Protecting"]],
    );
    await tick();
    await stage.time.advance(30_000);
    await tick();
    assert.equal(writes(calls), 1);
  });

  it("follows another spec at once, and a budget that is new", async () => {
    const { calls, tick } = maintainerOf(stage);
    await tick();
    writeBudget(stage, { maxUnavailable: 0 });
    writeBudget(stage, {}, "second");
    await tick();
    assert.deepEqual(
      statusOf(stage).zones?.map(({ disruptionsAllowed }) => disruptionsAllowed),
      [0, 0, 0],
    );
    assert.equal(statusOf(stage, "second").conditions?.length, 1);
    const before = writes(calls);
    await tick();
    assert.equal(writes(calls), before);
    stage.emulator.store.remove(BUDGETS, "default", "second");
    writeBudget(stage);
    await tick();
  });

  it("keeps reservations, and gives way to one that was made meanwhile", async () => {
    const { store } = stage.emulator;
    const budget = store.get(BUDGETS, "default", "ingester") ?? assert.fail("no budget");
    const disruptedPods = {
      "ingester-zone-a-0": { uid: "u", by: "x", time: new Date(stage.time.now()).toISOString() },
    };
    store.update(BUDGETS, { ...budget, status: { ...(budget["status"] as object), disruptedPods } });
    await maintainerOf(stage).tick();
    const after = statusOf(stage);
    assert.deepEqual(after.disruptedPods, disruptedPods);
    assert.deepEqual(
      after.zones?.map(({ healthy }) => healthy),
      [2, 3, 3],
    );
  });

  it("says that it selects nothing", async () => {
    writeBudget(stage, { selector: { matchLabels: { "rollout-group": "nobody" } } }, "nothing");
    await maintainerOf(stage).tick();
    assert.deepEqual(
      statusOf(stage, "nothing").conditions?.map(({ status, reason }) => [status, reason]),
      [["False", "SelectsNothing"]],
    );
  });
});

it("a definition without a status gets no write that fails, and keeps its reservations elsewhere", async () => {
  const stage = await setBudgetStage({ crd: "upstream" });
  writeBudget(stage);
  const { calls, tick } = maintainerOf(stage);
  await tick();
  await tick();
  assert.equal(statusOf(stage).conditions, undefined);
  assert.equal(writes(calls), 1);
  await stage.close();
});
