import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { statefulSets } from "../../../infra/kubernetes/resources.ts";
import { createLog } from "../../../infra/log.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import { createServerClock } from "../../../infra/server-clock.ts";
import { createCaInjection } from "../../../reconciler/run/ca-injection.ts";
import { run } from "../../../reconciler/run/run.ts";
import type { RunInput } from "../../../reconciler/run/session.ts";
import * as certs from "../../infra/certs/stage.ts";
import { rolloutGroupDefinition } from "../group-status/act/status-stage.ts";
import { DELAYED, MIRROR } from "../scaling/mirror-stage.ts";
import { deploy, runInputOf, setStage, type Stage } from "../stage.ts";
import { witness } from "../witness.ts";

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

  it("they do so, too, where the controller of Kubernetes 1.37 records each zone before their next tick", async () => {
    stage.emulator.store.create("customresourcedefinitions.apiextensions.k8s.io", rolloutGroupDefinition());
    await play(run(input("before", { once: true })));
    deploy(stage, "x:2");
    for (let i = 0; i < 60 && countEvents("RolloutCompleted") === 0; i++) {
      recordAsController();
      await play(run(input(`process-${i}`, { once: true })));
      await stage.time.advance(200);
    }
    assert.deepEqual(
      ["RolloutStarted", "PodReplaced", "ZoneUpdated", "RolloutCompleted"].map(countEvents),
      [1, 9, 3, 1],
    );
  });

  /** Since Kubernetes 1.37 the StatefulSet controller records zones under OnDelete as well. */
  function recordAsController(): void {
    for (const set of stage.emulator.store.list("statefulsets.apps", "default")) {
      const status = set["status"] as Record<string, unknown>;
      const { updatedReplicas, readyReplicas, replicas, updateRevision } = status;
      if (updatedReplicas === replicas && readyReplicas === replicas)
        stage.emulator.store.update("statefulsets.apps", {
          ...set,
          status: { ...status, currentRevision: updateRevision },
        });
    }
  }

  it("R39 two at once: one works, the other writes nothing", async () => {
    const seen = witness(stage);
    deploy(stage, "x:2");
    const [one, two] = [input("one"), input("two")];
    await play(run(one), run(two));
    assert.deepEqual([seen.deleted.length, seen.violations], [9, []]);
    const writers = [one, two].filter(({ calls }) => calls.some((call) => call.startsWith("DELETE")));
    assert.equal(writers.length, 1);
  });

  it("R01 R30 exits with 1 if a group has to be fixed, and reports it once in an Event and in the metrics", async () => {
    const set = stage.emulator.store.get("statefulsets.apps", "default", "ingester-zone-b");
    assert.ok(set);
    stage.emulator.store.update("statefulsets.apps", {
      ...set,
      spec: { ...(set["spec"] as object), updateStrategy: { type: "RollingUpdate" } },
    });
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

  it("injects the CA while a tick waits for an answer", async () => {
    const { caPem, certPem, keyPem } = await certs.issueAt(() => stage.time.now())();
    certs.putSecret(stage.emulator.store, { ca: caPem, cert: certPem, key: keyPem });
    certs.addHook(stage.emulator.store, certs.VALIDATING, "ours");
    stage.emulator.faults.inject({
      effect: { kind: "latency", ms: 4000 },
      verb: "list",
      resource: "statefulsets.apps",
    });
    const one = input("one");
    const stop = new AbortController();
    const settings = { namespace: "default", secretName: certs.NAME, inject: true };
    const running = run({ ...one, stop: stop.signal, caInjection: createCaInjection({ ...one, ...settings }) });
    const bundle = (): string => certs.bundlesOf(stage.emulator.store, certs.VALIDATING, "ours").join();
    for (let turn = 0; turn < 100_000 && bundle() === ""; turn++) await setImmediate();
    assert.equal(bundle(), caPem);
    assert.ok(!one.lines.some((line) => line.includes('"msg":"tick"')));
    stop.abort();
    await play(running);
  });

  it("continues without its watches, only slower", async () => {
    const seen = witness(stage);
    stage.emulator.faults.inject({ effect: { kind: "error" }, verb: "watch" });
    deploy(stage, "x:2");
    await play(run(input("one", { budgetMs: 70_000, intervalMs: 1000 })));
    assert.deepEqual([seen.deleted.length, seen.violations], [9, []]);
  });

  for (const aheadMs of [4000, 11_000, 30_000])
    it(`continues while every other answer comes from an API server whose clock is ${aheadMs} ms ahead`, async () => {
      const seen = witness(stage);
      deploy(stage, "x:2");
      const { cluster } = stage.connect();
      const clock = createServerClock(stage.clock);
      let answers = 0;
      const answered = (): void =>
        clock.follow(new Date(stage.time.now() + (answers++ % 2 ? aheadMs : 0)).toUTCString(), 5);
      const balanced: Cluster = {
        ...cluster,
        get: (...call) => cluster.get(...call).finally(answered),
        create: (...call) => cluster.create(...call).finally(answered),
        patch: (...call) => cluster.patch(...call).finally(answered),
        replace: (...call) => cluster.replace(...call).finally(answered),
        list: async function* (...call) {
          for await (const page of cluster.list(...call)) {
            answered();
            yield page;
          }
        },
      };
      const one = input("one", { cluster: balanced, clock });
      const [result] = await play(run(one));
      assert.deepEqual([result?.exitCode, seen.deleted.length, seen.violations], [0, 9, []]);
      assert.ok(messages(one).filter((message) => message === "the lease was lost").length <= 1);
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
      for (const name of [...pods, flapping]) setReady(name, false);
      await stage.time.advance(200);
      await play(run(input(`call-${i}`, { once: true, memory })));
      setReady(flapping, true);
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

  it("Events that cannot be written do not delay the end", async () => {
    const relent = stage.emulator.faults.inject({ effect: { kind: "latency", ms: 60_000 }, resource: "events" });
    deploy(stage, "x:2");
    const stop = new AbortController();
    const running = run(input("one", { stop: stop.signal }));
    for (let i = 0; i < 40; i++) await stage.time.advance(50);
    stop.abort();
    const from = stage.time.now();
    await play(running);
    assert.ok(stage.time.now() - from < 5000);
    // Else each that waits would take its whole time once nobody looks, and keep the process as long.
    relent();
    await stage.time.advance(60_000);
  });

  function setReady(name: string, ready: boolean): void {
    const pod = stage.emulator.store.get("pods", "default", name);
    assert.ok(pod);
    const annotations = { ...pod.metadata.annotations, "sim/ready": String(ready) };
    stage.emulator.store.update("pods", { ...pod, metadata: { ...pod.metadata, annotations } });
  }

  it("R31 removes the series of a deleted group, and keeps the others", async () => {
    deploy(stage, "y:1", { group: "store", zones: ["a"] });
    await stage.time.advance(1000);
    const one = input("one");
    const running = run(one);
    for (let i = 0; i < 20; i++) await stage.time.advance(100);
    assert.match(await one.metrics.render(), /rollout_group="store"/);
    stage.emulator.store.remove("statefulsets.apps", "default", "store-zone-a");
    await play(running);
    const metrics = await one.metrics.render();
    assert.doesNotMatch(metrics, /rollout_group="store"/);
    assert.match(metrics, /rollout_operator_group_reconciles_total\{namespace="default",rollout_group="ingester"\}/);
  });
});
