import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../../infra/clock.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { createLog } from "../../../infra/log.ts";
import { composeBudgets } from "../../../reconciler/budget/act/compose.ts";
import type { Fault } from "../../emulator/faults.ts";
import { BUDGETS, handlesOf, reserved, setBudgetStage, startProcess, writeBudget } from "../budget-stage.ts";
import type { Stage } from "../stage.ts";
import { amend } from "../../builders/objects.ts";

const silent = createLog({ level: "error", write: () => {}, now: () => new Date(0) });

/** Its budget allows one pod. */
let stage: Stage;
beforeEach(async () => {
  stage = await setBudgetStage();
  writeBudget(stage);
});
afterEach(() => stage.close());

/** What asks for its first pod. */
const REQUEST = { namespace: "default", name: "ingester-zone-a-0", dryRun: false, deadlineAt: Infinity };
const ROLLOUT = { rollout: { maxUnavailable: 1 } };

const conflictOn = (more: Partial<Fault> = {}): void =>
  void stage.emulator.faults.inject({ effect: { kind: "conflict" }, resource: BUDGETS, verb: "update", ...more });

describe("a reservation under errors", () => {
  it("a conflict leads to a new gather and decision", async () => {
    conflictOn({ times: 2 });
    const one = startProcess(stage);
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
    assert.equal(one.calls.length, 14);
  });

  it("conflicts until the deadline end in NotNow", async () => {
    conflictOn();
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "NotNow");
  });

  it("a lost answer leaves the reservation in place, and it does not block the same pod", async () => {
    conflictOn({ effect: { kind: "dropAfter" }, times: 1 });
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "Allowed");
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
  });

  it("errors of the API server end in NotNow", async () => {
    stage.emulator.faults.inject({ effect: { kind: "error" } });
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "NotNow");
    stage.emulator.faults.clear();
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0", { deadlineMs: 0 }), "NotNow");
  });

  it("a turn may last until the latest deadline of the requests that share it", async () => {
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
    const { verdict } = await reserver.reserve({ ...REQUEST, deadlineAt });
    assert.equal(verdict.reason, "NotNow");
    await sleep(200);
    assert.deepEqual(reserved(stage), {});
    assert.deepEqual(
      calls.filter((call) => call.startsWith("PUT")),
      [],
    );
  });

  it("evictions under one budget do not wait for those under another", async () => {
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
      await startProcess(stage, "one").requestDisruption("zone-a-0");
      await stage.time.advance(seconds * 1000);
      const { reserver } = startProcess(stage, "rollout");
      const result = await reserver.reserve({ ...REQUEST, ...ROLLOUT });
      assert.deepEqual([result.verdict.reason, handlesOf(result)], ["Allowed", []]);
      assert.equal(
        await startProcess(stage, "two").requestDisruption("zone-b-0"),
        "1 pod not ready in ingester-zone-a",
      );
    });

  for (const seconds of [1, 41])
    it(`the rollout never releases what it or a rollout before it reserved ${seconds} s ago: that write may still take effect`, async () => {
      const request = { ...REQUEST, ...ROLLOUT };
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
    const { reserver } = startProcess(stage);
    const [first] = handlesOf(await reserver.reserve(REQUEST));
    await stage.time.advance(41_000);
    await reserver.reserve(REQUEST);
    assert.ok(first);
    await reserver.release(first, {});
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
  });

  it("a release is repeated after a conflict, and ends after any other error", async () => {
    const { reserver } = startProcess(stage);
    const [handle] = handlesOf(await reserver.reserve(REQUEST));
    assert.ok(handle);
    conflictOn({ times: 2 });
    await reserver.release(handle, {});
    assert.deepEqual(reserved(stage), {});
    stage.emulator.faults.inject({ effect: { kind: "error" } });
    await reserver.release(handle, {});
  });
});

it("an eviction does not reuse a young reservation of a rollout, which may release it", async () => {
  assert.equal(await startProcess(stage, "one").requestDisruption("zone-a-0", ROLLOUT), "Allowed");
  await stage.time.advance(20_000);
  assert.equal(await startProcess(stage, "two").requestDisruption("zone-a-0"), "Allowed");
  assert.equal(reserved(stage)["ingester-zone-a-0"]?.by, "two");
});

it("shortly before the deadline nothing is reserved: the write could take effect after the answer", async () => {
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
