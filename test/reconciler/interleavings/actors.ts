/** Who takes part in a play: processes of the eviction function, with the API server that asks them, and reconcilers. */
import type { Clock } from "../../../infra/clock.ts";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics.ts";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { createFreshness } from "../../../reconciler/freshness.ts";
import { askBudget } from "../../../reconciler/may-disrupt.ts";
import { createReserver, type Reserver } from "../../../reconciler/reserve.ts";
import { tick } from "../../../reconciler/tick.ts";
import { createUpkeep } from "../../../reconciler/upkeep.ts";
import { createTeller } from "../../../reconciler/teller.ts";
import { noPods, scalingOf } from "../stage.ts";
import type { Stepper } from "./stepper.ts";
import type { World } from "./world.ts";

export interface Stage {
  readonly stepper: Stepper;
  readonly world: World;
}

const silent = createLog({ level: "error", write: () => {}, now: () => new Date(0) });

/** Time stands still; a pause is a step like any other. */
function clockOf({ stepper }: Stage, actor: string): Clock {
  return { now: () => Date.parse("2026-01-01T00:00:00Z"), monotonic: () => 0, sleep: () => stepper.step("pause", actor) };
}

function reserverOf(stage: Stage, actor: string): Reserver {
  const clock = clockOf(stage, actor);
  return createReserver({
    cluster: stage.world.connect(actor),
    clock,
    by: actor,
    freshness: createFreshness(clock, silent),
    random: () => 0,
    onBudgets: () => {},
  });
}

/** A process of the function that is asked about these pods, all at once, and again so many times after a "not now", as drainers do. */
export async function evictor(stage: Stage, actor: string, names: readonly string[], tries = 1): Promise<void> {
  const reserver = reserverOf(stage, actor);
  const evictions = names.map(async (name) => {
    const uid = stage.world.pods.get(name)?.uid ?? "";
    for (let i = 0; i < tries; i++) {
      const { verdict, held } = await reserver.reserve({ namespace: "test", name, dryRun: false, deadlineAt: Infinity });
      const { code } = VERDICTS[verdict.reason];
      if (code === 429) continue;
      if (code === 400) return;
      await stage.stepper.step(`evict ${name}`, "apiserver");
      stage.world.evict(name, held?.uid ?? uid);
      return;
    }
  });
  await Promise.all(evictions);
}

/** The reconciler itself, so many ticks long. */
export async function reconciler(stage: Stage, actor: string, ticks: number): Promise<void> {
  const reserver = reserverOf(stage, actor);
  const clock = clockOf(stage, actor);
  const teller = createTeller({ http: noPods, clock, onNote: () => {}, signal: new AbortController().signal });
  for (let i = 0; i < ticks; i++) {
    const cluster = stage.world.connect(actor);
    const one = tick({
      cluster,
      ...scalingOf(cluster),
      teller,
      now: clock.now,
      upkeep: createUpkeep({ cluster, clock, log: silent, onBudgets: () => {}, patchTimeoutMs: 5000 }),
      fence: { write: () => ({}) },
      namespaces: ["test"],
      freshness: createFreshness(clock, silent),
      mayDisrupt: askBudget(reserver, clock, createMetrics().budgets),
      lookCloser: () => true,
      timesOutrun: () => 0,
      onOutcome: () => {},
      monotonic: clock.monotonic,
      stop: new AbortController().signal,
    });
    await one.catch(() => {});
  }
}
