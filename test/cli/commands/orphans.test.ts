/** What the commands say of pods that a deleted StatefulSet has left behind. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { define } from "../../demo/definitions.ts";
import { setBudgetStage, writeBudget } from "../../reconciler/budget-stage.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { guardEvictions } from "../guard-stage.ts";
import { openTerminal } from "../stage.ts";

const SETS = "statefulsets.apps";
const ZONES = ["ingester-zone-a", "ingester-zone-b", "ingester-zone-c"];

/** As `kubectl delete --cascade=orphan` leaves them. */
async function removeWithoutPods({ emulator: { store }, time }: Stage, ...zones: readonly string[]): Promise<void> {
  for (const zone of zones) store.remove(SETS, "default", zone, { propagationPolicy: "Orphan" });
  await time.advance(1000);
}

async function breakPod({ emulator: { store }, time }: Stage, name: string): Promise<void> {
  const pod = store.get("pods", "default", name) ?? assert.fail(name);
  store.update("pods", { ...pod, metadata: { ...pod.metadata, annotations: { "sim/ready": "false" } } });
  await time.advance(1000);
}

describe("drain-order after a StatefulSet was deleted without its pods", { timeout: 300_000 }, () => {
  async function open(t: TestContext, isGuarded: boolean) {
    const stage = await setBudgetStage();
    t.after(() => stage.close());
    await define(stage.emulator.store, ["rolloutgroups", "rolloutgates", "phasedrollouts"]);
    if (isGuarded) writeBudget(stage);
    const guard = await guardEvictions(stage);
    t.after(() => guard.close());
    await stage.time.advance(1000);
    const { run, json } = await openTerminal(t, stage);
    const nodes = stage.emulator.store.list("nodes").map(({ metadata }) => metadata.name);
    const line = `drain-order ${nodes.join(" ")}`;
    /** The zones of each wave. */
    async function wavesOf(): Promise<string[][]> {
      const waves = await json<{ pods: { statefulSet: string }[] }[][]>(line);
      return waves.map((wave) => [...new Set(wave.flatMap(({ pods }) => pods.map((pod) => pod.statefulSet)))]);
    }
    return { stage, drain: () => run(line), wavesOf };
  }
  const apart = ZONES.map((zone) => [zone]);

  for (const isGuarded of [true, false]) {
    it(`keeps its pods apart from other zones ${isGuarded ? "under" : "without"} a budget`, async (t) => {
      const { stage, wavesOf } = await open(t, isGuarded);
      assert.deepEqual(await wavesOf(), apart);
      await removeWithoutPods(stage, "ingester-zone-b");
      assert.deepEqual(await wavesOf(), apart);
    });
  }

  it("begins with the orphaned zone if a pod of it is not ready, and the others wait", async (t) => {
    const { stage, drain, wavesOf } = await open(t, false);
    await removeWithoutPods(stage, "ingester-zone-b");
    await breakPod(stage, "ingester-zone-b-0");
    assert.deepEqual((await wavesOf())[0], ["ingester-zone-b"]);
    assert.match((await drain()).out, /waits: ingester-zone-b has pods that are missing or not ready/);
  });

  it("keeps the pods of all zones apart if no StatefulSet is left", async (t) => {
    const { stage, drain, wavesOf } = await open(t, false);
    await removeWithoutPods(stage, ...ZONES);
    assert.deepEqual(await wavesOf(), apart);
    const { code, out } = await drain();
    assert.match(out, /not guarded: no disruption budget selects pods of group ingester/);
    assert.equal(code, 1);
  });
});
