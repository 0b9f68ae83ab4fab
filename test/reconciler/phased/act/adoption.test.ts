/** A StatefulSet passes from nobody, or another owner, to a PhasedRollout, and back. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { applySet, createRollout, edit, PHASED } from "./stage.ts";
import { partitionOf, play, reasons } from "./play.ts";

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
    edit(stage, PHASED, "guard", (object) => ({ ...object, spec: { ...stage.rollout().spec, skipCheck: true } }));
    await stage.tickFor(30);
    assert.deepEqual(reasons(stage).slice(before), ["Released", "Suspended", "SuccessWhenUnset"]);
    assert.equal(
      stage.events[before]?.message,
      "skipCheck is set: 2 pods of StatefulSet db are released without checks",
    );
    assert.deepEqual(stage.pods(), ["db-0@x:2", "db-1@x:2", "db-2@x:2"]);
  }));
