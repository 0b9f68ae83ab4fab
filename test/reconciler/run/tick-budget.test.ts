/** The rollout under a budget (§1.5.7, §1.5.8), from the tick to the pods. */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { createMayDisrupt } from "../../../reconciler/budget/act/may-disrupt.ts";
import { isFailure, type Outcome } from "../../../reconciler/model/outcome.ts";
import { BUDGETS, reserve, reserved, setBudgetStage, startProcess, writeBudget } from "../budget-stage.ts";
import { deploy, tickOnce, type Stage } from "../stage.ts";
import { witness, type Witness } from "../witness.ts";
import { PARTITIONS } from "../../builders/budgets.ts";
import { amend } from "../../builders/objects.ts";

const LABELS = { podLabels: { "rollout-group": "ingester" } };

let stage: Stage;
afterEach(() => stage.close());

/** Of each zone, by the rollout. */
function mayLose(maxUnavailable: string): void {
  const { store } = stage.emulator;
  for (const { metadata } of store.list("statefulsets.apps", "default"))
    amend(store, "StatefulSet", metadata.name, { annotations: { "rollout-max-unavailable": maxUnavailable } });
}

/** Zones of 20 pods with a new image; a budget and the rollout allow all of them to be unavailable at once. */
async function rollOutLarge(): Promise<Witness> {
  stage = await setBudgetStage();
  writeBudget(stage, { maxUnavailable: 20 });
  mayLose("100%");
  deploy(stage, "x:1", { ...LABELS, replicas: 20 });
  await stage.time.advance(5000);
  deploy(stage, "x:2", { ...LABELS, replicas: 20 });
  await stage.time.advance(500);
  return witness(stage, 20);
}

/** A new image; two pods of a zone may be updated at once. */
async function rollOut(spec: object): Promise<Witness> {
  stage = await setBudgetStage();
  writeBudget(stage, spec);
  mayLose("2");
  deploy(stage, "x:2", LABELS);
  await stage.time.advance(500);
  return witness(stage, 2);
}

async function tick(): Promise<Outcome | undefined> {
  return (await tickAll())[0];
}

async function tickAll(): Promise<readonly Outcome[]> {
  const { reserver } = startProcess(stage, "rollout");
  const { cluster } = stage.connect();
  const { outcomes } = await tickOnce(stage, cluster, {
    mayDisrupt: createMayDisrupt(reserver, stage.clock, createMetrics().budgets),
  });
  return outcomes;
}

describe("a rollout under a budget", () => {
  const CASES: readonly [string, object, readonly string[], readonly string[]][] = [
    ["deletes the pods that the budget allows", {}, [], ["a-0"]],
    ["deletes all if it allows all", { maxUnavailable: 2 }, [], ["a-0", "a-1"]],
    ["deletes up to the rollout's limit if the budget is 0", { maxUnavailable: 0 }, [], ["a-0", "a-1"]],
    [
      "in partition mode deletes one per partition if the budget is 0",
      { maxUnavailable: 0, ...PARTITIONS },
      [],
      ["a-0", "a-1"],
    ],
    ["continues after a denial", PARTITIONS, ["ingester-zone-c-0"], ["a-1"]],
    [
      "1 per partition, regardless of the rollout's limit",
      { maxUnavailable: 0, ...PARTITIONS },
      ["ingester-zone-b-1"],
      ["a-0"],
    ],
  ];
  for (const [name, spec, pending, deleted] of CASES) {
    it(`${name}: ${deleted.join(", ")}`, async () => {
      const seen = await rollOut(spec);
      for (const pod of pending) reserve(stage, pod);
      assert.equal((await tick())?.state, "acted");
      assert.deepEqual(
        seen.deleted,
        deleted.map((pod) => `ingester-zone-${pod}`),
      );
      for (const pod of seen.deleted) assert.equal(reserved(stage)[pod]?.by, "rollout");
    });
  }

  it("does not touch the next zone while the first is denied", async () => {
    const seen = await rollOut({ maxUnavailable: 2 });
    reserve(stage, "ingester-zone-c-0");
    const outcome = await tick();
    assert.ok(outcome?.state === "held");
    assert.deepEqual(
      [outcome.hold.reason, outcome.hold.message],
      [
        "BudgetSpent",
        "ingester-zone-a-0 stays: 1 pod not ready in ingester-zone-c (ready, but allowed to go: ingester-zone-c-0)",
      ],
    );
    assert.deepEqual(seen.deleted, []);
  });

  it("fails under two budgets, and under one that is invalid", async () => {
    const seen = await rollOut({});
    writeBudget(stage, {}, "twin");
    const two = await tick();
    assert.ok(two?.state === "held" && isFailure(two));
    assert.match(two.hold.message, /multiple zoned pod disruption budgets found for pod: ingester, twin/);
    stage.emulator.store.remove(BUDGETS, "default", "twin");
    writeBudget(stage, { maxUnavailable: 1, maxUnavailablePercentage: 1 });
    const invalid = await tick();
    assert.ok(invalid?.state === "held" && isFailure(invalid));
    assert.deepEqual(
      invalid.hold.objects.map(({ kind }) => kind),
      ["StatefulSet", "Pod", "ZoneAwarePodDisruptionBudget"],
    );
    assert.deepEqual(seen.deleted, []);
  });

  it("of two groups under it counts an outdated pod of the other group that works and is not ready", async () => {
    stage = await setBudgetStage();
    const { store } = stage.emulator;
    const tier = { tier: "ingest" };
    writeBudget(stage, { selector: { matchLabels: tier } });
    const groups = ["one", "two"];
    for (const group of groups) deploy(stage, "x:1", { group, zones: ["a", "b"], labels: tier, podLabels: tier });
    await stage.time.advance(2000);
    const gate = (name: string, value: string): void =>
      amend(store, "Pod", name, { annotations: { "sim/ready": value } });
    for (const group of groups) gate(`${group}-zone-a-0`, "gated");
    for (const group of groups) deploy(stage, "x:2", { group, zones: ["a", "b"], podLabels: tier });
    await stage.time.advance(500);
    const seen = witness(stage);
    const outcomes = await tickAll();
    assert.deepEqual(
      outcomes
        .flatMap((outcome) => (outcome.state === "held" ? [`${outcome.group}: ${outcome.hold.message}`] : []))
        .toSorted(),
      groups.map((group, i) => `${group}: ${group}-zone-a-0 stays: 1 pod not ready in ${groups[1 - i]}-zone-a`),
    );
    assert.deepEqual(seen.deleted, []);
    gate("two-zone-a-0", "true");
    await stage.time.advance(1000);
    await tickAll();
    assert.deepEqual(seen.deleted, ["one-zone-a-0"]);
  });

  it("requests 20 pods at once: the budget's cost does not grow with them", async () => {
    const seen = await rollOutLarge();
    const rollout = startProcess(stage, "rollout");
    const { cluster } = stage.connect();
    await tickOnce(stage, cluster, {
      mayDisrupt: createMayDisrupt(rollout.reserver, stage.clock, createMetrics().budgets),
    });
    assert.deepEqual([seen.deleted.length, Object.keys(reserved(stage)).length, seen.violations], [20, 20, []]);
    const pages = rollout.calls.filter((call) => call === "GET core/v1/pods collection");
    const reads = rollout.calls.filter((call) => call === "GET core/v1/pods object");
    const writes = rollout.calls.filter((call) => !call.startsWith("GET"));
    assert.deepEqual([pages.length, reads.length, writes.length], [1, 1, 1], rollout.calls.join());
  });

  it("releases the reservations of pods that it did not delete", async () => {
    const seen = await rollOutLarge();
    const { reserver } = startProcess(stage, "rollout");
    const { cluster } = stage.connect();
    const stop = new AbortController();
    const stopping: typeof cluster = {
      ...cluster,
      remove: async (...call) => {
        const version = await cluster.remove(...call);
        if (seen.deleted.length === 2) stop.abort();
        return version;
      },
    };
    const mayDisrupt = createMayDisrupt(reserver, stage.clock, createMetrics().budgets);
    const { outcomes } = await tickOnce(stage, stopping, { mayDisrupt, stop: stop.signal });
    assert.equal(outcomes[0]?.state, "acted");
    assert.deepEqual(seen.deleted, ["ingester-zone-a-0", "ingester-zone-a-1"]);
    assert.deepEqual(Object.keys(reserved(stage)).toSorted(), seen.deleted);
  });

  it("keeps it if the effect of the deletion is unknown", async () => {
    const seen = await rollOut({});
    stage.emulator.faults.inject({ effect: { kind: "dropBefore" }, resource: "pods", verb: "delete", times: 1 });
    assert.equal((await tick())?.state, "failed");
    assert.deepEqual([seen.deleted, Object.keys(reserved(stage))], [[], ["ingester-zone-a-0"]]);
  });

  it("fails while the API server cannot be reached", async () => {
    const seen = await rollOut({});
    stage.emulator.faults.inject({ effect: { kind: "error" }, resource: BUDGETS });
    assert.equal((await tick())?.state, "failed");
    assert.deepEqual(seen.deleted, []);
  });
});
