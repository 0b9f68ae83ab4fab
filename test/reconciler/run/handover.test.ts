/** From one run to the next: no pause between their ticks, and nothing lost when either dies. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createLog } from "../../../infra/log.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { leases } from "../../../infra/kubernetes/resources.ts";
import { changeLease } from "../../../infra/kubernetes/lease-object.ts";
import { SUCCESSOR } from "../../../infra/kubernetes/lease-succession.ts";
import { REST_MS } from "../../../reconciler/run/pause.ts";
import { run } from "../../../reconciler/run/run.ts";
import type { RunInput, RunResult } from "../../../reconciler/run/session.ts";
import { deploy, runInputOf, setStage, type Stage } from "../stage.ts";
import { witness } from "../witness.ts";

const INTERVAL_MS = 5000;
const REF = { namespace: "default", name: "zonewise-reconciler" };

interface Started {
  readonly messages: string[];
  readonly result: Promise<RunResult>;
  readonly stop: AbortController;
  over: boolean;
}

describe("a run that another waits for", () => {
  let stage: Stage;
  /** When ticks ended, and whose. */
  let ticks: { by: string; at: number }[];
  /** When each has said that it hands over. */
  let handedOverAt: Map<string, number>;
  beforeEach(async () => {
    stage = await setStage();
    ticks = [];
    handedOverAt = new Map();
    deploy(stage, "x:1");
    await stage.time.advance(2000);
  });
  afterEach(() => stage.close());

  function start(identity: string, more: Partial<RunInput> = {}): Started {
    const messages: string[] = [];
    const { cluster } = stage.connect();
    const stop = new AbortController();
    const write = (line: string): void => {
      const { msg } = JSON.parse(line) as { msg: string };
      if (msg === "tick") ticks.push({ by: identity, at: stage.time.now() });
      else messages.push(msg);
      if (msg.startsWith("handing the lease over")) handedOverAt.set(identity, stage.time.now());
    };
    const log = createLog({ level: "info", write, now: () => new Date(stage.time.now()) });
    const input = {
      ...runInputOf(stage, cluster, identity),
      budgetMs: 110_000,
      intervalMs: INTERVAL_MS,
      log,
      stop: stop.signal,
      ...more,
    };
    const started: Started = { messages, result: run(input), stop, over: false };
    void started.result.finally(() => (started.over = true));
    return started;
  }

  const ticksOf = (identity: string) => ticks.filter(({ by }) => by === identity);

  /** Moves the time on until it is so, for two minutes at most. */
  async function until(isSo: () => boolean): Promise<void> {
    for (let ms = 0; ms < 120_000 && !isSo(); ms += 100) await stage.time.advance(100);
    assert.ok(isSo());
  }

  /** In small steps, in which answers arrive. */
  async function pass(ms: number): Promise<void> {
    for (const end = stage.time.now() + ms; stage.time.now() < end;) await stage.time.advance(100);
  }

  /** Milliseconds from the handover to the first tick of the other. */
  const gap = (one: string, other: string): number =>
    (ticksOf(other)[0]?.at ?? Infinity) - (handedOverAt.get(one) ?? ticksOf(one).at(-1)?.at ?? -Infinity);

  const longestGap = (): number => Math.max(...ticks.map(({ at }, i) => at - (ticks[i - 1]?.at ?? at)));

  it("finishes its tick and ends; the other ticks at once, run after run, in the middle of a rollout", async () => {
    const seen = witness(stage);
    deploy(stage, "x:2");
    let one = start("run-0");
    await until(() => ticksOf("run-0").length > 1);
    for (let i = 1; i <= 4; i++) {
      const next = start(`run-${i}`);
      await until(() => one.over);
      assert.equal((await one.result).exitCode, 0);
      assert.ok(one.messages.includes("handing the lease over to the next run"));
      assert.ok(gap(`run-${i - 1}`, `run-${i}`) <= 400, `${gap(`run-${i - 1}`, `run-${i}`)} ms`);
      one = next;
    }
    await until(() => seen.deleted.length === 9);
    one.stop.abort();
    await until(() => one.over);
    assert.deepEqual(seen.violations, []);
  });

  it("goes on if the other died before it took the Lease", async () => {
    const one = start("one");
    await until(() => ticksOf("one").length > 0);
    const { cluster } = stage.connect();
    await cluster.replace(leases, {
      ...REF,
      body: changeLease(REF, await cluster.get(leases, REF), { annotations: { [SUCCESSOR]: "dead" } }),
    });
    await until(() => one.messages.includes("handing the lease over to the next run"));
    const before = ticks.length;
    await until(() => ticks.length > before);
    await pass(60_000);
    assert.ok(longestGap() <= REST_MS + 1000, JSON.stringify(ticks));
    assert.deepEqual([one.over, one.messages.filter((message) => message === "holding the lease").length], [false, 2]);
    // It hears of the next run at once, though it has had the Lease before.
    const askedAt = stage.time.now();
    const next = start("next");
    await until(() => ticksOf("next").length > 0);
    assert.ok((ticksOf("next")[0]?.at ?? Infinity) - askedAt <= 1000);
    await until(() => one.over);
    next.stop.abort();
    await until(() => next.over);
  });

  it("goes on after a call of the function that ticks once, which has its tick soon", async () => {
    const one = start("one");
    await until(() => ticksOf("one").length > 0);
    const from = stage.time.now();
    const call = start("call", { once: true });
    await until(() => call.over);
    assert.ok(stage.time.now() - from < 15_000);
    assert.ok((await call.result).last);
    const before = ticks.length;
    await until(() => ticks.length > before + 1);
    assert.equal(one.over, false);
    one.stop.abort();
    await until(() => one.over);
  });

  it("gets the signal to stop while the other waits: that one ticks at once", async () => {
    const one = start("one");
    await until(() => ticksOf("one").length > 0);
    const two = start("two");
    await stage.time.advance(300);
    one.stop.abort();
    await until(() => one.over && ticksOf("two").length > 0);
    assert.ok(gap("one", "two") <= INTERVAL_MS + 1000);
    two.stop.abort();
    await until(() => two.over);
  });

  it("goes on if the other gets the signal to stop while it waits, says why it has nothing to do, and ends with 0", async () => {
    const one = start("one");
    await until(() => ticksOf("one").length > 0);
    const two = start("two");
    await stage.time.advance(300);
    two.stop.abort();
    await until(() => two.over);
    assert.equal((await two.result).exitCode, 0);
    await pass(40_000);
    assert.deepEqual([one.over, ticksOf("two").length], [false, 0]);
    assert.ok(longestGap() <= REST_MS + 1000, JSON.stringify(ticks));
    one.stop.abort();
    await until(() => one.over);
  });

  it("has two that wait: one of them ticks, and hands over to the other", async () => {
    const one = start("one");
    await until(() => ticksOf("one").length > 0);
    const both = [start("two"), start("three")];
    await until(() => ticksOf("two").length > 0 && ticksOf("three").length > 0);
    await until(() => one.over && both.filter(({ over }) => over).length === 1);
    assert.ok(longestGap() <= REST_MS + 1000, JSON.stringify(ticks));
    for (const { stop } of both) stop.abort();
    await until(() => both.every(({ over }) => over));
  });

  it("does not fail by an API error after it has handed over", async () => {
    const { cluster } = stage.connect();
    const started: Started[] = [];
    let errors = 0;
    const flaky: typeof cluster = {
      ...cluster,
      get: async (resource, ref, call) => {
        const isOver = started[0]?.messages.some((message) => message.startsWith("handing the lease over"));
        if (isOver && resource.plural === "leases" && errors++ === 0)
          throw new RolloutError("Unreachable", "connection reset");
        return cluster.get(resource, ref, call);
      },
    };
    const one = start("one", { cluster: flaky });
    started.push(one);
    await stage.time.advance(5000);
    const two = start("two");
    for (let i = 0; i < 1200 && !one.over; i++) await stage.time.advance(100);
    assert.equal((await one.result).exitCode, 0);
    assert.equal(errors > 0, true);
    two.stop.abort();
    for (let i = 0; i < 300 && !two.over; i++) await stage.time.advance(100);
    assert.equal((await two.result).exitCode, 0);
  });

  it("that none waits for ends with its time budget", async () => {
    const one = start("one");
    const from = stage.time.now();
    await until(() => one.over);
    assert.ok(stage.time.now() - from >= 110_000);
    assert.equal((await one.result).exitCode, 0);
    assert.ok(!one.messages.includes("handing the lease over to the next run"));
  });
});
