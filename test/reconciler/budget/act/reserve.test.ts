import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BUDGETS, reserved, setBudgetStage, startProcess, writeBudget } from "../../budget-stage.ts";
import type { Stage } from "../../stage.ts";
import { PARTITIONS } from "../../../builders/budgets.ts";
import { add } from "../../../builders/objects.ts";

const READ_AND_RESERVE = [
  "GET rollout-operator.grafana.com/v1/zoneawarepoddisruptionbudgets collection",
  "GET apps/v1/statefulsets collection",
  "GET core/v1/pods collection",
  "PUT rollout-operator.grafana.com/v1/zoneawarepoddisruptionbudgets object status subresource",
];

/** The reads that find the budget of a pod. */
const FIND = [READ_AND_RESERVE[0] ?? "", "GET core/v1/pods object"];

let stage: Stage;
afterEach(() => stage.close());

const uidOf = (pod: string): string | undefined =>
  stage.emulator.store.get("pods", "default", `ingester-${pod}`)?.metadata.uid;
describe("an eviction under a budget", () => {
  beforeEach(async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
  });

  it("costs 4 calls in 3 round trips, and 2 more to find the budget of a StatefulSet, and is stored", async () => {
    writeBudget(stage, { maxUnavailable: 2 });
    const one = startProcess(stage);
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
    assert.deepEqual(one.calls.toSorted(), [...FIND, ...READ_AND_RESERVE].toSorted());
    assert.equal(one.roundTrips(), 5);
    assert.deepEqual(reserved(stage), {
      "ingester-zone-a-0": {
        kind: "eviction",
        uid: uidOf("zone-a-0"),
        pinned: true,
        time: new Date(stage.time.now()).toISOString(),
        by: "one",
      },
    });
    one.calls.length = 0;
    assert.equal(await one.requestDisruption("zone-a-1"), "Allowed");
    assert.deepEqual(one.calls.toSorted(), READ_AND_RESERVE.toSorted());
    assert.equal(one.roundTrips(), 5 + 3);
  });

  it("lists no pods for one that the only budget of the namespace does not select", async () => {
    writeBudget(stage, { selector: { matchLabels: { "rollout-group": "store-gateway" } } });
    const one = startProcess(stage);
    for (const pod of ["zone-a-0", "zone-a-1"]) assert.equal(await one.requestDisruption(pod), "PodNotInScope");
    assert.ok(!one.calls.includes("GET core/v1/pods collection"), one.calls.join());
  });

  it("blocks every other process from the other zones, and from the rest of its own", async () => {
    const [one, two] = [startProcess(stage), startProcess(stage, "two")];
    const answers = await Promise.all([one.requestDisruption("zone-a-0"), two.requestDisruption("zone-b-0")]);
    assert.equal(answers.filter((answer) => answer === "Allowed").length, 1, answers.join());
    const [pod = ""] = Object.keys(reserved(stage));
    const denied = `1 pod not ready in ${pod.slice(0, -2)}`;
    assert.deepEqual(
      await Promise.all([
        two.requestDisruption("zone-a-1"),
        one.requestDisruption("zone-b-1"),
        startProcess(stage).requestDisruption("zone-c-0"),
      ]),
      [denied, denied, denied],
    );
    assert.deepEqual(Object.keys(reserved(stage)), [pod]);
  });

  it("as a dry run reads and judges, and stores nothing", async () => {
    const one = startProcess(stage);
    assert.equal(await one.requestDisruption("zone-a-0", { dryRun: true }), "Allowed");
    assert.deepEqual(one.calls.toSorted(), [...FIND, ...READ_AND_RESERVE.slice(0, 3)].toSorted());
    assert.deepEqual(reserved(stage), {});
    assert.equal(await one.requestDisruption("zone-b-0"), "Allowed");
    assert.equal(await one.requestDisruption("zone-a-0", { dryRun: true }), "1 pod not ready in ingester-zone-b");
  });

  it("shares one gather and one write with those that wait in the same process, each judged after the previous one", async () => {
    writeBudget(stage, { maxUnavailable: 2 });
    const one = startProcess(stage);
    for (const pod of ["zone-a-0", "zone-b-0"]) await one.requestDisruption(pod, { dryRun: true });
    one.calls.length = 0;
    const answers = await Promise.all(
      ["zone-a-0", "zone-b-0", "zone-a-1", "zone-a-2"].map((pod) => one.requestDisruption(pod)),
    );
    assert.deepEqual(answers, [
      "Allowed",
      "1 pod not ready in ingester-zone-a",
      "Allowed",
      "2 pods not ready in ingester-zone-a",
    ]);
    assert.deepEqual(one.calls.toSorted(), READ_AND_RESERVE.toSorted());
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0", "ingester-zone-a-1"]);
  });

  it("of the same pod again keeps a young reservation, another process's too, and renews an older one", async () => {
    const one = startProcess(stage);
    await one.requestDisruption("zone-a-0");
    const first = reserved(stage);
    await stage.time.advance(39_000);
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
    assert.deepEqual([one.calls.length, reserved(stage)], [9, first]);
    assert.equal(await startProcess(stage, "two").requestDisruption("zone-a-0"), "Allowed");
    assert.deepEqual(reserved(stage), first);
    await stage.time.advance(1000);
    await one.requestDisruption("zone-a-0");
    assert.equal(reserved(stage)["ingester-zone-a-0"]?.time, new Date(stage.time.now()).toISOString());
  });

  it("of the same pod again by its name alone renews a young reservation: the next one must wait 15 s", async () => {
    const one = startProcess(stage, "one");
    for (let evictions = 0; evictions < 2; evictions++) {
      assert.equal(await one.requestDisruption("zone-a-0", { unpinned: true }), "Allowed");
      assert.equal(reserved(stage)["ingester-zone-a-0"]?.time, new Date(stage.time.now()).toISOString());
      await stage.time.advance(16_000);
    }
  });

  it("finds the budget of a pod among several: with two calls more the first time", async () => {
    writeBudget(stage, PARTITIONS);
    writeBudget(stage, { selector: { matchLabels: { "rollout-group": "store-gateway" } } }, "store-gateway");
    const one = startProcess(stage);
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
    assert.equal(one.calls.length, 6);
    assert.equal(await one.requestDisruption("zone-a-1"), "Allowed");
    assert.equal(one.calls.length, 10);
  });

  it("is refused under two budgets, even if the cache named one of them", async () => {
    const one = startProcess(stage);
    assert.equal(await one.requestDisruption("zone-a-0", { dryRun: true }), "Allowed");
    writeBudget(stage, {}, "twin");
    assert.equal(await one.requestDisruption("zone-a-0"), "SeveralBudgets");
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "SeveralBudgets");
  });

  it("counts pods that lack the budget's labels, with one more round trip, however many zones have some", async () => {
    const { store } = stage.emulator;
    for (const zone of ["ingester-zone-b", "ingester-zone-c"]) {
      const pod = store.get("pods", "default", `${zone}-1`) ?? assert.fail();
      store.update("pods", { ...pod, metadata: { ...pod.metadata, labels: { name: zone } } });
    }
    const one = startProcess(stage);
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
    assert.equal(one.roundTrips(), 5 + 1);
  });
});

for (const crd of ["ours", "upstream"] as const)
  describe(`a namespace whose zones, pods and budget have the names of another's, under the definition that is ${crd}`, () => {
    const BOTH = ["default", "shop"] as const;

    async function setTwins(): Promise<void> {
      stage = await setBudgetStage({ crd });
      writeBudget(stage);
      const { store } = stage.emulator;
      add(store, "Namespace", "shop");
      for (const kind of ["statefulsets.apps", BUDGETS])
        for (const { metadata, status: _, ...object } of store.list(kind, "default")) {
          const { name, labels = {}, annotations = {} } = metadata;
          store.create(kind, { ...object, metadata: { name, labels, annotations, namespace: "shop" } });
        }
      await stage.time.advance(2000);
    }

    it("shares neither reservations nor verdicts with it, however they meet in one process", async () => {
      await setTwins();
      const one = startProcess(stage);
      const ask = (pods: readonly [string, string]): Promise<string[]> =>
        Promise.all(BOTH.map((namespace, i) => one.requestDisruption(pods[i] ?? "", { namespace })));
      assert.deepEqual(await ask(["zone-a-0", "zone-b-0"]), ["Allowed", "Allowed"]);
      const denied = ["a", "b"].map((zone) => `1 pod not ready in ingester-zone-${zone}`);
      assert.deepEqual(await ask(["zone-c-0", "zone-c-0"]), denied);
      const two = startProcess(stage, "two");
      for (const [i, namespace] of BOTH.entries())
        assert.equal(await two.requestDisruption("zone-c-0", { namespace }), denied[i]);
      if (crd === "ours")
        for (const [i, namespace] of BOTH.entries()) {
          const pod = `ingester-zone-${i === 0 ? "a" : "b"}-0`;
          const { uid } = stage.emulator.store.get("pods", namespace, pod)?.metadata ?? assert.fail();
          const found = Object.entries(reserved(stage, "ingester", namespace));
          assert.deepEqual(
            found.map(([name, reservation]) => [name, reservation.uid]),
            [[pod, uid]],
          );
        }
    });
  });

describe("pods that no budget selects", () => {
  it("where there is none; and in a cluster without the CRD, with one log line", async () => {
    stage = await setBudgetStage();
    assert.equal(await startProcess(stage).requestDisruption("zone-a-0"), "PodNotInScope");
    await stage.close();
    stage = await setBudgetStage({ crd: "none" });
    const one = startProcess(stage);
    assert.equal(await one.requestDisruption("zone-a-0"), "PodNotInScope");
    assert.equal(await one.requestDisruption("zone-a-1"), "PodNotInScope");
    assert.equal(await one.requestDisruption("zone-b-7"), "PodNotFound");
    assert.equal(one.lines.length, 1, one.lines.join());
    assert.match(one.lines.join(), /disruption budgets are off/);
  });
});
