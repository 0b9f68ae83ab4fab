/**
 * Runs that take over from each other in the middle of a rollout, as those of the CronJob do, only sooner; and one that
 * is killed.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import type { TestProcess } from "../stage/process.ts";
import { scenario } from "../stage/stage.ts";

const RUNS = 5;
const PERIOD_MS = 4000;

/** When the ticks of the run ended, milliseconds since the epoch. */
function ticksOf(run: TestProcess): number[] {
  const lines = run.output().split("\n");
  const entries = lines.flatMap((line) =>
    line.startsWith("{") ? [JSON.parse(line) as { msg: string; ts: string }] : [],
  );
  return entries.filter(({ msg }) => msg === "tick").map(({ ts }) => Date.parse(ts));
}

scenario(
  "each run hands over to the next one in the middle of a rollout, and one that is killed has a successor",
  async (stage) => {
    const { create, start, setImage, done, timeline, diagnostic } = stage;
    const zones = ["zone-a", "zone-b", "zone-c"].map((name) => ({
      group: "cache",
      name,
      replicas: 4,
      sim: { "sim/ready-after-ms": "1500" },
    }));
    await create(zones);
    const env = (i: number) => ({ LEASE_DURATION: "20s", POD_NAME: `run-${i}` });
    let run = start(env(0));
    await setImage("app:2", zones);
    await run.untilOutput(/"msg":"tick"/);
    for (let i = 1; i <= RUNS; i++) {
      await sleep(PERIOD_MS);
      const next = start(env(i));
      await next.untilOutput(/"msg":"tick"/);
      const [first = 0] = ticksOf(next);
      const before = ticksOf(run).filter((at) => at <= first);
      diagnostic(`run ${i - 1} -> run ${i}: ${first - (before.at(-1) ?? 0)} ms between their ticks`);
      assert.equal(await run.exited, 0);
      assert.match(run.output(), new RegExp(`handing the lease over to the next run.*run-${i}`));
      run = next;
    }
    await run.kill();
    const killed = ticksOf(run).at(-1) ?? 0;
    const last = start(env(RUNS + 1));
    await last.untilOutput(/"msg":"tick"/);
    diagnostic(`killed: ${(ticksOf(last)[0] ?? 0) - killed} ms between its last tick and the next`);
    await done("app:2", zones);
    assert.equal(await last.end(), 0);

    assertNoViolations(timeline.entries);
    const deleted = deletions(timeline.entries).map(({ pod }) => pod);
    assert.deepEqual([deleted.length, new Set(deleted).size], [12, 12]);
  },
);
