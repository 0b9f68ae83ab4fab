/** A group whose pods are silent does not hold up the others (§13.2). */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import { run } from "../../../reconciler/run/run.ts";
import type { RunInput, RunResult } from "../../../reconciler/run/session.ts";
import { holdsOf, isLeftOut, type Outcome } from "../../../reconciler/model/outcome.ts";
import { createSteps } from "../../../reconciler/run/tick.ts";
import { DELAYED, MIRROR, mirrorStage, type MirrorStage } from "../scaling/mirror-stage.ts";
import { deploy, runInputOf, tickOnce, type Stage } from "../stage.ts";
import { amend } from "../../builders/objects.ts";

/** Milliseconds until a call to a silent pod is given up, as by default. */
const TIMEOUT_MS = 5000;

/** Milliseconds that a call lasts after it was given up, as one whose answer is on its way. */
const LINGERS_MS = 500;

let on: MirrorStage;
let stage: Stage;
beforeEach(async () => {
  on = await mirrorStage();
  ({ stage } = on);
});
afterEach(() => stage.close());

/**
 * Three zones of the group `ingester` whose pods are to go and do not answer, and a group `store` of nine pods that is
 * rolled out.
 */
async function setScene(): Promise<void> {
  await on.reference(1);
  const silent = { replicas: 3, annotations: { ...MIRROR, ...DELAYED } };
  await on.zones(silent, silent, silent);
  deploy(stage, "x:1", { group: "store" });
  await stage.time.advance(3000);
  deploy(stage, "x:2", { group: "store" });
  await stage.time.advance(500);
}

interface Calls {
  readonly http: PodHttp;
  /** The zones of which pods are called now. */
  readonly inFlight: Set<string>;
  /** Calls that were given up, and whether ever two zones were called at once. */
  given: number;
  overlaps: number;
}

/** Pods that say nothing for 5 s of the stage's time. */
function silence(): Calls {
  const calls: Calls = {
    inFlight: new Set(),
    given: 0,
    overlaps: 0,
    http: {
      async send(method, url, { signal }) {
        if (method === "DELETE") throw new RolloutError("Unreachable", "silent");
        const zone = /ingester-zone-[a-c]/.exec(url)?.[0] ?? "";
        calls.inFlight.add(zone);
        if (calls.inFlight.size > 1) calls.overlaps++;
        await stage.clock.sleep(TIMEOUT_MS, signal);
        if (signal?.aborted) await stage.clock.sleep(LINGERS_MS);
        calls.inFlight.delete(zone);
        if (signal?.aborted) throw new RolloutError("Cancelled", "given up");
        calls.given++;
        throw new RolloutError("Timeout", "silent");
      },
    },
  };
  return calls;
}

interface Started {
  readonly result: Promise<RunResult>;
  readonly stop: AbortController;
  readonly calls: string[];
  isOver: boolean;
}

function start(podHttp: PodHttp, more: Partial<RunInput> = {}): Started {
  const { cluster, calls } = stage.connect();
  const stop = new AbortController();
  const input = runInputOf(stage, cluster, "run");
  const result = run({ ...input, scaling: { ...input.scaling, podHttp }, stop: stop.signal, ...more });
  const started: Started = { result, stop, calls, isOver: false };
  void result.finally(() => (started.isOver = true));
  return started;
}

/** Moves the time on until it is so, for `limitMs` at most; resolves with the time that it took. */
async function until(isSo: () => boolean, limitMs: number): Promise<number> {
  const from = stage.time.now();
  while (!isSo() && stage.time.now() - from < limitMs) await stage.time.advance(50);
  assert.ok(isSo(), `not so after ${limitMs} ms`);
  return stage.time.now() - from;
}

const zonesOf = (group: string) =>
  stage.emulator.store.list("statefulsets.apps", "default").filter(({ metadata }) => metadata.name.startsWith(group));

/** Of nine pods of the group, those at its update revision, by the status. */
const updated = (group: string): number =>
  zonesOf(group).reduce((sum, { status }) => {
    const { updatedReplicas = 0, readyReplicas = 0 } = (status ?? {}) as {
      updatedReplicas?: number;
      readyReplicas?: number;
    };
    return sum + Math.min(updatedReplicas, readyReplicas);
  }, 0);

describe("beside a group whose three delayed downscales meet silent pods", () => {
  it("another group's rollout of nine pods goes on from tick to tick", async () => {
    await setScene();
    const calls = silence();
    const running = start(calls.http, { budgetMs: 300_000 });
    await until(() => calls.inFlight.size > 0, 5000);
    await until(() => updated("store") === 9, 60_000);
    // Each of its pods needs a tick: of steps of 15 s, nine would have been given up by then, three times over.
    assert.ok(calls.given <= 9, `${calls.given} calls were given up meanwhile`);
    assert.equal(calls.overlaps, 0, "no step of the group is begun while another is under way");
    running.stop.abort();
    await until(() => running.isOver, 2000);
  });

  it("a run that is stopped ends at once: silent calls are given up, and nothing is written after the Lease was given back", async () => {
    await setScene();
    const calls = silence();
    const running = start(calls.http, { budgetMs: 300_000 });
    await until(() => updated("store") === 9 && calls.inFlight.size > 0, 60_000);
    running.stop.abort();
    assert.ok((await until(() => running.isOver, 4000)) < 2000);
    assert.equal((await running.result).exitCode, 0);
    assert.equal(calls.inFlight.size, 0);
    const writes = running.calls.filter((call) => !call.startsWith("GET"));
    assert.match(writes.at(-1) ?? "", /^PUT .*leases/);
    const before = writes.length;
    await stage.time.advance(20_000);
    assert.equal(running.calls.filter((call) => !call.startsWith("GET")).length, before);
  });

  it("a run that loses its Lease cuts off a call to a pod that hangs", async () => {
    await setScene();
    const called = { hanging: 0, cutOff: 0, others: 0 };
    const hangs: PodHttp = {
      async send(method, _url, { signal }) {
        if (method === "DELETE") throw new RolloutError("Unreachable", "silent");
        if (called.cutOff > 0) called.others++;
        called.hanging++;
        await stage.clock.sleep(600_000, signal);
        called.hanging--;
        called.cutOff++;
        throw new RolloutError("Cancelled", "cut off");
      },
    };
    const running = start(hangs, { budgetMs: 300_000 });
    await until(() => updated("store") === 9 && called.hanging > 0, 60_000);
    const { store } = stage.emulator;
    const lease = store.get("leases.coordination.k8s.io", "default", "zonewise-reconciler") ?? assert.fail();
    const spec = { ...(lease["spec"] as object), holderIdentity: "thief", leaseDurationSeconds: 600 };
    store.update("leases.coordination.k8s.io", { ...lease, spec });
    // It learns of it with its next renewal, after a third of the Lease's 15 s.
    await until(() => called.hanging === 0, 6000);
    await stage.time.advance(5000);
    assert.equal(called.others, 0, "and calls no other pod");
    running.stop.abort();
    await until(() => running.isOver, 2000);
  });

  it("a single tick, as a function call asks for, waits for every group", async () => {
    await setScene();
    const calls = silence();
    const running = start(calls.http, { once: true, budgetMs: 300_000 });
    assert.ok((await until(() => running.isOver, 60_000)) >= 3 * TIMEOUT_MS);
    const { last } = await running.result;
    assert.deepEqual(last?.outcomes.map(({ group, scalingHolds }) => [group, scalingHolds.length]).toSorted(), [
      ["ingester", 3],
      ["store", 0],
    ]);
  });
});

describe("a group whose step an earlier tick has begun", () => {
  it("is left to the next tick although the step ends while the lists are read: they may be older than its writes", async () => {
    deploy(stage, "x:1", { group: "store" });
    deploy(stage, "x:1", { group: "other" });
    await stage.time.advance(3000);
    const { cluster } = stage.connect();
    const stop = new AbortController();
    const steps = createSteps({ clock: stage.clock, stop: stop.signal }, { onOwed: () => {}, isPatient: false });
    const earlier = Promise.withResolvers<void>();
    void steps.queue.resume(new Map([["default/store", () => earlier.promise]]));
    const ending: Cluster = {
      ...cluster,
      async *list(resource, query, call) {
        earlier.resolve();
        yield* cluster.list(resource, query, call);
      },
    };
    const tickNow = async (through: Cluster): Promise<string[]> => {
      steps.queue.pause();
      const { outcomes } = await tickOnce(stage, through, { steps });
      return outcomes.map(({ group }) => group).toSorted();
    };
    assert.deepEqual(await tickNow(ending), ["other"]);
    assert.deepEqual(await tickNow(cluster), ["other", "store"]);
  });
});

describe("a group that waits for its turn", () => {
  const slowOf = (namespace: string, count: number): string[] =>
    Array.from({ length: count }, (_, i) => `${namespace}/slow-${i}`);
  const CASES = [
    ["behind 8 of its namespace", slowOf("default", 8), "8 other groups of its namespace take long"],
    [
      "behind 31 of others and the PhasedRollouts",
      ["/phased", ...[8, 8, 8, 7].flatMap((n, i) => slowOf(`n${i}`, n))],
      "31 other groups take long",
    ],
  ] as const;
  for (const [behind, slow, message] of CASES)
    it(`says so after 30 s, ${behind}, unless its status is settled or the run is over`, async () => {
      for (const group of ["store", "other"]) deploy(stage, "x:1", { group });
      await stage.time.advance(3000);
      deploy(stage, "x:2", { group: "store" });
      await stage.time.advance(500);
      const stop = new AbortController();
      const steps = createSteps({ clock: stage.clock, stop: stop.signal }, { onOwed: () => {}, isPatient: false });
      void steps.queue.resume(new Map(slow.map((key) => [key, () => new Promise<void>(() => {})])));
      const { cluster } = stage.connect();
      const told: Outcome[] = [];
      const tickNow = async (): Promise<number | undefined> => {
        steps.queue.pause();
        let skipped: number | undefined;
        const onOutcome = (outcome: Outcome): void => void told.push(outcome);
        void tickOnce(stage, cluster, { steps, onOutcome, stop: stop.signal }).then((result) => ({ skipped } = result));
        for (let i = 0; i < 30 && skipped === undefined; i++) await stage.time.advance(100);
        return skipped;
      };
      assert.deepEqual([await tickNow(), told], [2, []]);
      await stage.time.advance(31_000);
      assert.deepEqual([await tickNow(), told.map(({ group }) => group), told.every(isLeftOut)], [2, ["store"], true]);
      assert.match(
        holdsOf(told[0] ?? assert.fail())[0]?.message ?? "",
        new RegExp(`^group store waits for its turn: ${message},`),
      );
      stop.abort();
      assert.deepEqual([await tickNow(), told.length], [2, 1]);
    });
});

describe("the end of a slow step", () => {
  /**
   * Plays a run of 55 s whose group looks at its pods each tick, for 1.5 s, and tells when its next check is due, or that
   * a gate has opened; returns when it began.
   */
  async function play(
    next: (now: number, looks: number) => number | boolean | undefined,
    onLook?: (look: number) => void,
  ): Promise<number[]> {
    deploy(stage, "x:1", { group: "g", zones: ["a"], replicas: 1 });
    await stage.time.advance(3000);
    const { cluster } = stage.connect();
    const looks: number[] = [];
    const slow: Cluster = {
      ...cluster,
      async *list(resource, query, call) {
        if (resource.plural === "pods") {
          looks.push(stage.time.now());
          onLook?.(looks.length);
          await stage.clock.sleep(1500);
        }
        for await (const page of cluster.list(resource, query, call)) {
          const notReady = (item: object) => ({
            ...item,
            status: { ...(item as { status?: object }).status, readyReplicas: 0 },
          });
          yield resource.plural === "statefulsets"
            ? { ...page, items: page.items.map((item) => notReady(item as object)) as never }
            : page;
        }
      },
    };
    const gates = {
      of: () => ({ verdicts: undefined, follow: () => {}, readAgain: async () => undefined }),
      bypassesOf: () => [],
      async endGroup() {
        const found = next(stage.time.now(), looks.length);
        return { progressed: found === true, nextAt: typeof found === "number" ? found : undefined };
      },
      end: async () => {},
    };
    const input = runInputOf(stage, slow, "run");
    let isOver = false;
    const checking = { ...input.checking, gates: { begin: async () => gates } };
    const running = run({ ...input, intervalMs: 30_000, budgetMs: 55_000, checking }).finally(() => (isOver = true));
    while (!isOver) await stage.time.advance(50);
    await running;
    return looks;
  }

  it("starts no tick before its next check is due, and one then", async () => {
    const never = await play((now) => now + 600_000);
    assert.ok(never.length <= 3, `${never.length} looks`);
  });

  it("starts a tick when its check is due, which ends the pause", async () => {
    const looks = await play((now) => now + 10_000);
    const pauses = looks.slice(1).map((at, i) => at - (looks[i] ?? 0));
    assert.ok(
      looks.length >= 4 && pauses.slice(1).every((pause) => pause >= 10_000 && pause <= 13_000),
      pauses.join(" "),
    );
  });

  it("starts a tick at once if it has changed the cluster, or has failed", async () => {
    const fail = (): never => {
      throw new Error("no step should");
    };
    for (const trouble of [(): boolean => true, fail]) {
      const [first = 0, second = 0, third = 0] = await play((_, looks) => (looks === 1 ? trouble() : undefined));
      assert.ok(second - first <= 2500, `${second - first} ms`);
      assert.ok(third - second >= 25_000 || third === 0, `${third - second} ms: not again and again`);
    }
  });

  it("starts a tick at once if one has left its group out meanwhile", async () => {
    const touch = (): void =>
      amend(stage.emulator.store, "StatefulSet", "g-zone-a", { annotations: { touched: "true" } });
    const looks = await play(
      () => undefined,
      (look) => void (look === 1 && stage.time.after(1200, touch)),
    );
    const [first = 0, second = 0] = looks;
    assert.ok(second - first <= 3500, `${second - first} ms`);
  });
});
