/** Ticks of PhasedRollouts, from the adoption of a StatefulSet to its release. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { phasedRollouts } from "../../../../infra/kubernetes/custom-resources.ts";
import { amend } from "../../../builders/objects.ts";
import { dig, put, type Draft, type KubeObject } from "../../../emulator/objects.ts";
import { applySet, createRollout, partitionOf, PHASED, play, reasons, setPhasedStage } from "./stage.ts";

for (const [policy, replicas] of [
  ["OrderedReady", 3],
  ["Parallel", 5],
] as const)
  it(`a rollout of ${replicas} pods, ${policy}: each pod waits for two checks, and the partition guards the StatefulSet afterwards`, () =>
    play({ policy, replicas }, async (stage) => {
      await stage.tick();
      await stage.time.advance(1000);
      await stage.tick();
      assert.equal(partitionOf(stage), replicas);
      assert.equal(stage.rollout().status.phase, "Updated");
      await applySet(stage, "x:2", { policy, replicas });
      let before: number = replicas;
      for (let i = 0; i < 80 * replicas && stage.pods().some((pod) => pod.endsWith("x:1")); i++) {
        const asked = stage.asked.length;
        await stage.tickFor(1);
        const partition = partitionOf(stage) ?? 0;
        assert.ok(partition >= before - 1, "one pod at a time");
        if (partition < before)
          assert.ok(stage.asked.length - asked <= 2 && stage.asked.length >= 2 * (replicas - partition));
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
    const at = String(stage.emulator.store.version());
    const targets = Array.from({ length: 20 }, (_, i) => `default/db-${i}`).toSorted();
    // What is watched from, and nothing of what was read: a run keeps it until the next tick.
    const lists = [{ namespace: "default", rolloutsAt: at, targetsAt: at, targets }];
    assert.deepEqual(await stage.tick(), { acted: false, failed: false, lists });
    assert.deepEqual(stage.calls, [
      "GET sts.plus/v1alpha1/phasedrollouts collection",
      "GET apps/v1/statefulsets collection",
    ]);
  } finally {
    await stage.close();
  }
});

it("without PhasedRollouts a tick costs one list; without their definition one call a minute, and one log line", async () => {
  const [empty, missing] = [await setPhasedStage(), await setPhasedStage({ isDefined: false })];
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

it("a namespace that cannot be listed does not hold up the PhasedRollouts of others", async (t) => {
  const stage = await setPhasedStage();
  t.after(() => stage.close());
  await applySet(stage, "x:1");
  createRollout(stage, {});
  const resource = "phasedrollouts.sts.plus";
  stage.emulator.faults.inject({ verb: "list", resource, namespace: "gone", effect: { kind: "forbidden" } });
  const { acted, failed, lists } = await stage.tick({ namespaces: ["gone", "default"] });
  assert.deepEqual([acted, failed, lists?.map(({ namespace }) => namespace)], [true, true, ["default"]]);
  assert.deepEqual(await stage.tick({ namespaces: ["gone"] }), { acted: false, failed: true });
});

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

it("a definition that drops fields of the status is pointed out, and nothing is released by it", () =>
  play({}, async (stage) => {
    const { store } = stage.emulator;
    const [definition] = store.list("customresourcedefinitions.apiextensions.k8s.io");
    const path = ["schema", "openAPIV3Schema", "properties", "status", "properties", "targetUID"];
    const versions = dig(definition, "spec", "versions") as readonly Draft[];
    const blind = versions.map((version) => put(version, path, undefined));
    store.update(
      "customresourcedefinitions.apiextensions.k8s.io",
      put(definition as KubeObject, ["spec", "versions"], blind),
    );
    await stage.tickFor(30);
    assert.ok(stage.logged.some((line) => line.includes("drops fields of the status")));
    assert.equal(partitionOf(stage), 3);
  }));

it("the partition from before the adoption returns with the deletion, and so do the annotations", () =>
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

it("of two PhasedRollouts one manages, and the other takes over once it is gone", () =>
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

it("skipCheck in the middle releases the rest, and an Event says how many pods", () =>
  play({}, async (stage) => {
    await stage.tickFor(10);
    await applySet(stage, "x:2");
    while (partitionOf(stage) !== 2) await stage.tickFor(1);
    await stage.tickFor(10);
    const before = reasons(stage).length;
    amend(stage.emulator.store, "PhasedRollout", "guard", { spec: { skipCheck: true } });
    await stage.tickFor(30);
    assert.deepEqual(reasons(stage).slice(before), ["Released", "Suspended", "SuccessWhenUnset"]);
    assert.equal(
      stage.events[before]?.message,
      "skipCheck is set: 2 pods of StatefulSet db are released without checks",
    );
    assert.deepEqual(stage.pods(), ["db-0@x:2", "db-1@x:2", "db-2@x:2"]);
  }));

it("a checkpoint that changes with the template while both are read is stated by no status of the earlier template", () =>
  play({ partition: 3 }, async (stage) => {
    const { cluster } = stage.connect();
    let sets = 0;
    let changing = Promise.resolve();
    const change = async (): Promise<void> => {
      await applySet(stage, "x:2");
      const body = { spec: { checkpoint: "x:2" } };
      await cluster.change(phasedRollouts, { namespace: "default", name: "guard", type: "merge", body });
    };
    const reordered: Cluster = {
      ...cluster,
      get: async (resource, ref, call) => {
        if (ref.name === "guard") {
          // If the StatefulSet is read at the same time, this answer comes later.
          await turn();
          await changing;
          return cluster.get(resource, ref, call);
        }
        const earlier = cluster.get(resource, ref, call);
        // The pair that is read after the claim, and that would be reported as updated.
        if (++sets === 2) changing = earlier.then(change);
        await changing;
        return earlier;
      },
    };
    await stage.tick({ cluster: reordered });
    assert.ok(sets >= 2);
    // As `kubectl wait --for=condition=Updated` judges: conditions of an earlier generation are ignored.
    const { metadata, status } = stage.rollout();
    const updated = status?.conditions?.find(({ type }) => type === "Updated");
    const isStated = updated?.status === "True" && updated.observedGeneration === metadata.generation;
    assert.ok(!isStated, JSON.stringify(status));
  }));

const sum = (placeholder: string): string => `sum(errors{pod=~"$(${placeholder})"})`;
const COMPARING = {
  query: { expr: sum("candidate_pods"), successWhen: "WithinBaseline" },
  check: { baseline: { expr: sum("other_pods"), maxRatio: "2" } },
};
const oneSeries = (value: string) => ({ kind: "Vector", samples: 1, sample: value, value, warnings: [] }) as const;

it("the first pod has nothing to compare with; the next ones wait while the updated pods are worse than the others", () =>
  play(
    {},
    async (stage) => {
      let worse = true;
      stage.answer = async () => oneSeries(worse && stage.asked.at(-1)?.expr.includes("db-(?:2)") === true ? "5" : "1");
      await stage.tickFor(10);
      await applySet(stage, "x:2");
      await stage.tickFor(60);
      assert.equal(partitionOf(stage), 2);
      assert.deepEqual(
        new Set(stage.asked.map(({ expr }) => expr)),
        new Set(['sum(errors{pod=~"(?:db-(?:2))"})', 'sum(errors{pod=~"(?:db-(?:0|1))"})']),
      );
      const message = JSON.stringify(stage.rollout().status);
      assert.match(message, /5 against a baseline of 1; at most 2 times is allowed/);
      worse = false;
      await stage.tickFor(120);
      assert.equal(stage.rollout().status.phase, "Updated");
      assert.ok(
        stage.pods().every((pod) => pod.endsWith("@x:2")),
        stage.pods().join(),
      );
    },
    COMPARING,
  ));
