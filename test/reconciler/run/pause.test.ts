/** At rest a run ticks once, or every 90 s; what a watch tells, or cannot tell, is answered as if it ticked all the time. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { statefulSets } from "../../../infra/kubernetes/resources.ts";
import type { TickResult } from "../../../reconciler/model/outcome.ts";
import { isAtRest } from "../../../reconciler/run/pause.ts";
import { run } from "../../../reconciler/run/run.ts";
import type { RunInput } from "../../../reconciler/run/session.ts";
import { define } from "../../demo/definitions.ts";
import { deploy, runInputOf, setStage, type Stage } from "../stage.ts";
import { amend, make } from "../../builders/objects.ts";

const LIST = "GET apps/v1/statefulsets collection";
const BUDGETS = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";

describe("a run whose groups are settled", () => {
  let stage: Stage;
  let stop: AbortController;
  let running: Promise<unknown>;
  beforeEach(async () => {
    stage = await setStage();
    stop = new AbortController();
    deploy(stage, "x:1");
    await stage.time.advance(2000);
  });
  afterEach(async () => {
    stop.abort();
    await pass(1000);
    await running;
    await stage.close();
  });

  /** Returns a function that counts the ticks so far; each lists the StatefulSets once. */
  async function start(wrap = (cluster: Cluster) => cluster, more: Partial<RunInput> = {}): Promise<() => number> {
    const { cluster, calls } = stage.connect();
    const input = { ...runInputOf(stage, wrap(cluster), "one"), budgetMs: 3_600_000, stop: stop.signal, ...more };
    running = run(input);
    await pass(3000);
    return () => calls.filter((call) => call === LIST).length;
  }
  async function pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) await stage.time.advance(Math.min(100, left));
  }
  /** Milliseconds until the next tick. */
  async function untilTick(count: () => number): Promise<number> {
    const [from, before] = [stage.time.now(), count()];
    while (count() === before && stage.time.now() - from < 120_000) await stage.time.advance(100);
    return stage.time.now() - from;
  }
  function touch(): void {
    const annotations = { touched: String(stage.time.now()) };
    amend(stage.emulator.store, "StatefulSet", "ingester-zone-b", { annotations });
  }

  it("ticks every 90 s, and within a second of a change", async () => {
    const count = await start();
    const before = count();
    // The server ends a watch after 5 minutes.
    await pass(4 * 60_000);
    assert.ok(count() - before <= 5, `${count() - before} ticks in 4 minutes`);
    touch();
    assert.ok((await untilTick(count)) <= 1000);
  });

  it("ticks on for half a minute after a change: what is read only every 30 s may have changed with it", async () => {
    const count = await start();
    touch();
    await pass(1000);
    const before = count();
    await pass(34_000);
    assert.ok(count() - before >= 6);
    const rested = count();
    await pass(60_000);
    assert.ok(count() - rested <= 2);
  });

  it("misses no change while its watch is cut", async () => {
    const count = await start();
    assert.ok(stage.emulator.faults.cutWatches(RESOURCE) > 0);
    await stage.time.advance(1);
    touch();
    assert.ok((await untilTick(count)) <= 5100);
    await pass(1000);
    touch();
    assert.ok((await untilTick(count)) <= 1000, "the watch runs again");
  });

  it("ticks all the time while it cannot watch at all", async () => {
    const count = await start((cluster) => ({
      ...cluster,
      watch: (resource, ...rest) =>
        resource === statefulSets ? Promise.reject(new Error("no right")) : cluster.watch(resource, ...rest),
    }));
    const before = count();
    await pass(60_000);
    assert.ok(count() - before >= 10);
  });

  it("finds within 90 s what a dead connection does not tell, and within a second what it tells late", async () => {
    let late: (() => void) | undefined;
    const count = await start((cluster) => ({
      ...cluster,
      watch: (resource, query, { onHint, ...rest }) =>
        cluster.watch(resource, query, {
          ...rest,
          onHint(hint) {
            if (resource === statefulSets && hint.type === "MODIFIED") late = () => onHint(hint);
          },
        }),
    }));
    touch();
    assert.ok((await untilTick(count)) <= 90_100);
    assert.ok(late);
    late();
    assert.ok((await untilTick(count)) <= 1000);
  });

  it("ticks at once for a budget that is new or has another spec, and not for what evictions write into its status", async () => {
    const { store } = stage.emulator;
    await define(store, ["zoneawarepoddisruptionbudgets"]);
    const count = await start();
    const budget = (maxUnavailable: number) =>
      make("ZoneAwarePodDisruptionBudget", "ingester", {
        spec: { maxUnavailable, selector: { matchLabels: { "rollout-group": "ingester" } } },
      });
    store.create(BUDGETS, budget(1));
    assert.ok((await untilTick(count)) <= 1000, "new");
    await pass(50_000);
    const stored = store.get(BUDGETS, "default", "ingester");
    assert.ok(stored);
    store.update(BUDGETS, { ...stored, spec: budget(2).spec });
    assert.ok((await untilTick(count)) <= 1000, "another spec");
    await pass(50_000);
    const before = count();
    const changed = store.get(BUDGETS, "default", "ingester");
    assert.ok(changed);
    store.update(BUDGETS, { ...changed, status: { disruptedPods: {} } });
    await pass(2000);
    assert.equal(count(), before);
  });

  it("does not rest while a downscale is pending", async () => {
    const count = await start(undefined, { concludeDownscales: async () => true });
    const before = count();
    await pass(60_000);
    assert.ok(count() - before >= 10);
  });
});

const RESOURCE = "statefulsets.apps";

describe("a tick leaves the cluster at rest", () => {
  const zone = (mirror?: object) => ({ scaling: { mirror } });
  const settled = { state: "settled", scalingHolds: [] };
  const rest = {
    groups: new Map([["ns/g", [zone()]]]),
    outcomes: [settled],
    failures: new Map(),
    skipped: 0,
    underWay: 0,
    acted: false,
    phasedLists: [{ targets: [] }],
  };
  const CASES: readonly [what: string, change: object, expected: boolean][] = [
    ["with settled groups alone", {}, true],
    ["unless a group is held", { outcomes: [{ ...settled, state: "held" }] }, false],
    ["unless the scaling of a zone is held", { outcomes: [{ ...settled, scalingHolds: [{}] }] }, false],
    ["unless a group has no outcome", { outcomes: [] }, false],
    ["unless a namespace could not be read", { failures: new Map([["ns", new Error("no")]]) }, false],
    ["unless a group waits for its turn", { skipped: 1 }, false],
    ["unless a step is under way", { underWay: 1 }, false],
    ["unless it has acted", { acted: true }, false],
    ["unless there are PhasedRollouts", { phasedLists: [{ targets: ["ns/s"] }] }, false],
    ["unless PhasedRollouts failed", { phasedFailed: true }, false],
    ["unless a zone mirrors a resource", { groups: new Map([["ns/g", [zone({})]]]) }, false],
  ];
  for (const [what, change, expected] of CASES)
    it(what, () => assert.equal(isAtRest({ ...rest, ...change } as unknown as TickResult), expected));
});
