import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { RolloutError } from "../../infra/errors.ts";
import type { Fault } from "../emulator/faults.ts";
import { BUDGETS, reserved, setBudgetStage, startProcess, writeBudget } from "./budget-stage.ts";
import type { Stage } from "./stage.ts";

let stage: Stage;
afterEach(() => stage.close());

const conflictOn = (more: Partial<Fault> = {}): void =>
  void stage.emulator.faults.inject({ effect: { kind: "conflict" }, resource: BUDGETS, verb: "update", ...more });

describe("a reservation in trouble", () => {
  it("a conflict means gathering and deciding anew", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    conflictOn({ times: 2 });
    const one = startProcess(stage);
    assert.equal(await one.ask("zone-a-0"), "Allowed");
    assert.equal(one.calls.length, 12);
  });

  it("conflicts until the deadline are a no for now", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    conflictOn();
    assert.equal(await startProcess(stage).ask("zone-a-0"), "NotNow");
  });

  it("a lost answer to the reservation leaves it, and does not stand in the way of the same pod", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    conflictOn({ effect: { kind: "dropAfter" }, times: 1 });
    assert.equal(await startProcess(stage).ask("zone-a-0"), "Allowed");
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
  });

  it("an API server in trouble is a no for now", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    stage.emulator.faults.inject({ effect: { kind: "error" } });
    assert.equal(await startProcess(stage).ask("zone-a-0"), "NotNow");
    stage.emulator.faults.clear();
    assert.equal(await startProcess(stage).ask("zone-a-0", { deadlineMs: 0 }), "NotNow");
  });

  it("an attempt may take as long as the most patient of those that share it", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, { maxUnavailable: 2 });
    const { cluster, ...connected } = stage.connect();
    const slow: typeof cluster = {
      ...cluster,
      async *list(resource, query, call) {
        if ((call?.deadlineMs ?? Infinity) < 1000) throw new RolloutError("Timeout", "a list takes a second");
        yield* cluster.list(resource, query, call);
      },
    };
    const { ask } = startProcess({ ...stage, connect: () => ({ ...connected, cluster: slow }) });
    assert.equal(await ask("zone-a-0", { deadlineMs: 500 }), "NotNow");
    const both = [ask("zone-a-0", { deadlineMs: 500 }), ask("zone-a-1", { deadlineMs: 5000 })];
    assert.deepEqual(await Promise.all(both), ["Allowed", "Allowed"]);
  });

  it("a reservation is taken back: that one, not another of the same pod", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const { reserver } = startProcess(stage);
    const ask = { namespace: "default", name: "ingester-zone-a-0", dryRun: false, deadlineAt: Infinity };
    const first = (await reserver.reserve(ask)).held;
    await stage.time.advance(41_000);
    const second = (await reserver.reserve(ask)).held;
    assert.ok(first && second);
    await reserver.withdraw(first, {});
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
    conflictOn({ times: 2 });
    await reserver.withdraw(second, {});
    assert.deepEqual(reserved(stage), {});
    stage.emulator.faults.inject({ effect: { kind: "error" } });
    await reserver.withdraw(second, {});
  });
});
