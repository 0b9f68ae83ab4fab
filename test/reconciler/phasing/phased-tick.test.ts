import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/objects.ts";
import {
  applySet,
  createRollout,
  definition,
  edit,
  FIRING,
  PHASED,
  type PhasedStage,
  type SetChoices,
  SETS,
  setPhasedStage,
  QUIET,
} from "./stage.ts";

async function play(choices: SetChoices, run: (stage: PhasedStage) => Promise<void>, options?: object): Promise<void> {
  const stage = await setPhasedStage();
  try {
    await applySet(stage, "x:1", choices);
    await stage.time.advance(10_000);
    createRollout(stage, options);
    await run(stage);
  } finally {
    await stage.close();
  }
}

const partitionOf = (stage: PhasedStage): number | undefined => stage.set().spec.updateStrategy.rollingUpdate?.partition;
const reasons = ({ events }: PhasedStage): string[] => events.map(({ reason }) => reason);
const annotate = (name: string, value: string) => (object: KubeObject) => {
  object.metadata.annotations = { ...object.metadata.annotations, [name]: value };
  return object;
};

for (const policy of ["OrderedReady", "Parallel"] as const)
  for (const replicas of [3, 5])
    it(`a rollout of ${replicas} pods, ${policy}: each pod waits for two checks, and the partition guards the StatefulSet afterwards`, () =>
      play({ policy, replicas }, async (stage) => {
        await stage.tick();
        await stage.time.advance(1000);
        await stage.tick();
        assert.equal(partitionOf(stage), replicas);
        assert.equal(stage.rollout().status.phase, "Updated");
        await applySet(stage, "x:2", { policy, replicas });
        let before = replicas;
        for (let i = 0; i < 80 * replicas && stage.pods().some((pod) => pod.endsWith("x:1")); i++) {
          const asked = stage.asked.length;
          await stage.tickFor(1);
          const partition = partitionOf(stage) ?? 0;
          assert.ok(partition >= before - 1, "one pod at a time");
          if (partition < before) assert.ok(stage.asked.length - asked <= 2 && stage.asked.length >= 2 * (replicas - partition));
          before = partition;
        }
        await stage.tickFor(60);
        assert.equal(partitionOf(stage), replicas);
        assert.equal(stage.rollout().status.phase, "Updated");
        assert.equal(stage.asked.length, 2 * replicas);
        assert.deepEqual(reasons(stage), ["SuccessWhenUnset", "RolloutStarted", "RolloutCompleted"]);
      }));

it("a settled tick costs two lists for any number of PhasedRollouts, and no write", async () => {
  const stage = await setPhasedStage();
  try {
    for (let i = 0; i < 20; i++) {
      await applySet(stage, "x:1", { name: `db-${i}`, replicas: 1, policy: "Parallel" });
      createRollout(stage, { name: `guard-${i}`, spec: { targetRef: `db-${i}` } });
    }
    await stage.time.advance(10_000);
    await stage.tickFor(20);
    stage.calls.length = 0;
    assert.deepEqual(await stage.tick(), { acted: false, failed: false });
    assert.deepEqual(stage.calls, ["GET sts.plus/v1alpha1/phasedrollouts collection", "GET apps/v1/statefulsets collection"]);
  } finally {
    await stage.close();
  }
});

it("without PhasedRollouts a tick costs one list; without their definition one call a minute, and one log line", async () => {
  const [empty, missing] = [await setPhasedStage(), await setPhasedStage({ crd: undefined })];
  try {
    await empty.tick();
    assert.equal(empty.calls.length, 1);
    for (let i = 0; i < 5; i++) assert.deepEqual(await missing.tick(), { acted: false, failed: false });
    assert.equal(missing.calls.length, 1);
    await missing.time.advance(61_000);
    await missing.tick();
    assert.equal(missing.calls.length, 2);
    assert.equal(missing.logged.length, 1);
    assert.match(missing.logged[0] ?? "", /phasedrollouts\.sts\.plus is not installed/);
  } finally {
    await empty.close();
    await missing.close();
  }
});

it("failing checks hold the next pod, and the rollout goes on when the query clears", () =>
  play({}, async (stage) => {
    await stage.tickFor(10);
    await applySet(stage, "x:2");
    while (partitionOf(stage) !== 2) await stage.tickFor(1);
    stage.answer = FIRING;
    await stage.tickFor(120);
    assert.equal(partitionOf(stage), 2);
    assert.deepEqual(stage.pods(), ["db-0@x:1", "db-1@x:1", "db-2@x:2"]);
    stage.answer = QUIET;
    await stage.tickFor(120);
    assert.deepEqual(stage.pods(), ["db-0@x:2", "db-1@x:2", "db-2@x:2"]);
    assert.equal(stage.rollout().status.phase, "Updated");
  }));

for (const policy of ["OrderedReady", "Parallel"] as const)
  it(`a revert in the middle brings the pods back at once, a broken one included (${policy})`, () =>
    play({ policy }, async (stage) => {
      await stage.tickFor(10);
      await applySet(stage, "x:2", { policy, template: { "sim/crash": "true" } });
      while (partitionOf(stage) !== 2) await stage.tickFor(1);
      await stage.tickFor(60);
      assert.equal(stage.rollout().status.rollingPodStatus?.status, "WaitForAllPodsToBeAvailable");
      await applySet(stage, "x:1", { policy });
      await stage.tickFor(30);
      assert.deepEqual(stage.pods(), ["db-0@x:1", "db-1@x:1", "db-2@x:1"]);
      assert.equal(partitionOf(stage), 3);
      assert.equal(stage.rollout().status.phase, "Updated");
      assert.equal(reasons(stage).at(-1), "RolledBack");
      if (policy === "OrderedReady") assert.ok(reasons(stage).includes("BrokenPodReplaced"));
    }));

it("scaling in the middle: new pods are waited for, pods that are gone are not", () =>
  play({}, async (stage) => {
    await stage.tickFor(10);
    await applySet(stage, "x:2");
    while (partitionOf(stage) !== 2) await stage.tickFor(1);
    await applySet(stage, "x:2", { replicas: 5 });
    await stage.tickFor(40);
    assert.equal(stage.set().spec.replicas, 5);
    await applySet(stage, "x:2", { replicas: 2 });
    await stage.tickFor(200);
    assert.deepEqual(stage.pods(), ["db-0@x:2", "db-1@x:2"]);
    assert.equal(partitionOf(stage), 2);
  }));

it("S16 the partition from before the adoption returns with the deletion, and so do the annotations", () =>
  play({ partition: 1 }, async (stage) => {
    await stage.tickFor(10);
    assert.equal(stage.set().metadata.annotations?.["sts.plus/original-partition"], "1");
    assert.equal(partitionOf(stage), 3);
    await applySet(stage, "x:2");
    await stage.tickFor(2);
    const { store } = stage.emulator;
    store.remove(PHASED, "default", "guard");
    await stage.tickFor(20);
    assert.equal(store.get(PHASED, "default", "guard"), undefined);
    assert.equal(partitionOf(stage), 1);
    assert.deepEqual(stage.set().metadata.annotations ?? {}, {});
    assert.match(stage.events.at(-1)?.message ?? "", /partition 1 again; 2 pods are released/);
  }));

it("S16 a StatefulSet of an earlier operator gets no guard as its original partition", () =>
  play({ partition: 3, annotations: { "sts.plus/phasedRollout": "gone" } }, async (stage) => {
    await stage.tickFor(10);
    assert.deepEqual(stage.set().metadata.annotations, { "sts.plus/phasedRollout": "guard" });
    stage.emulator.store.remove(PHASED, "default", "guard");
    await stage.tickFor(10);
    assert.equal(partitionOf(stage), 0);
  }));

it("onDelete: freeze keeps the partition, and the original one for the next owner", () =>
  play(
    {},
    async (stage) => {
      await stage.tickFor(10);
      stage.emulator.store.remove(PHASED, "default", "guard");
      await stage.tickFor(10);
      assert.equal(partitionOf(stage), 3);
      assert.deepEqual(stage.set().metadata.annotations, { "sts.plus/original-partition": "0" });
      assert.deepEqual(reasons(stage).at(-1), "Frozen");
    },
    { spec: { onDelete: "freeze" } },
  ));

it("S15 of two PhasedRollouts one manages, and the other takes over once it is gone", () =>
  play({}, async (stage) => {
    await stage.tickFor(10);
    createRollout(stage, { name: "other" });
    await stage.tickFor(10);
    assert.equal(stage.rollout("other").status.phase, "ErrorCannotManage");
    assert.ok(reasons(stage).includes("CannotManage"));
    stage.emulator.store.remove(PHASED, "default", "guard");
    await stage.tickFor(20);
    assert.equal(stage.rollout("other").status.phase, "Updated");
    assert.equal(partitionOf(stage), 3);
  }));

it("a StatefulSet that is deleted and created again is adopted again", () =>
  play({}, async (stage) => {
    await stage.tickFor(10);
    const { store } = stage.emulator;
    store.remove(SETS, "default", "db");
    await stage.tickFor(10);
    assert.equal(stage.rollout().status.phase, "ErrorSTSNotFound");
    await applySet(stage, "x:3");
    await stage.tickFor(20);
    assert.equal(stage.rollout().status.phase, "Updated");
    assert.equal(partitionOf(stage), 3);
  }));

it("a budget that denies the next pod holds it, is asked each tick, and one Event says so", () =>
  play({}, async (stage) => {
    await stage.tickFor(10);
    await applySet(stage, "x:2");
    const asked: string[] = [];
    const zone = { kind: "StatefulSet", namespace: "default", name: "db", uid: "1" } as const;
    await stage.tick({
      mayDisrupt: async (pod) => {
        asked.push(pod.name);
        return { action: "hold", reason: "BudgetSpent", message: `${pod.name} stays: spent`, objects: [zone] };
      },
    });
    await stage.tickFor(60);
    assert.equal(partitionOf(stage), 3);
    assert.ok(asked.length > 1 && new Set(asked).size === 1 && asked[0] === "db-2");
    assert.equal(stage.logged.filter((line) => line.includes("stays: spent")).length, 1);
    let released = 0;
    await stage.tick({ mayDisrupt: async () => ({ action: "grant", release: async () => void released++ }) });
    await stage.tickFor(20);
    assert.equal(partitionOf(stage), 2);
    assert.equal(released, 0);
  }));

it("a promotion by hand needs no checks, once", () =>
  play({}, async (stage) => {
    await stage.tickFor(10);
    stage.answer = FIRING;
    await applySet(stage, "x:2");
    await stage.tickFor(10);
    const { updateRevision } = stage.set().status as unknown as { updateRevision: string };
    edit(stage, PHASED, "guard", annotate("sts.plus/promote-step", `${updateRevision}/3`));
    await stage.tickFor(120);
    assert.equal(partitionOf(stage), 2);
  }));

it("S18 a Secret is read by its name; without it there is no answer, and with it the checks go on without any other change", () =>
  play(
    {},
    async (stage) => {
      await stage.tickFor(10);
      await applySet(stage, "x:2");
      await stage.tickFor(40);
      assert.ok(reasons(stage).includes("PrometheusError"));
      assert.equal(stage.asked.length, 0);
      const data = { token: Buffer.from("secret-token").toString("base64") };
      stage.emulator.store.create("secrets", { apiVersion: "v1", kind: "Secret", metadata: { name: "prom", namespace: "default" }, data });
      await stage.tickFor(25);
      assert.ok((partitionOf(stage) ?? 3) < 3);
      assert.deepEqual(new Set(stage.calls.filter((call) => call.includes("secrets"))), new Set(["GET core/v1/secrets object"]));
      const shown = JSON.stringify([stage.rollout(), stage.events, stage.logged]);
      assert.ok(!shown.includes("secret-token"));
    },
    { query: { secretRef: "prom" } },
  ));

it("S19 what a server answers is shown as it is", () =>
  play({}, async (stage) => {
    stage.answer = { kind: "Error", code: "BadQuery", message: "100% %s %d wrong" };
    await stage.tickFor(10);
    await applySet(stage, "x:2");
    await stage.tickFor(30);
    assert.ok(stage.events.some(({ message }) => message === "BadQuery: 100% %s %d wrong"));
  }));

it("an error of one PhasedRollout is its own: the others go on, and the tick fails", () =>
  play({}, async (stage) => {
    await applySet(stage, "x:1", { name: "db-2", policy: "Parallel" });
    createRollout(stage, { name: "second", spec: { targetRef: "db-2" } });
    const { cluster } = stage.connect();
    const broken = {
      ...cluster,
      patch: (...[resource, patch, call]: Parameters<typeof cluster.patch>) =>
        patch.name === "guard" ? Promise.reject(new Error("no")) : cluster.patch(resource, patch, call),
    };
    await stage.tick({ cluster: broken });
    const result = await stage.tick({ cluster: broken });
    assert.equal(result.failed, true);
    assert.ok(stage.rollout("second").metadata.finalizers?.includes("sts.plus/finalizer"));
    assert.ok(stage.logged.some((line) => line.startsWith("error the PhasedRollout could not be reconciled")));
  }));

it("a definition that drops fields of the status is pointed out, and nothing is released by it", async () => {
  const crd = definition() as unknown as Definition;
  delete crd.spec.versions[0]?.schema.openAPIV3Schema.properties.status.properties["targetUID"];
  const stage = await setPhasedStage({ crd: crd as unknown as ReturnType<typeof definition> });
  try {
    await applySet(stage, "x:1");
    await stage.time.advance(10_000);
    createRollout(stage);
    await stage.tickFor(30);
    assert.ok(stage.logged.some((line) => line.includes("drops fields of the status")));
    assert.equal(partitionOf(stage), 3);
  } finally {
    await stage.close();
  }
});

interface Definition {
  spec: { versions: { schema: { openAPIV3Schema: { properties: { status: { properties: Record<string, unknown> } } } } }[] };
}

describe("what the metrics show", () => {
  it("the phase of each PhasedRollout, and the checks by result", () =>
    play({}, async (stage) => {
      await stage.tickFor(10);
      await applySet(stage, "x:2");
      await stage.tickFor(60);
      const text = await stage.metrics.render();
      assert.match(text, /zonewise_phased_rollout_phase\{namespace="default",phased_rollout="guard",phase="Rolling"\} 1/);
      assert.match(text, /zonewise_phased_rollout_checks_total\{result="Success"\} \d/);
      stage.emulator.store.remove(PHASED, "default", "guard");
      await stage.tickFor(10);
      assert.doesNotMatch(await stage.metrics.render(), /zonewise_phased_rollout_phase\{/);
    }));
});
