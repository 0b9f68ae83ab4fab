/** The actors of a play: processes of the eviction function, with the API server that calls them, and reconcilers. */
import type { Clock } from "../../../infra/clock.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { createMayDisrupt } from "../../../reconciler/budget/act/may-disrupt.ts";
import { createReserver, type Reserver } from "../../../reconciler/budget/act/reserve.ts";
import { tickOnce } from "../stage.ts";
import type { Stepper } from "./stepper.ts";
import type { World } from "./world.ts";

interface Stage {
  readonly stepper: Stepper;
  readonly world: World;
}

/** Time passes only in steps of the world; a pause is a step like any other. */
function clockOf({ stepper, world }: Stage, actor: string): Clock {
  const start = Date.parse("2026-01-01T00:00:00Z");
  return { now: () => start + world.now(), monotonic: () => world.now(), sleep: () => stepper.step("pause", actor) };
}

/** The API server's timeout for a webhook, milliseconds. */
const TIMEOUT_MS = 3000;

function reserverOf(stage: Stage, actor: string): Reserver {
  const clock = clockOf(stage, actor);
  return createReserver({
    cluster: stage.world.connect(actor),
    clock,
    by: actor,
    random: () => 0,
    noteKind: () => {},
  });
}

/**
 * A process of the function that gets concurrent requests for these pods; after NotNow each is repeated, at most
 * `tries` in all, as drainers do.
 */
export async function evictor(stage: Stage, actor: string, names: readonly string[], tries = 1): Promise<void> {
  const { world, stepper } = stage;
  const reserver = reserverOf(stage, actor);
  const evictions = names.map(async (name) => {
    const uid = world.uidOf(name) ?? "";
    for (let i = 0; i < tries; i++) {
      const epoch = world.epoch();
      const deadlineAt = world.now() + TIMEOUT_MS;
      const { verdict } = await reserver.reserve({ namespace: "test", name, dryRun: false, deadlineAt });
      if (verdict.reason === "NotNow" && world.now() >= deadlineAt) world.reach("a deadline passed");
      const { code } = VERDICTS[verdict.reason];
      if (code === 429) continue;
      if (code === 400) return;
      await stepper.step(`evict ${name}`, "apiserver");
      if (world.epoch() === epoch) world.evict(name, verdict.objects.find(({ kind }) => kind === "Pod")?.uid ?? uid);
      return;
    }
  });
  await Promise.all(evictions);
}

/**
 * A process that scales a zone down, as the reconciler or an admitted request does: reserve, then the API server stores
 * it.
 */
export async function downscaler(
  stage: Stage,
  actor: string,
  { zone: name, to }: { readonly zone: string; readonly to: number },
): Promise<void> {
  const { world, stepper } = stage;
  const reserver = reserverOf(stage, actor);
  const zone = {
    kind: "StatefulSet",
    namespace: "test",
    name,
    uid: `uid-${name}`,
    labels: { "rollout-group": "ingester" },
    firstOrdinal: 0,
  } as const;
  const epoch = world.epoch();
  const result = await reserver.reserveDownscale({
    zone,
    to,
    forced: false,
    deadlineAt: world.now() + TIMEOUT_MS,
  });
  if (result.outcome !== "allowed") return;
  await stepper.step(`store ${to} replicas of ${name}`, "apiserver");
  if (world.epoch() !== epoch)
    return void (await Promise.all(result.handles.map((handle) => reserver.release(handle, {}))));
  world.reach("a zone was scaled down");
  await world.shrink(name, to);
}

/** The reconciler itself, for so many ticks. */
export async function reconciler(stage: Stage, actor: string, ticks: number): Promise<void> {
  const reserver = reserverOf(stage, actor);
  const clock = clockOf(stage, actor);
  const { world } = stage;
  const cluster = world.connect(actor);
  for (let i = 0; i < ticks; i++) {
    // Nothing keeps a reconciler that has lost its Lease from writing but the preconditions of its writes.
    const mayDisrupt = createMayDisrupt(reserver, clock, createMetrics().budgets);
    const result = await tickOnce({ clock }, cluster, {
      namespaces: ["test"],
      takeResync: () => true,
      mayDisrupt,
    }).catch(() => undefined);
    for (const outcome of result?.outcomes ?? []) {
      if (outcome.state === "superseded") world.reach(outcome.error.code);
    }
  }
}
