import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import {
  BUDGETS,
  budgetDefinition,
  handlesOf,
  reserved,
  setBudgetStage,
  startProcess,
  writeBudget,
} from "../../budget-stage.ts";
import type { Stage } from "../../stage.ts";

const DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io";

let stage: Stage;
afterEach(() => stage.close());

/** Replaces the original's definition by ours. */
function defineStatus(): void {
  const { store } = stage.emulator;
  const earlier = store.get(DEFINITIONS, undefined, BUDGETS);
  assert.ok(earlier);
  store.update(DEFINITIONS, { ...earlier, spec: budgetDefinition()["spec"] });
}

describe("on the original's CRD, which drops the status", () => {
  const note = (): string =>
    String(
      stage.emulator.store.list("leases.coordination.k8s.io", "default")[0]?.metadata.annotations?.[
        "zonewise/disrupted-pods"
      ],
    );

  it("one Lease per budget serializes writes and stores reservations", async () => {
    stage = await setBudgetStage({ crd: "upstream" });
    writeBudget(stage);
    const [one, two] = [startProcess(stage), startProcess(stage, "two")];
    const answers = await Promise.all([one.requestDisruption("zone-a-0"), two.requestDisruption("zone-b-0")]);
    assert.equal(answers.filter((word) => word === "Allowed").length, 1, answers.join());
    assert.deepEqual(reserved(stage), {});
    const [pod = ""] = Object.keys(JSON.parse(note()) as object);
    const denied = `1 pod not ready in ${pod.slice(0, -2)}`;
    // A process that has not seen the Lease yet finds it at its write.
    assert.equal(await startProcess(stage, "three").requestDisruption("zone-c-0"), denied);
    assert.equal(await one.requestDisruption("zone-c-1"), denied);
    const budget = stage.emulator.store.get(BUDGETS, "default", "ingester");
    const [lease] = stage.emulator.store.list("leases.coordination.k8s.io", "default");
    assert.equal(lease?.metadata.ownerReferences?.[0]?.uid, budget?.metadata.uid);
  });

  it("a reservation is released there, too", async () => {
    stage = await setBudgetStage({ crd: "upstream" });
    writeBudget(stage);
    const { reserver } = startProcess(stage);
    const request = { namespace: "default", name: "ingester-zone-a-0", dryRun: false, deadlineAt: Infinity };
    const [handle] = handlesOf(await reserver.reserve(request));
    assert.ok(handle);
    await reserver.release(handle, {});
    assert.equal(note(), "{}");
  });

  it("reservations of the Lease count, too, once the CRD keeps the status and it has something else", async () => {
    stage = await setBudgetStage({ crd: "upstream" });
    writeBudget(stage);
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "Allowed");
    defineStatus();
    const { store } = stage.emulator;
    const budget = store.get(BUDGETS, "default", "ingester");
    assert.ok(budget);
    store.update(BUDGETS, { ...budget, status: { conditions: [] } });
    assert.equal(await startProcess(stage, "two").requestDisruption("zone-b-0"), "1 pod not ready in ingester-zone-a");
  });

  it("once the CRD keeps the status, the Lease is no longer needed", async () => {
    stage = await setBudgetStage({ crd: "upstream" });
    writeBudget(stage);
    const one = startProcess(stage);
    await one.requestDisruption("zone-a-0");
    defineStatus();
    await stage.time.advance(41_000);
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
  });
});

it("a Lease is looked for, before StatefulSets and pods, until something was reserved on the budget itself", async () => {
  stage = await setBudgetStage();
  writeBudget(stage);
  const { store } = stage.emulator;
  const { status: _, ...fresh } = store.get(BUDGETS, "default", "ingester") ?? assert.fail();
  store.update(BUDGETS, fresh);
  const { requestDisruption, calls } = startProcess(stage);
  const leasesRead = (): number => calls.filter((call) => /\bleases\b/.test(call)).length;
  assert.equal(await requestDisruption("zone-a-0"), "Allowed");
  assert.deepEqual([leasesRead(), Object.keys(reserved(stage))], [1, ["ingester-zone-a-0"]]);
  // What is reserved meanwhile conflicts then; what has ended by the time of the later lists, they show.
  const after = new Set(calls.slice(calls.findIndex((call) => /\bleases\b/.test(call))));
  for (const list of ["apps/v1/statefulsets", "core/v1/pods"]) assert.ok(after.has(`GET ${list} collection`), list);
  assert.equal(await requestDisruption("zone-b-0"), "1 pod not ready in ingester-zone-a");
  assert.equal(leasesRead(), 1);
});
