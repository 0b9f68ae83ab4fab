/** A run ticks again when the next check is due, and fails with the PhasedRollouts that it could not reconcile. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { PhasedResult } from "../../../../reconciler/phased/act/phased-tick.ts";
import { run } from "../../../../reconciler/run/run.ts";
import type { RunResult } from "../../../../reconciler/run/session.ts";
import { runInputOf, setStage } from "../../stage.ts";

const BUDGET_MS = 20_000;

/** A run whose ticks have this result; when they began, in seconds from the first. */
async function play(result: (now: number) => PhasedResult): Promise<{ times: number[]; ended: RunResult }> {
  const stage = await setStage();
  try {
    const times: number[] = [];
    const { cluster } = stage.connect();
    const phased = async (): Promise<PhasedResult> => {
      times.push(stage.clock.now());
      return result(stage.clock.now());
    };
    let ended: RunResult | undefined;
    const running = run({ ...runInputOf(stage, cluster, "one"), phased, intervalMs: 5000, budgetMs: BUDGET_MS }).then(
      (value) => (ended = value),
    );
    for (let i = 0; i < 1000 && !ended; i++) await stage.time.advance(50);
    const [first = 0] = times;
    return { times: times.map((time) => Math.round((time - first) / 1000)), ended: await running };
  } finally {
    await stage.close();
  }
}

/** There is a PhasedRollout: the cluster is not at rest. */
const lists = [{ namespace: "default", rolloutsAt: "", targets: ["default/web"] }];
const settled = { acted: false, failed: false, lists };

it("without anything due, the next tick comes after the interval", async () => {
  const { times, ended } = await play(() => settled);
  assert.deepEqual(times.slice(0, 3), [0, 5, 10]);
  assert.equal(ended.exitCode, 0);
});

it("the next tick comes when the next check is due, and not later than the interval", async () => {
  const { times } = await play((now) => ({ ...settled, dueAt: now + 2000 }));
  assert.deepEqual(times.slice(0, 3), [0, 2, 4]);
  const later = await play((now) => ({ ...settled, dueAt: now + 60_000 }));
  assert.deepEqual(later.times.slice(0, 3), [0, 5, 10]);
});

it("a check that is due at once waits a second, so that ticks do not chase it", async () => {
  const { times } = await play((now) => ({ ...settled, dueAt: now }));
  assert.deepEqual(times.slice(0, 3), [0, 1, 2]);
});

it("a PhasedRollout that could not be reconciled fails the run", async () => {
  assert.equal((await play(() => ({ acted: false, failed: true }))).ended.exitCode, 1);
});
