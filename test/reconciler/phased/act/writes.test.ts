/** A phased rollout under a zone-aware disruption budget, and writes that others change. */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import type { Cluster, Patch } from "../../../../infra/kubernetes/cluster.ts";
import { createLog } from "../../../../infra/log.ts";
import { createMetrics } from "../../../../infra/metrics/metrics.ts";
import { composeBudgets } from "../../../../reconciler/budget/act/compose.ts";
import { createMayDisrupt } from "../../../../reconciler/budget/act/may-disrupt.ts";
import { define } from "../../../demo/definitions.ts";
import { reserve, reserved, writeBudget } from "../../budget-stage.ts";
import { amend } from "../../../builders/objects.ts";
import { applySet, createRollout, FIRING, partitionOf, type PhasedStage, play, setPhasedStage } from "./stage.ts";

interface Budgeted extends PhasedStage {
  uidOf(pod: string): string;
}

/** The sets `db` and `other` under one budget of one unavailable pod, and a PhasedRollout of `db`. */
async function open(t: TestContext, policy: "OrderedReady" | "Parallel" = "OrderedReady"): Promise<Budgeted> {
  const stage = await setPhasedStage();
  t.after(() => stage.close());
  const { store } = stage.emulator;
  await define(store, ["zoneawarepoddisruptionbudgets"]);
  await stage.time.advance(1000);
  await applySet(stage, "x:1", { policy });
  await applySet(stage, "x:1", { name: "other" });
  for (const name of ["db", "other"]) amend(store, "StatefulSet", name, { labels: { app: "cache" } });
  await stage.time.advance(10_000);
  writeBudget(stage, { selector: { matchLabels: { app: "cache" } }, maxUnavailable: 1 });
  const { cluster } = stage.connect();
  const { budgets } = createMetrics();
  const log = createLog({ level: "error", write: () => {}, now: () => new Date(0) });
  const { reserver } = composeBudgets({ cluster, clock: stage.clock, log, identity: "one" });
  createRollout(stage);
  await stage.tick({ mayDisrupt: createMayDisrupt(reserver, stage.clock, budgets) });
  await stage.tickFor(10);
  const uidOf = (pod: string): string => store.get("pods", "default", pod)?.metadata.uid ?? "";
  return { ...stage, uidOf };
}

it("the pod below the partition is reserved in its budget before the partition is lowered, and a pod that another holds keeps it", async (t) => {
  const stage = await open(t);
  reserve(stage, "db-0");
  await applySet(stage, "x:2");
  await stage.tickFor(60);
  assert.equal(partitionOf(stage), 3);
  assert.ok(stage.events.some(({ reason }) => reason === "StepHeld"));
  const told = stage.logged.filter((line) => line.includes("db-2 stays"));
  assert.ok(
    told.length > 1 && told.every((line) => line.startsWith("debug ")),
    "it is asked in each tick, and only debug lines say so",
  );

  const uid = stage.uidOf("db-2");
  for (let i = 0; i < 120 && partitionOf(stage) === 3; i++) await stage.tickFor(1);
  assert.equal(partitionOf(stage), 2);
  assert.equal(reserved(stage)["db-2"]?.uid, uid);
});

for (const policy of ["OrderedReady", "Parallel"] as const)
  it(`in a rollback each pod that is ready is reserved in its budget before it is released, one after the other (${policy})`, async (t) => {
    const stage = await open(t, policy);
    await applySet(stage, "x:2", { policy });
    for (let i = 0; i < 200 && partitionOf(stage) !== 1; i++) await stage.tickFor(1);
    stage.answer = FIRING;
    for (let i = 0; i < 100 && !stage.pods().includes("db-1@x:2"); i++) await stage.tickFor(1);
    // As the admission policy does.
    amend(stage.emulator.store, "StatefulSet", "db", {
      spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 3 } } },
    });
    reserve(stage, "other-0");
    await applySet(stage, "x:1", { policy });
    await stage.tickFor(60);
    assert.deepEqual(
      stage.pods().filter((pod) => pod.endsWith("x:2")),
      ["db-1@x:2", "db-2@x:2"],
      "the drain has the budget",
    );
    assert.ok(stage.events.some(({ reason, message }) => reason === "StepHeld" && message.startsWith("db-2 stays")));

    reserve(stage);
    const uid = stage.uidOf("db-2");
    await stage.tick();
    assert.equal(partitionOf(stage), 2);
    assert.equal(reserved(stage)["db-2"]?.uid, uid);
    for (let i = 0; i < 60 && partitionOf(stage) !== 3; i++) {
      await stage.tickFor(1);
    }
    await stage.tickFor(20);
    assert.deepEqual(
      stage.pods().filter((pod) => pod.startsWith("db-")),
      ["db-0@x:1", "db-1@x:1", "db-2@x:1"],
    );
    assert.equal(stage.rollout().status.phase, "Updated");
  });

interface Body {
  readonly metadata: { readonly annotations?: object };
  readonly spec?: object;
}
type Write = Patch & { readonly body: Body };

/** A connection through which writes to the StatefulSet become others. */
function altering(stage: PhasedStage, alter: (write: Write) => Patch) {
  const { cluster, calls } = stage.connect();
  const altered = (patch: Patch): Patch => (patch.name === "db" ? alter(patch as Write) : patch);
  const through: Cluster = {
    ...cluster,
    patch: (resource, patch, call) => cluster.patch(resource, altered(patch), call),
  };
  return { cluster: through, calls };
}

const pinned = (write: Write, partition: number): Patch => ({
  ...write,
  body: { ...write.body, ...(write.body.spec && { spec: { updateStrategy: { rollingUpdate: { partition } } } }) },
});

it("each write to the StatefulSet names the reconciler, by which admission knows it", () =>
  play({ partition: 0 }, async (stage) => {
    const writers: (string | undefined)[] = [];
    const { cluster } = altering(stage, (write) => {
      writers.push(write.fieldManager);
      return write;
    });
    await stage.tick({ cluster });
    assert.deepEqual(writers, ["zonewise-reconciler", "zonewise-reconciler"]);
  }));

for (const [what, alter] of [
  ["a partition that something pins", (write) => pinned(write, 0)],
  [
    "a claim that something removes",
    (write) => ({ ...write, body: { ...write.body, metadata: { ...write.body.metadata, annotations: {} } } }),
  ],
] as const satisfies readonly (readonly [string, (write: Write) => Patch])[])
  it(`${what} fails the tick after ten steps, which says so, and the next tick does not follow at once`, () =>
    play({ partition: 0 }, async (stage) => {
      const { cluster, calls } = altering(stage, alter);
      const { lists, ...result } = await stage.tick({ cluster });
      assert.deepEqual([result, lists?.length], [{ acted: false, failed: true }, 1]);
      assert.equal(calls.filter((call) => call.startsWith("PATCH")).length, 10);
      assert.match(stage.logged.at(-1) ?? "", /^error the PhasedRollout comes to no end/);
    }));

it("a partition that is stored lower than it was sent is decided about again, as pods may have been released", () =>
  play({ partition: 3 }, async (stage) => {
    await stage.tickFor(10);
    await applySet(stage, "x:2");
    while (stage.rollout().status.rollingPodStatus?.status !== "WaitForChecks") await stage.tickFor(1);
    let isPinned = true;
    const { cluster } = altering(stage, (write) => {
      if (!isPinned || write.body.spec === undefined) return write;
      isPinned = false;
      return pinned(write, 0);
    });
    for (let i = 0; i < 400 && isPinned; i++) {
      await stage.tick({ cluster });
      await stage.time.advance(100);
    }
    assert.equal(isPinned, false);
    await stage.tickFor(20);
    assert.notEqual(partitionOf(stage), 0);
    assert.ok(stage.events.some(({ reason }) => reason === "PartitionRaised"));
  }));

it("a tick that is stopped in the middle of a visit is no failure", () =>
  play({ partition: 0 }, async (stage) => {
    const stop = new AbortController();
    const { cluster } = altering(stage, (write) => {
      stop.abort();
      return write;
    });
    const { acted, failed } = await stage.tick({ cluster, stop: stop.signal });
    assert.deepEqual([acted, failed], [true, false]);
    assert.ok(stage.logged.every((line) => !line.startsWith("error")));
  }));
