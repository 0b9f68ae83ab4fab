/** Budgets of many tenants, each with a pattern of its own: only the one that decides is compiled. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it, mock } from "node:test";
import { setImmediate } from "node:timers/promises";
import { RE2JS } from "re2js";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { listBudgets } from "../../../reconciler/budget/act/budget-store.ts";
import { createBudgetKeeper } from "../../../reconciler/budget/act/keep-budgets.ts";
import { zone } from "../../builders/groups.ts";
import { BUDGETS as KIND, setBudgetStage, startProcess, writeBudget } from "../budget-stage.ts";
import type { Stage } from "../stage.ts";

const BUDGETS = 60;

let stage: Stage;
/** Patterns that were compiled, in order. */
let compiled: string[];
/** Patterns stay compiled from test to test: each has its own. */
let tests = 0;

beforeEach(async () => {
  stage = await setBudgetStage();
  tests++;
  for (let i = 0; i < BUDGETS; i++)
    writeBudget(
      stage,
      {
        selector: { matchLabels: { tenant: `t${i}` } },
        podNamePartitionRegex: `tenant-${i}-${tests}-zone-[a-z]-([0-9]+)`,
        crossZoneEvictionDelay: "1m",
      },
      `tenant-${i}`,
    );
  compiled = [];
  const compile = RE2JS.compile.bind(RE2JS);
  mock.method(RE2JS, "compile", (pattern: string) => {
    compiled.push(pattern);
    return compile(pattern);
  });
});
afterEach(async () => {
  mock.restoreAll();
  await stage.close();
});

describe("of 60 budgets with patterns", () => {
  it("a list compiles none", async () => {
    const listed = await listBudgets("default", { cluster: stage.connect().cluster });
    assert.equal(listed.length, BUDGETS);
    assert.deepEqual(compiled, []);
  });

  it("an eviction compiles the one that selects its pod, once", async () => {
    const pattern = "(?:one-of-sixty)?[a-z\\-]+-zone-[a-z]-([0-9]+)";
    writeBudget(stage, { podNamePartitionRegex: pattern });
    const one = startProcess(stage);
    for (const pod of ["zone-a-0", "zone-a-1"]) assert.equal(await one.requestDisruption(pod), "Allowed");
    assert.deepEqual(compiled, [`^${pattern}$`]);
  });

  it("one that selects the pod and has an invalid pattern denies its eviction", async () => {
    writeBudget(stage, { podNamePartitionRegex: "zone-(a" });
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "BudgetInvalid");
  });

  it("their keeper compiles a few at a time", async () => {
    const { cluster: direct } = stage.connect();
    const items = stage.emulator.store.list(KIND);
    // Nothing else gives others the process: the zones are known, and writes are answered at once.
    const cluster = {
      ...direct,
      async *list({ plural }: { readonly plural: string }) {
        if (plural === "zoneawarepoddisruptionbudgets") yield { items, resourceVersion: "1" };
      },
      replace: async () => ({}),
    } as unknown as Cluster;
    const zones = Array.from({ length: BUDGETS }, (_, i) => ({
      ...zone({ name: `zone-${i}`, labels: { tenant: `t${i}` } }),
      namespace: "default",
    }));
    const keep = createBudgetKeeper({
      cluster,
      clock: stage.clock,
      log: createLog({ level: "error", write: () => {}, now: () => new Date(0) }),
      metrics: createMetrics().budgets,
      emitEvents: () => {},
      noteKind: () => {},
    });
    const mostAtOnce: number[] = [];
    let isOver = false;
    const context = { fence: { write: () => ({}) }, stop: new AbortController().signal };
    const keeping = keep(["default"], new Map([["default/g", zones]]), context).finally(() => (isOver = true));
    for (let before = 0; !isOver || before < compiled.length;) {
      mostAtOnce.push(compiled.length - before);
      before = compiled.length;
      await setImmediate();
    }
    await keeping;
    assert.equal(compiled.length, BUDGETS);
    assert.ok(Math.max(...mostAtOnce) <= 8, mostAtOnce.join());
  });
});
