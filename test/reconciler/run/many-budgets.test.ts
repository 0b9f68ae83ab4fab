/**
 * Budgets of many tenants, each with a pattern of its own: only the one that decides is compiled, and reports on the
 * others take turns.
 */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { compilePartition } from "../../../reconciler/budget/partition.ts";
import { createBudgetMaintenance } from "../../../reconciler/budget/act/maintain-budgets.ts";
import { listBudgets } from "../../../reconciler/budget/act/gather-budget.ts";
import { observeBudgets } from "../../../reconciler/budget/act/compose.ts";
import { createReserver } from "../../../reconciler/budget/act/reserve.ts";
import { createBudgetStatuses } from "../../../reconciler/budget/act/budget-statuses.ts";
import { zone } from "../builders.ts";
import { setBudgetStage, writeBudget } from "../budget-stage.ts";
import type { Stage } from "../stage.ts";

const BUDGETS = 60;

let stage: Stage;
/** Patterns that were compiled, in order. */
let compiled: string[];
const compile = (pattern: string, group: number | undefined) => {
  compiled.push(pattern);
  return compilePartition(pattern, group);
};
const silent = createLog({ level: "error", write: () => {}, now: () => new Date(0) });

beforeEach(async () => {
  stage = await setBudgetStage();
  compiled = [];
  for (let i = 0; i < BUDGETS; i++)
    writeBudget(
      stage,
      {
        selector: { matchLabels: { tenant: `t${i}` } },
        podNamePartitionRegex: `tenant-${i}-zone-[a-z]-([0-9]+)`,
        crossZoneEvictionDelay: "1m",
      },
      `tenant-${i}`,
    );
});
afterEach(() => stage.close());

const source = () => ({
  cluster: stage.connect().cluster,
  compilePartition: compile,
});

/** An eviction of a pod of zone a, decided among all budgets. */
async function evict() {
  const reserver = createReserver({
    ...source(),
    clock: stage.clock,
    by: "eviction",
    onBudgets: () => {},
    random: () => 0,
  });
  const uid = stage.emulator.store.get("pods", "default", "ingester-zone-a-0")?.metadata.uid;
  const request = {
    namespace: "default",
    name: "ingester-zone-a-0",
    uid,
    dryRun: false,
    deadlineAt: stage.clock.monotonic() + 5000,
  };
  return (await reserver.reserve(request)).verdict;
}

describe("of 60 budgets with patterns", () => {
  it("a list compiles none, nor does their maintenance", async () => {
    const maintenance = createBudgetMaintenance({
      ...source(),
      clock: stage.clock,
      log: silent,
      onBudgets: () => {},
    });
    const lists = await maintenance.beginTick(["default"]);
    assert.equal((await lists.of("default")).length, BUDGETS);
    assert.deepEqual(compiled, []);
  });

  it("an eviction compiles the one that selects its pod", async () => {
    writeBudget(stage, { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)" });
    assert.equal((await evict()).reason, "Allowed");
    assert.deepEqual([...new Set(compiled)], ["[a-z\\-]+-zone-[a-z]-([0-9]+)"]);
  });

  it("one that selects the pod and has an invalid pattern denies its eviction", async () => {
    writeBudget(stage, { podNamePartitionRegex: "zone-(a" });
    const verdict = await evict();
    assert.equal(verdict.reason, "BudgetInvalid");
    assert.match(verdict.message, /ingester is not valid: invalid value: regex is not valid/);
  });

  it("the observer judges 5 before it lets others have the process, and all in the end", async () => {
    writeBudget(stage, { podNamePartitionRegex: "zone-(a" });
    const metrics = createMetrics();
    const invalid: string[] = [];
    const observe = observeBudgets({
      log: silent,
      metrics: metrics.budgets,
      emitEvents: (drafts) => void invalid.push(...drafts.map(({ regarding }) => regarding.name)),
    });
    const budgets = await listBudgets("default", source());
    observe("default", budgets);
    assert.equal(compiled.length, 5);
    while (compiled.length <= BUDGETS) await setImmediate();
    await setImmediate();
    assert.deepEqual(invalid, ["ingester"]);
    observe("default", await listBudgets("default", source()));
    assert.deepEqual(
      [compiled.length, invalid],
      [BUDGETS + 1, ["ingester", "ingester"]],
      "what has been judged is not compiled again",
    );
  });

  it("the writer of statuses compiles a few at a time", async () => {
    // Nothing else gives others the process: the zones are known, and writes are answered at once.
    const none = { list: async function* () {}, get: async () => undefined };
    const cluster = { ...none, replace: async () => ({}) } as unknown as Cluster;
    const zones = Array.from({ length: BUDGETS }, (_, i) => ({
      ...zone({ name: `zone-${i}`, labels: { tenant: `t${i}` } }),
      namespace: "default",
    }));
    const statuses = createBudgetStatuses({ cluster, clock: stage.clock, log: silent });
    statuses.note("default", await listBudgets("default", source()));
    const mostAtOnce: number[] = [];
    let isOver = false;
    const writing = statuses
      .write(new Map([["default/g", zones]]), { fence: { write: () => ({}) }, stop: new AbortController().signal })
      .finally(() => (isOver = true));
    for (let before = 0; !isOver || before < compiled.length;) {
      mostAtOnce.push(compiled.length - before);
      before = compiled.length;
      await setImmediate();
    }
    await writing;
    assert.equal(compiled.length, BUDGETS);
    assert.ok(Math.max(...mostAtOnce) <= 8, mostAtOnce.join());
  });
});
