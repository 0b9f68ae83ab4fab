import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { type KubeObject, put } from "../../../emulator/objects.ts";
import { type Process, setBudgetStage, startProcess, writeBudget } from "../../budget-stage.ts";
import type { Stage } from "../../stage.ts";

const PARTITIONS = { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)" };
const POD = "GET core/v1/pods object";
const SETS = "statefulsets.apps";
const BUDGET = "GET rollout-operator.grafana.com/v1/zoneawarepoddisruptionbudgets object";
const SET = "GET apps/v1/statefulsets object";

let stage: Stage;
afterEach(() => stage.close());

function change(resource: string, name: string, edit: (object: KubeObject) => KubeObject): void {
  const object = stage.emulator.store.get(resource, "default", `ingester-${name}`);
  assert.ok(object, name);
  stage.emulator.store.update(resource, edit(object));
}

/** A pod that never becomes ready, and one that does. */
const hold = (pod: string, ready: boolean): void =>
  change("pods", pod, (one) =>
    put(one, ["metadata", "annotations"], { ...one.metadata.annotations, "sim/ready": String(ready) }),
  );

const setReady = async (pod: string, ready: boolean): Promise<void> => {
  hold(pod, ready);
  await stage.time.advance(2000);
};

/** The verdict of one more request to the process, and its API calls. */
async function requestAgain(one: Process, pod: string): Promise<{ answer: string; calls: string[] }> {
  const before = one.calls.length;
  const answer = await one.requestDisruption(pod);
  return { answer, calls: one.calls.slice(before).toSorted() };
}

describe("a budget that denied an eviction", () => {
  it("denies again after reads of the pod, the budget and the blocking pods, in one round trip", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    await setReady("zone-b-1", false);
    const one = startProcess(stage);
    const denied = "1 pod not ready in ingester-zone-b";
    assert.equal(await one.requestDisruption("zone-a-0"), denied);
    const trips = one.roundTrips();
    assert.deepEqual(await requestAgain(one, "zone-a-0"), { answer: denied, calls: [POD, POD, BUDGET].toSorted() });
    assert.equal(one.roundTrips(), trips + 1);
    assert.deepEqual(await requestAgain(one, "zone-c-2"), { answer: denied, calls: [POD, POD, BUDGET].toSorted() });
    assert.deepEqual(await requestAgain(one, "zone-b-0"), { answer: denied, calls: [POD, POD, BUDGET].toSorted() });
    // A pod that is not ready does not block itself.
    assert.equal(await one.requestDisruption("zone-b-1"), "Allowed");
  });

  it("shares reads among concurrent requests", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    await setReady("zone-b-1", false);
    const one = startProcess(stage);
    await one.requestDisruption("zone-a-0");
    const before = one.calls.length;
    await Promise.all(["zone-a-0", "zone-a-1", "zone-c-0"].map((pod) => one.requestDisruption(pod)));
    assert.deepEqual(one.calls.slice(before).toSorted(), [POD, POD, POD, POD, BUDGET].toSorted());
  });

  it("allows once the blocking pods have recovered", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    await setReady("zone-b-1", false);
    const one = startProcess(stage);
    await one.requestDisruption("zone-a-0");
    await setReady("zone-b-1", true);
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
  });

  it("denies because of a reservation, as long as that is valid", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const [one, two] = [startProcess(stage), startProcess(stage, "two")];
    assert.equal(await two.requestDisruption("zone-b-0"), "Allowed");
    const denied = "1 pod not ready in ingester-zone-b";
    assert.equal(await one.requestDisruption("zone-a-0"), denied);
    assert.deepEqual(await requestAgain(one, "zone-a-0"), { answer: denied, calls: [POD, POD, BUDGET].toSorted() });
    await stage.time.advance(60_000);
    assert.equal(await one.requestDisruption("zone-a-0"), denied);
    await stage.time.advance(60_000);
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
  });

  it("denies because of a missing pod, as long as its zone wants it", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const one = startProcess(stage);
    change(SETS, "zone-b", (set) => put(set, ["spec", "replicas"], 4));
    const denied = "1 pod unknown in ingester-zone-b";
    assert.equal(await one.requestDisruption("zone-a-0"), denied);
    assert.deepEqual(await requestAgain(one, "zone-a-0"), {
      answer: denied,
      calls: [POD, POD, BUDGET, SET].toSorted(),
    });
    change(SETS, "zone-b", (set) => put(set, ["spec", "replicas"], 3));
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
  });

  it("denies because the pod's own zone has the maximum unavailable; after the maximum has grown it is read as a whole again", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, { maxUnavailable: 2 });
    await setReady("zone-a-1", false);
    await setReady("zone-a-2", false);
    const one = startProcess(stage);
    const denied = "2 pods not ready in ingester-zone-a";
    assert.equal(await one.requestDisruption("zone-a-0"), denied);
    assert.deepEqual(await requestAgain(one, "zone-a-0"), {
      answer: denied,
      calls: [POD, POD, POD, BUDGET].toSorted(),
    });
    writeBudget(stage, { maxUnavailable: 3 });
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
  });

  it("denies in partition mode because of the pod's peers, and of no other pods", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, PARTITIONS);
    await setReady("zone-b-1", false);
    const one = startProcess(stage);
    const denied = "1 pod not ready in partition 1";
    assert.equal(await one.requestDisruption("zone-a-1"), denied);
    assert.deepEqual(await requestAgain(one, "zone-c-1"), { answer: denied, calls: [POD, POD, BUDGET].toSorted() });
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
  });

  it("denies with a maximum of 0 after reads of the pod and of the budget", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, { maxUnavailable: 0 });
    const one = startProcess(stage);
    assert.equal(await one.requestDisruption("zone-a-0"), "MaxUnavailableZero");
    assert.deepEqual(await requestAgain(one, "zone-b-0"), {
      answer: "MaxUnavailableZero",
      calls: [POD, BUDGET].toSorted(),
    });
    writeBudget(stage, { maxUnavailable: 1 });
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
  });

  it("does not judge a pod that is gone, terminating, or of another UID than the eviction's", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    await setReady("zone-b-1", false);
    const one = startProcess(stage);
    await one.requestDisruption("zone-a-0");
    assert.equal(await one.requestDisruption("zone-a-0", { uid: "of the one before" }), "OtherPod");
    assert.equal((await requestAgain(one, "zone-a-9")).answer, "PodNotFound");
    stage.emulator.store.remove("pods", "default", "ingester-zone-a-2");
    assert.deepEqual(await requestAgain(one, "zone-a-2"), {
      answer: "PodNotReady",
      calls: [POD, POD, BUDGET].toSorted(),
    });
  });

  it("is read as a whole once a minute: another budget may exist by then", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    await setReady("zone-b-1", false);
    const one = startProcess(stage);
    await one.requestDisruption("zone-a-0");
    writeBudget(stage, {}, "twin");
    await stage.time.advance(61_000);
    assert.equal(await one.requestDisruption("zone-a-0"), "SeveralBudgets");
  });

  it("no longer counts once it is deleted or does not select the pod any more", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    await setReady("zone-b-1", false);
    const one = startProcess(stage);
    await one.requestDisruption("zone-a-0");
    writeBudget(stage, { selector: { matchLabels: { "rollout-group": "store-gateway" } } });
    assert.equal(await one.requestDisruption("zone-a-0"), "PodNotInScope");
  });

  it("does not stop the rollout from replacing unavailable pods", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    change("pods", "zone-a-1", (pod) => put(pod, ["metadata", "annotations"], { "sim/crash": "true" }));
    await stage.time.advance(2000);
    const one = startProcess(stage);
    assert.equal(await one.requestDisruption("zone-a-0"), "1 pod not ready in ingester-zone-a");
    assert.equal(await one.requestDisruption("zone-a-1", { rollout: { maxUnavailable: 1 } }), "Allowed");
  });
});
