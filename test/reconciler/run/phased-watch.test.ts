/** What wakes the ticks of a run with PhasedRollouts and no rollout group, and when its checks come (§16.8). */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createLog } from "../../../infra/log.ts";
import { createChecker } from "../../../reconciler/checks/act/ask-prometheus.ts";
import { createPhasedTick } from "../../../reconciler/phased/act/phased-tick.ts";
import { run } from "../../../reconciler/run/run.ts";
import type { RunInput } from "../../../reconciler/run/session.ts";
import { noChecks, runInputOf } from "../stage.ts";
import { amend } from "../../builders/objects.ts";
import { applySet, createRollout, type PhasedStage, QUIET, setPhasedStage } from "../phased/act/stage.ts";

interface Running {
  readonly stage: PhasedStage;
  /** When Prometheus was asked, in milliseconds. */
  readonly asked: number[];
  /** The lists of PhasedRollouts so far: one a tick. */
  readonly ticks: () => number;
  readonly advance: (ms: number) => Promise<void>;
}

async function running(scene: (it: Running) => Promise<void>): Promise<void> {
  const stage = await setPhasedStage();
  const stop = new AbortController();
  const { cluster, calls } = stage.connect();
  const { clock } = stage;
  const asked: number[] = [];
  const log = createLog({ level: "error", write: () => {}, now: () => new Date(0) });
  const prometheus = { query: async () => (asked.push(clock.now()), QUIET) };
  const tools = {
    clock,
    log,
    successWhen: "NoData",
    mayDisrupt: async () => undefined,
  } as const;
  const input: RunInput = {
    ...runInputOf(stage, cluster, "one"),
    budgetMs: 600_000,
    checking: { ...noChecks, checker: createChecker({ cluster, prometheus, clock }) },
    phased: createPhasedTick(tools),
    stop: stop.signal,
  };
  const advance = async (ms: number): Promise<void> => {
    for (const end = clock.now() + ms; clock.now() < end;) await stage.time.advance(50);
  };
  const ended = run(input);
  try {
    const ticks = (): number =>
      calls.filter((call) => call === "GET sts.plus/v1alpha1/phasedrollouts collection").length;
    await scene({ stage, asked, ticks, advance });
  } finally {
    stop.abort();
    await advance(5000);
    await ended;
    await stage.close();
  }
}

const CHECK = { initialDelaySeconds: 0, periodSeconds: 1, successThreshold: 4 };
const phaseOf = (stage: PhasedStage): string | undefined => stage.rollout().status.phase;

it("a PhasedRollout is seen when it is made, and its steps follow the pods and the checks, not the interval", () =>
  running(async ({ stage, asked, advance }) => {
    await applySet(stage, "x:1");
    await advance(12_000);
    createRollout(stage, { check: CHECK });
    await advance(2500);
    assert.equal(phaseOf(stage), "Updated");
    await applySet(stage, "x:2");
    const from = stage.clock.now();
    while (phaseOf(stage) !== "Updated" || stage.pods().some((pod) => pod.endsWith("x:1"))) {
      await advance(250);
      assert.ok(stage.clock.now() - from < 60_000, "the rollout takes too long");
    }
    assert.equal(asked.length, 12);
    const inRow = asked.flatMap((at, i) => (i % 4 === 0 ? [] : [at - (asked[i - 1] ?? 0)]));
    assert.ok(Math.max(...inRow) <= 1300, `checks came after ${inRow.join(", ")} ms`);
    assert.ok(Math.min(...inRow) >= 1000, `checks came after ${inRow.join(", ")} ms`);
    // 3 s of checks and the restart of a pod for each of three pods.
    assert.ok(stage.clock.now() - from <= 25_000, `${stage.clock.now() - from} ms`);
  }));

it("no change of another StatefulSet wakes a tick, and a change of a PhasedRollout does", () =>
  running(async ({ stage, ticks, advance }) => {
    await applySet(stage, "x:1");
    await applySet(stage, "x:1", { name: "other" });
    await advance(12_000);
    createRollout(stage, { check: { ...CHECK, periodSeconds: 60 } });
    await advance(20_000);
    assert.equal(phaseOf(stage), "Updated");
    const settled = ticks();
    assert.ok(settled > 3);
    for (let i = 0; i < 40; i++) {
      amend(stage.emulator.store, "StatefulSet", "other", { labels: { change: String(i) } });
      await advance(500);
    }
    assert.ok(ticks() - settled <= 5, `${ticks() - settled} ticks in 20 s`);
    const nextTick = async (): Promise<number> => {
      for (const from = ticks(); ticks() === from;) await advance(50);
      return ticks();
    };
    const before = await nextTick();
    amend(stage.emulator.store, "PhasedRollout", "guard", { annotations: { "sts.plus/pause": "true" } });
    await advance(2000);
    // The second one by the status that the first has written.
    assert.ok([1, 2].includes(ticks() - before));
  }));
