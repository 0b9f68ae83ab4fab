/** What the commands say of pods that a deleted StatefulSet has left behind. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { amend } from "../../builders/objects.ts";
import { define } from "../../demo/definitions.ts";
import { setStatusStage, startSession } from "../../reconciler/group-status/act/status-stage.ts";
import { deploy, type Stage } from "../../reconciler/stage.ts";
import { openGuarded } from "../guard-stage.ts";
import { openTerminal } from "../stage.ts";

const SETS = "statefulsets.apps";
const ZONES = ["ingester-zone-a", "ingester-zone-b", "ingester-zone-c"];

/** As `kubectl delete --cascade=orphan` leaves them. */
async function removeWithoutPods({ emulator: { store }, time }: Stage, ...zones: readonly string[]): Promise<void> {
  for (const zone of zones) store.remove(SETS, "default", zone, { propagationPolicy: "Orphan" });
  await time.advance(1000);
}

async function breakPod({ emulator: { store }, time }: Stage, name: string): Promise<void> {
  amend(store, "Pod", name, { annotations: { "sim/ready": "false" } });
  await time.advance(1000);
}

describe("drain-order after a StatefulSet was deleted without its pods", { timeout: 300_000 }, () => {
  async function open(t: TestContext, isGuarded: boolean) {
    const definitions = ["rolloutgroups", "rolloutgates", "phasedrollouts"];
    const { stage, run, json } = await openGuarded(t, { definitions, budget: isGuarded ? {} : null });
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

describe("an orphaned zone of a group that is done", { timeout: 300_000 }, () => {
  async function open(t: TestContext, ...broken: readonly string[]) {
    const stage = await setStatusStage();
    t.after(() => stage.close());
    await define(stage.emulator.store, ["rolloutgates", "phasedrollouts"]);
    deploy(stage, "app:1", { podLabels: { "rollout-group": "ingester" } });
    await stage.time.advance(5000);
    const session = startSession(stage);
    t.after(() => session.end());
    await removeWithoutPods(stage, "ingester-zone-b");
    for (let i = 0; i < 3; i++) {
      await session.tick();
      await stage.time.advance(1000);
    }
    for (const pod of broken) await breakPod(stage, pod);
    return { stage, ...(await openTerminal(t, stage)) };
  }
  const GONE = "StatefulSet ingester-zone-b is gone";

  it("blocks the group in status, explain and plan if a pod of it is not ready, and doctor names it", async (t) => {
    const { run } = await open(t, "ingester-zone-b-1");
    const status = await run("status");
    assert.match(status.out, /^ingester +Blocked +2\/2 +6\/6 +6\/6 +ZoneOrphaned +pod\/ingester-zone-b-1 /m);
    const one = await run("status ingester");
    assert.match(one.out, new RegExp(`ZoneOrphaned +Blocked .*ingester-zone-b-1: not ready; ${GONE}: create it again`));
    const group = await run("explain ingester");
    assert.match(group.out, new RegExp(`roll out: Blocked {2}ZoneOrphaned\\n.*ingester-zone-b-1: not ready; ${GONE}`));
    const plan = await run("plan ingester");
    assert.match(plan.out, /^Blocked\. Nothing happens until:\n {2}ZoneOrphaned: ingester-zone-b-1: not ready/m);
    assert.match(group.out, /fix +create StatefulSet ingester-zone-b again as it was/);
    const ended = [status, one, group, plan].map(({ code }) => code);
    assert.deepEqual(ended, [1, 1, 1, 1]);
    const { code, out } = await run("doctor");
    assert.match(
      out,
      /error {2}statefulset\/ingester-zone-b: StatefulSet ingester-zone-b is gone: .*\(zone-orphaned\)\n +create Stateful/,
    );
    assert.equal(code, 1);
  });

  it("is named by doctor if all its pods are ready; the group is done", async (t) => {
    const { run } = await open(t);
    assert.match((await run("doctor")).out, /error {2}statefulset\/ingester-zone-b: .*\(zone-orphaned\)/);
    for (const line of ["status", "status ingester", "explain ingester", "plan ingester"])
      assert.equal((await run(line)).code, 0, line);
    assert.match((await run("explain ingester-zone-b")).err, /nothing named "ingester-zone-b" found/);
  });

  it("is shown by status, explain and doctor if no zone of the group has a StatefulSet left, until its pods are gone", async (t) => {
    const { stage, run } = await open(t);
    await removeWithoutPods(stage, "ingester-zone-a", "ingester-zone-c");
    // As the reconciler's next tick does.
    stage.emulator.store.remove("rolloutgroups.zonewise.dev", "default", "ingester");
    for (const line of ["status", "status -A"]) {
      const { code, out } = await run(line);
      assert.match(out, /ingester +Blocked .*ZoneOrphaned/m);
      assert.equal(code, 1);
    }
    const lines = ["explain ingester", "explain group/ingester", "plan ingester", "status ingester"];
    for (const line of [...lines, "status ingester --watch", "plan ingester -A"]) {
      const { code, out } = await run(line);
      assert.match(out, line.endsWith("--watch") ? /^ingester Blocked: / : /ZoneOrphaned/, line);
      assert.match(out, /no StatefulSet has its label, and pods of it are left: 3 pods of ingester-zone-a, /, line);
      assert.equal(code, 1, line);
    }
    assert.match((await run("pause ingester")).err, /no StatefulSet of group ingester is left, only pods/);
    const created = /fix +create StatefulSet ingester-zone-a ingester-zone-b ingester-zone-c again as it was; /;
    assert.match((await run("explain ingester")).out, created);
    assert.match((await run("doctor")).out, /statefulset\/ingester-zone-a: .*\(zone-orphaned\)/);
    for (const { metadata } of stage.emulator.store.list("pods", "default"))
      stage.emulator.store.remove("pods", "default", metadata.name, { gracePeriodSeconds: 0 });
    await stage.time.advance(1000);
    assert.doesNotMatch((await run("status")).out, /ingester/);
    for (const line of ["status ingester", "plan ingester"])
      assert.match((await run(line)).err, /no rollout group "ingester" in namespace default/);
    assert.match((await run("explain ingester")).err, /nothing named "ingester" found/);
  });

  it("is no reason for status -A to call a group of the same name elsewhere blocked", async (t) => {
    const { stage, run } = await open(t);
    const { metadata, ...left } = stage.emulator.store.get("pods", "default", "ingester-zone-b-1") ?? assert.fail();
    const { name, labels = {} } = metadata;
    stage.emulator.store.create("pods", { ...left, metadata: { name, labels, namespace: "elsewhere" } });
    assert.match((await run("status ingester -n elsewhere")).out, /ZoneOrphaned/);
    assert.equal((await run("status ingester")).code, 0);
    const { code, out } = await run("status ingester -A");
    assert.equal(code, 0, out);
    assert.equal((await run("status -A")).code, 1);
  });

  it("ends a status that waits", async (t) => {
    const { run } = await open(t, "ingester-zone-b-1");
    const { code, out } = await run("status ingester --watch");
    assert.match(out, /Blocked/);
    assert.equal(code, 1);
  });
});
