import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { statefulSets } from "../../../infra/kubernetes/resources.ts";
import { createLog } from "../../../infra/log.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import { run } from "../../../reconciler/run/run.ts";
import type { RunInput } from "../../../reconciler/run/session.ts";
import { DELAYED, MIRROR } from "../scaling/mirror-stage.ts";
import { deploy, runInputOf, setReady, setStage, type Stage } from "../stage.ts";
import { witness } from "../witness.ts";
import { amend } from "../../builders/objects.ts";

describe("a run", () => {
  let stage: Stage;
  beforeEach(async () => {
    stage = await setStage();
    deploy(stage, "x:1");
    await stage.time.advance(2000);
  });
  afterEach(() => stage.close());

  function input(identity: string, more: Partial<RunInput> = {}): RunInput & { lines: string[]; calls: string[] } {
    const lines: string[] = [];
    const { cluster, calls } = stage.connect();
    return {
      ...runInputOf(stage, cluster, identity),
      log: createLog({ level: "info", write: (line) => void lines.push(line), now: () => new Date(stage.time.now()) }),
      lines,
      calls,
      ...more,
    };
  }

  /** Advances the clock until all runs have ended. */
  async function play<T>(...runs: Promise<T>[]): Promise<T[]> {
    let open = runs.length;
    for (const one of runs) void one.finally(() => open--);
    for (let i = 0; i < 1500 && open > 0; i++) await stage.time.advance(50);
    return await Promise.all(runs);
  }

  /** The logged messages. */
  const messages = ({ lines }: { lines: string[] }): string[] =>
    lines.map((line) => (JSON.parse(line) as { msg: string }).msg);

  const countEvents = (reason: string): number => eventReasons().filter((other) => other === reason).length;

  const eventReasons = (): string[] =>
    stage.emulator.store
      .list("events", "default")
      .flatMap((event) =>
        (event["source"] as { component?: string } | undefined)?.component === "zonewise"
          ? [String(event["reason"])]
          : [],
      );

  it("rolls a group out, reports it by Events and one log line a tick, and exits with 0", async () => {
    const seen = witness(stage);
    deploy(stage, "x:2");
    const one = input("one");
    const [result] = await play(run(one));
    assert.equal(result?.exitCode, 0);
    assert.deepEqual([seen.deleted.length, seen.violations], [9, []]);
    assert.deepEqual(
      ["RolloutStarted", "PodReplaced", "ZoneUpdated", "RolloutCompleted"].map(countEvents),
      [1, 9, 3, 1],
    );
    const last = one.lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .findLast((line) => line["msg"] === "tick");
    assert.deepEqual([last?.["groups"], last?.["settled"], last?.["failed"]], [1, 1, 0]);
    const lease = stage.emulator.store.get("leases.coordination.k8s.io", "default", "zonewise-reconciler");
    assert.equal((lease?.["spec"] as { holderIdentity: string }).holderIdentity, "");
  });

  it("processes that take over after every tick record the same Events", async () => {
    deploy(stage, "x:2");
    for (let i = 0; i < 60 && countEvents("RolloutCompleted") === 0; i++) {
      await play(run(input(`process-${i}`, { once: true })));
      await stage.time.advance(200);
    }
    assert.deepEqual(
      ["RolloutStarted", "PodReplaced", "ZoneUpdated", "RolloutCompleted"].map(countEvents),
      [1, 9, 3, 1],
    );
  });

  it("two at once: each works under the Lease alone, also when one hands it over", async () => {
    const seen = witness(stage);
    deploy(stage, "x:2");
    const [one, two] = [input("one"), input("two")];
    await play(run(one), run(two));
    assert.deepEqual([seen.deleted.length, seen.violations], [9, []]);
    for (const { calls } of [one, two]) {
      const deletes = calls.flatMap((call, i) => (call.startsWith("DELETE") ? [i] : []));
      const leases = calls.flatMap((call, i) => (/^(?:POST|PUT) .*\/leases/.test(call) ? [i] : []));
      assert.ok(
        deletes.every((i) => i > Math.min(...leases) && i < Math.max(...leases)),
        calls.join("\n"),
      );
    }
  });

  it("exits with 1 if a group has to be fixed, and reports it once in an Event and in the metrics", async () => {
    const spec = { updateStrategy: { type: "RollingUpdate" } };
    amend(stage.emulator.store, "StatefulSet", "ingester-zone-b", { spec });
    const one = input("one");
    const [result] = await play(run(one));
    assert.equal(result?.exitCode, 1);
    assert.deepEqual(eventReasons(), ["UpdateStrategyNotOnDelete"]);
    const metrics = await one.metrics.render();
    assert.match(
      metrics,
      /rollout_operator_group_reconciles_failed_total\{namespace="default",rollout_group="ingester"\} [1-9]/,
    );
    assert.match(metrics, /zonewise_group_held\{[^}]*reason="UpdateStrategyNotOnDelete"\} 1/);
  });

  it("stops after the current step on request, and releases the lease", async () => {
    deploy(stage, "x:2");
    const stop = new AbortController();
    const seen = witness(stage);
    const running = run(input("one", { stop: stop.signal }));
    for (let i = 0; i < 200 && seen.deleted.length < 2; i++) await stage.time.advance(50);
    stop.abort();
    await play(running);
    assert.equal(seen.deleted.length, 2);
    const lease = stage.emulator.store.get("leases.coordination.k8s.io", "default", "zonewise-reconciler");
    assert.equal((lease?.["spec"] as { holderIdentity: string }).holderIdentity, "");
  });

  it("takes the Lease again from an API server that was away, and knows no roles yet when it is back", async () => {
    const seen = witness(stage);
    const { cluster } = stage.connect();
    const from = stage.time.now() + 2000;
    const phase = (): string =>
      stage.time.now() < from ? "up" : stage.time.now() < from + 20_000 ? "away" : "starting";
    let refusals = 0;
    const restarted: Cluster = {
      ...cluster,
      async get(...call) {
        const isLease = call[0].plural === "leases";
        if (isLease && phase() === "away") throw new RolloutError("Unreachable", "connection refused");
        if (isLease && phase() === "starting" && refusals++ < 2)
          throw new RolloutError("Forbidden", "no RBAC policy matched");
        return cluster.get(...call);
      },
      async replace(...call) {
        if (phase() === "away") throw new RolloutError("Unreachable", "connection refused");
        return cluster.replace(...call);
      },
    };
    const one = input("one", { cluster: restarted, budgetMs: 60_000 });
    const running = run(one);
    for (let i = 0; i < 1000 && !messages(one).includes("the lease was lost"); i++) await stage.time.advance(50);
    deploy(stage, "x:2");
    const [result] = await play(running);
    assert.deepEqual([result?.exitCode, refusals > 2, seen.deleted.length, seen.violations], [0, true, 9, []]);
  });

  it("that loses each Lease before its first tick pauses between them, logs it and exits with 1", async () => {
    let jumpedMs = 0;
    const clock = { ...stage.clock, wall: () => stage.clock.now() + (jumpedMs += 20_000) };
    const one = input("one", { clock, budgetMs: 5000 });
    const [result] = await play(run(one));
    assert.deepEqual([result?.exitCode, result?.last], [1, undefined]);
    const taken = messages(one).filter((message) => message === "holding the lease").length;
    assert.ok(taken > 1 && taken <= 6, `${taken} times`);
    assert.ok(messages(one).includes("no tick was made: each lease was lost before"));
  });

  it("the calls of one process remember the start of a hold: a lasting hold becomes an Event although its message changes", async () => {
    const memory = new Map();
    const pods = ["ingester-zone-a-0", "ingester-zone-b-0"];
    for (const [i, flapping] of ["ingester-zone-c-1", "ingester-zone-c-2", "ingester-zone-c-1"].entries()) {
      for (const name of [...pods, flapping]) setReady(stage, name, false);
      await stage.time.advance(200);
      await play(run(input(`call-${i}`, { once: true, memory })));
      setReady(stage, flapping, true);
      await stage.time.advance(16_000);
      assert.deepEqual(eventReasons(), i < 2 ? [] : ["MultipleZonesNotReady"]);
    }
  });

  it("a single tick waits until the pods that stay know it: the next one would begin with the first of them again", async () => {
    const answered: string[] = [];
    const podHttp: PodHttp = {
      async send(method, url, { signal }) {
        await stage.clock.sleep(200, signal);
        if (signal?.aborted) throw new RolloutError("Cancelled", "cut off");
        answered.push(`${method} ${new URL(url).hostname.split(".")[0]}`);
        return { status: 200, body: "" };
      },
    };
    deploy(stage, "x:1", { zones: ["d"], annotations: { ...MIRROR, ...DELAYED } });
    const one = input("one", { once: true });
    const reference = { wantedReplicas: 3, reportedReplicas: 3, resource: statefulSets };
    const references = { read: async () => reference };
    await play(run({ ...one, scaling: { ...one.scaling, podHttp, references } }));
    assert.deepEqual(
      answered.toSorted(),
      [0, 1, 2].map((ordinal) => `DELETE ingester-zone-d-${ordinal}`),
    );
  });
});
