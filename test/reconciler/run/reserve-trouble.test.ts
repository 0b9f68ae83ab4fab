import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../../infra/clock.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { createLog } from "../../../infra/log.ts";
import { composeBudgets } from "../../../reconciler/budget/act/compose.ts";
import type { Fault } from "../../emulator/faults.ts";
import {
  BUDGETS,
  type DisruptionOptions,
  handlesOf,
  reserved,
  setBudgetStage,
  startProcess,
  writeBudget,
} from "../budget-stage.ts";
import type { Stage } from "../stage.ts";
import { amend } from "../../builders/objects.ts";

const silent = createLog({ level: "error", write: () => {}, now: () => new Date(0) });

let stage: Stage;
afterEach(() => stage.close());

const conflictOn = (more: Partial<Fault> = {}): void =>
  void stage.emulator.faults.inject({ effect: { kind: "conflict" }, resource: BUDGETS, verb: "update", ...more });

describe("a reservation under errors", () => {
  it("a conflict leads to a new gather and decision", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    conflictOn({ times: 2 });
    const one = startProcess(stage);
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
    assert.equal(one.calls.length, 14);
  });

  it("conflicts until the deadline end in NotNow", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    conflictOn();
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "NotNow");
  });

  it("a lost answer leaves the reservation in place, and it does not block the same pod", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    conflictOn({ effect: { kind: "dropAfter" }, times: 1 });
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "Allowed");
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
  });

  it("errors of the API server end in NotNow", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    stage.emulator.faults.inject({ effect: { kind: "error" } });
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "NotNow");
    stage.emulator.faults.clear();
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0", { deadlineMs: 0 }), "NotNow");
  });

  it("a turn may last until the latest deadline of the requests that share it", async () => {
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
    const { requestDisruption } = startProcess({ ...stage, connect: () => ({ ...connected, cluster: slow }) });
    assert.equal(await requestDisruption("zone-a-0", { deadlineMs: 500 }), "NotNow");
    assert.equal(await requestDisruption("zone-a-0", { dryRun: true }), "Allowed");
    const both = [
      requestDisruption("zone-a-0", { deadlineMs: 500 }),
      requestDisruption("zone-a-1", { deadlineMs: 5000 }),
    ];
    assert.deepEqual(await Promise.all(both), ["Allowed", "Allowed"]);
  });

  it("a batch ends at its deadline, regardless of the number of pages: nothing is written for refused requests", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const { cluster, calls } = stage.connect();
    const slow: typeof cluster = {
      ...cluster,
      async *list(resource, query, call) {
        for await (const page of cluster.list(resource, query, call)) {
          await sleep(60);
          yield page;
        }
      },
    };
    const { reserver } = composeBudgets({
      cluster: slow,
      clock: systemClock,
      log: silent,
      identity: "one",
    });
    const deadlineAt = systemClock.monotonic() + 130;
    const { verdict } = await reserver.reserve({
      namespace: "default",
      name: "ingester-zone-a-0",
      dryRun: false,
      deadlineAt,
    });
    assert.equal(verdict.reason, "NotNow");
    await sleep(200);
    assert.deepEqual(reserved(stage), {});
    assert.deepEqual(
      calls.filter((call) => call.startsWith("PUT")),
      [],
    );
  });

  it("evictions under one budget do not wait for those under another", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    writeBudget(stage, { selector: { matchLabels: { "rollout-group": "store-gateway" } } }, "store-gateway");
    const { cluster, ...connected } = stage.connect();
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const stuck: typeof cluster = {
      ...cluster,
      async *list(resource, query, call) {
        if (resource.plural === "pods" && query.labelSelector === "rollout-group=store-gateway") {
          begun.resolve();
          await released.promise;
        }
        yield* cluster.list(resource, query, call);
      },
    };
    amend(stage.emulator.store, "Pod", "ingester-zone-c-0", { labels: { "rollout-group": "store-gateway" } });
    const { requestDisruption } = startProcess({ ...stage, connect: () => ({ ...connected, cluster: stuck }) });
    const waiting = requestDisruption("zone-c-0");
    await begun.promise;
    assert.equal(await requestDisruption("zone-a-0"), "Allowed");
    assert.equal(await requestDisruption("zone-a-1"), "1 pod not ready in ingester-zone-a");
    released.resolve();
    assert.equal(await waiting, "OwnerNotFound");
  });

  for (const seconds of [16, 41])
    it(`the rollout may reuse an eviction's reservation of ${seconds} s ago, and never releases it: the eviction may still take effect`, async () => {
      stage = await setBudgetStage();
      writeBudget(stage);
      await startProcess(stage, "one").requestDisruption("zone-a-0");
      await stage.time.advance(seconds * 1000);
      const { reserver } = startProcess(stage, "rollout");
      const rollout = { maxUnavailable: 1 };
      const result = await reserver.reserve({
        namespace: "default",
        name: "ingester-zone-a-0",
        rollout,
        dryRun: false,
        deadlineAt: Infinity,
      });
      assert.deepEqual([result.verdict.reason, handlesOf(result)], ["Allowed", []]);
      assert.equal(
        await startProcess(stage, "two").requestDisruption("zone-b-0"),
        "1 pod not ready in ingester-zone-a",
      );
    });

  for (const seconds of [1, 41])
    it(`the rollout never releases what it or a rollout before it reserved ${seconds} s ago: that write may still take effect`, async () => {
      stage = await setBudgetStage();
      writeBudget(stage);
      const request = {
        namespace: "default",
        name: "ingester-zone-a-0",
        rollout: { maxUnavailable: 1 },
        dryRun: false,
        deadlineAt: Infinity,
      };
      const { reserver } = startProcess(stage, "rollout");
      const answers = [await reserver.reserve(request)];
      for (const by of ["rollout", "successor"]) {
        await stage.time.advance(seconds * 1000);
        answers.push(await (by === "rollout" ? reserver : startProcess(stage, by).reserver).reserve(request));
      }
      assert.deepEqual(
        answers.map((answer) => [answer.verdict.reason, handlesOf(answer).length > 0]),
        [
          ["Allowed", true],
          ["Allowed", false],
          ["Allowed", false],
        ],
      );
    });

  it("a release removes exactly its own reservation, not another of the same pod", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const { reserver } = startProcess(stage);
    const request = { namespace: "default", name: "ingester-zone-a-0", dryRun: false, deadlineAt: Infinity };
    const [first] = handlesOf(await reserver.reserve(request));
    await stage.time.advance(41_000);
    await reserver.reserve(request);
    assert.ok(first);
    await reserver.release(first, {});
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
  });

  it("a release is repeated after a conflict, and ends after any other error", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const { reserver } = startProcess(stage);
    const [handle] = handlesOf(
      await reserver.reserve({
        namespace: "default",
        name: "ingester-zone-a-0",
        dryRun: false,
        deadlineAt: Infinity,
      }),
    );
    assert.ok(handle);
    conflictOn({ times: 2 });
    await reserver.release(handle, {});
    assert.deepEqual(reserved(stage), {});
    stage.emulator.faults.inject({ effect: { kind: "error" } });
    await reserver.release(handle, {});
  });
});

describe("a young reservation", () => {
  const ROLLOUT = { rollout: { maxUnavailable: 1 } };
  const CASES: readonly [string, DisruptionOptions, by: string][] = [
    ["for an eviction is reused by an eviction through another process", {}, "one"],
    ["of a rollout, which may release it, is not reused by an eviction", ROLLOUT, "two"],
  ];
  for (const [name, first, by] of CASES)
    it(name, async () => {
      stage = await setBudgetStage();
      writeBudget(stage);
      assert.equal(await startProcess(stage, "one").requestDisruption("zone-a-0", first), "Allowed");
      await stage.time.advance(20_000);
      assert.equal(await startProcess(stage, "two").requestDisruption("zone-a-0"), "Allowed");
      assert.equal(reserved(stage)["ingester-zone-a-0"]?.by, by);
    });
});

it("shortly before the deadline nothing is reserved: the write could take effect after the answer", async () => {
  stage = await setBudgetStage();
  writeBudget(stage);
  const { cluster, calls } = stage.connect();
  const slow: typeof cluster = {
    ...cluster,
    async *list(resource, query) {
      yield* cluster.list(resource, query);
      if (resource.plural === "pods") await stage.time.advance(4970);
    },
    replace: (resource, replacement) => cluster.replace(resource, replacement),
  };
  const { requestDisruption } = startProcess({ ...stage, connect: () => ({ cluster: slow, calls }) });
  assert.equal(await requestDisruption("zone-a-0", { deadlineMs: 5000 }), "NotNow");
  assert.deepEqual(reserved(stage), {});
});
