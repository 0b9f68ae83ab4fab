/** What a scrape of the functions shows of the reconciler: over its runs, once, and only while it is known. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { showTotals } from "../../../functions/totals/show-totals.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { run } from "../../../reconciler/run/run.ts";
import { define } from "../../demo/definitions.ts";
import { BUDGETS, writeBudget } from "../../reconciler/budget-stage.ts";
import { deploy, runInputOf, type Stage } from "../../reconciler/stage.ts";
import { add, drop } from "../../builders/objects.ts";
import { GROUPS, setStatusStage } from "../../reconciler/group-status/act/status-stage.ts";

const GROUP = '{namespace="default",rollout_group="ingester"}';
const READY = 'zonewise_group_phase{namespace="default",rollout_group="ingester",phase="Ready"}';
const isShown = (seen: ReadonlyMap<string, number>): boolean => seen.has(`zonewise_pods_replaced_total${GROUP}`);

/** A replica of the functions; resolves with the value of each series of a scrape. */
function startReplica(
  stage: Stage,
  identity: string,
  {
    namespaces = ["default"],
    logged = [],
  }: { readonly namespaces?: readonly string[]; readonly logged?: string[] } = {},
): () => Promise<ReadonlyMap<string, number>> {
  const { cluster } = stage.connect();
  const log = { debug: () => {}, info: (text: string) => void logged.push(text), warn: () => {}, error: () => {} };
  const reconciler = { namespace: "default", name: "zonewise-reconciler" };
  const shown = showTotals({
    cluster,
    clock: stage.clock,
    log,
    metrics: createMetrics(),
    namespaces,
    reconciler,
    identity,
  });
  return async () => {
    const lines = (await shown.render()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
    );
  };
}

/** Runs of the reconciler, each a process of its own that is stopped after some seconds. */
async function reconcile(stage: Stage, seconds: number, identity: string): Promise<void> {
  const { cluster } = stage.connect();
  const stop = new AbortController();
  const running = run({ ...runInputOf(stage, cluster, identity), stop: stop.signal });
  for (let i = 0; i < seconds * 4; i++) {
    await stage.time.advance(250);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  stop.abort();
  let isOver = false;
  const over = running.finally(() => (isOver = true));
  while (!isOver) {
    await stage.time.advance(250);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await over;
}

describe("the reconciler's totals in the functions' metrics", () => {
  let stage: Stage;
  before(async () => {
    stage = await setStatusStage();
    deploy(stage, "x:1");
    await stage.time.advance(2000);
  });
  after(() => stage.close());

  it("are there after the first run, and go on with the next ones, while a settled group is not written", async () => {
    const scrape = startReplica(stage, "one");
    await reconcile(stage, 12, "run-1");
    const first = await scrape();
    const ticks = first.get('zonewise_ticks_total{result="ok"}') ?? 0;
    assert.ok(ticks >= 1, `${ticks} ticks`);
    assert.equal(first.get(`rollout_operator_group_reconciles_total${GROUP}`), ticks);
    assert.equal(first.get(READY), 1);
    assert.equal(
      first.get(`rollout_operator_last_successful_group_reconcile_timestamp_seconds${GROUP}`),
      first.get("zonewise_last_tick_timestamp_seconds"),
    );

    const version = stage.emulator.store.get(GROUPS, "default", "ingester")?.metadata.resourceVersion;
    await reconcile(stage, 12, "run-2");
    await stage.time.advance(5000);
    const second = await scrape();
    assert.equal(stage.emulator.store.get(GROUPS, "default", "ingester")?.metadata.resourceVersion, version);
    const more = second.get('zonewise_ticks_total{result="ok"}') ?? 0;
    assert.ok(more > ticks);
    assert.equal(second.get(`rollout_operator_group_reconciles_total${GROUP}`), more);
  });

  it("count every pod of a rollout that several runs share, once", async () => {
    const scrape = startReplica(stage, "one");
    deploy(stage, "x:2");
    for (let i = 0; i < 40; i++) {
      await reconcile(stage, 2, `run-${10 + i}`);
      const sets = stage.emulator.store.list("statefulsets.apps", "default");
      if (
        sets.every(
          (set) =>
            (set["status"] as { currentRevision?: string; updateRevision?: string }).currentRevision ===
            (set["status"] as { updateRevision?: string }).updateRevision,
        )
      )
        break;
    }
    await stage.time.advance(5000);
    const seen = await scrape();
    assert.equal(seen.get(`zonewise_pods_replaced_total${GROUP}`), 9);
    assert.equal(seen.get(`zonewise_rollout_steps_left${GROUP}`), 0);
    assert.equal(seen.get(`zonewise_rollout_last_step_timestamp_seconds${GROUP}`), undefined);
  });

  it("say of each budget whether it protects, as its status does, and nothing of one that was not looked at", async () => {
    const { store } = stage.emulator;
    await define(store, ["zoneawarepoddisruptionbudgets"]);
    await stage.time.advance(5000);
    const zones = [
      { name: "zone-a", expected: 3, healthy: 3 },
      { name: "zone-b", expected: 3, healthy: 3 },
    ];
    const write = (name: string, condition?: { status: string; reason: string }): void => {
      writeBudget(stage, {}, name);
      const stored = store.get(BUDGETS, "default", name) ?? assert.fail();
      const conditions = condition ? [{ type: "Protecting", message: "", lastTransitionTime: "", ...condition }] : [];
      store.update(BUDGETS, { ...stored, status: { conditions, zones } });
    };
    write("a", { status: "True", reason: "Protecting" });
    write("b", { status: "False", reason: "NoWebhook" });
    write("c", { status: "Unknown", reason: "NotSeen" });
    write("d");
    const seen = await startReplica(stage, "one")();
    const name = "zonewise_disruption_budget_protecting";
    assert.deepEqual(
      [...seen].filter(([series]) => series.startsWith(name)),
      [
        [`${name}{namespace="default",budget="a",reason="Protecting"}`, 1],
        [`${name}{namespace="default",budget="b",reason="NoWebhook"}`, 0],
        [`${name}{namespace="default",budget="c",reason="NotSeen"}`, 0],
      ],
    );
  });

  it("are shown by one replica, and by another once that is gone", async () => {
    const [one, two] = [startReplica(stage, "one"), startReplica(stage, "two")];
    await stage.time.advance(5000);
    assert.deepEqual([isShown(await one()), isShown(await two())], [true, false]);
    await stage.time.advance(60_000);
    assert.deepEqual([isShown(await two()), isShown(await one())], [false, true]);
    await stage.time.advance(95_000);
    assert.deepEqual([isShown(await two()), isShown(await one())], [true, false]);
  });

  it("are shown by no replica that cannot learn in time if it is still the one", async () => {
    const [one, two] = [startReplica(stage, "slow"), startReplica(stage, "other")];
    await stage.time.advance(95_000);
    assert.equal(isShown(await one()), true);
    await stage.time.advance(95_000);
    assert.equal(isShown(await two()), true);
    const remove = stage.emulator.faults.inject({
      resource: "leases.coordination.k8s.io",
      verb: "get",
      effect: { kind: "latency", ms: 600_000 },
    });
    const scraping = one();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await stage.time.advance(1000);
    assert.equal(isShown(await scraping), false);
    remove();
    await stage.time.advance(600_000);
  });

  it("are read at most every 5 seconds, however often somebody scrapes", async () => {
    const scrape = startReplica(stage, "two");
    await stage.time.advance(95_000);
    assert.ok(isShown(await scrape()));
    drop(stage.emulator.store, "RolloutGroup", "ingester");
    assert.deepEqual((await Promise.all([scrape(), scrape()])).map(isShown), [true, true]);
    await stage.time.advance(5000);
    assert.ok(!isShown(await scrape()));
  });
});

describe("without totals", () => {
  const PROTECTING = 'zonewise_disruption_budget_protecting{namespace="default",budget="a",reason="Protecting"}';
  const SOME = ["some of the reconciler's totals are not in the metrics"];
  for (const [what, forbidden, expected, lines] of [
    ["where one of several namespaces may not be read, the others are shown", { namespace: "gone" }, [1, 1], []],
    ["where budgets may not be listed, the groups are shown", { resource: BUDGETS }, [1, undefined], SOME],
    ["where groups may not be listed, the budgets are shown", { resource: GROUPS }, [undefined, 1], SOME],
    [
      "where neither may be listed, none is shown",
      {},
      [undefined, undefined],
      ["the reconciler's totals are not in the metrics"],
    ],
  ] as const)
    it(`${what}, and what is left out is logged once`, async (t) => {
      const stage = await setStatusStage();
      t.after(() => stage.close());
      const { store, faults } = stage.emulator;
      await define(store, ["zoneawarepoddisruptionbudgets"]);
      await stage.time.advance(5000);
      const condition = {
        type: "Protecting",
        status: "True",
        reason: "Protecting",
        message: "",
        lastTransitionTime: "",
      };
      add(store, "ZoneAwarePodDisruptionBudget", "a", { spec: {}, status: { conditions: [condition] } });
      add(store, "RolloutGroup", "ingester", { status: { group: "ingester", phase: "Ready" } });
      faults.inject({ verb: "list", ...forbidden, effect: { kind: "forbidden" } });
      const logged: string[] = [];
      const scrape = startReplica(stage, "one", { namespaces: ["gone", "default"], logged });
      for (let scrapes = 0; scrapes < 2; scrapes++) {
        const shown = await scrape();
        assert.deepEqual([shown.get(READY), shown.get(PROTECTING)], expected);
        await stage.time.advance(5000);
      }
      assert.deepEqual(logged, lines);
    });

  it("on a cluster that knows no RolloutGroup, the ticks are shown and the scrape works", async () => {
    const stage = await setStatusStage({ withDefinition: false });
    deploy(stage, "x:1");
    await stage.time.advance(2000);
    await reconcile(stage, 6, "run-1");
    const seen = await startReplica(stage, "one")();
    assert.ok((seen.get('zonewise_ticks_total{result="ok"}') ?? 0) > 0);
    assert.equal(seen.has(`rollout_operator_group_reconciles_total${GROUP}`), false);
    await stage.close();
  });
});
