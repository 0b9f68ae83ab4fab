/**
 * The plan is what happens: over random groups, the steps of a look ahead are those that a rollout then takes, in the
 * same order.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import type { RolloutDecision } from "../../../reconciler/rollout/decide-zone.ts";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { least, runs } from "../../runs.ts";
import { carryOut, observe, type Happening } from "../rollout/world.ts";
import type { SmallCluster } from "../small-cluster.ts";
import { worldOf } from "./builders.ts";
import { moveAll, moveOne, playPast, syncAll } from "./play.ts";

/** What may have happened to the group before anybody looks. */
const PAST = [
  "deploy",
  "stumble",
  "crash",
  "limp",
  "run",
  "sync",
  "pause",
  "recover",
  "revert",
] as const satisfies Happening[];

const start = fc.record({
  sizes: fc.array(fc.nat(6), { minLength: 1, maxLength: 4, size: "max" }),
  maxUnavailable: fc.integer({ min: 1, max: 4 }),
  past: fc.array(fc.record({ what: fc.constantFrom(...PAST), zone: fc.nat(3), pod: fc.nat(5) }), { maxLength: 8 }),
  /** Rolled out so far. */
  ticks: fc.nat(4),
  /** Which pods the kubelets get ready first. */
  pace: fc.array(fc.nat(9), { minLength: 5, maxLength: 5 }),
});

/** `zone-a-0`, or `zone-a` once it is finished. */
function namesOf(decision: RolloutDecision): string[] {
  if (decision.action === "hold") return [];
  return decision.action === "finishZone" ? [decision.zone.name] : decision.pods.map(({ name }) => name);
}

/**
 * Ticks, with controllers and kubelets at their own pace, until nothing moves any more. Which of several pods of a
 * batch is ready first decides whether another zone has its turn in between: there they get ready together, once the
 * ticks have nothing to do but wait, as the plan says.
 */
function execute(cluster: SmallCluster, pace: readonly number[]): string[] {
  const atOnce = cluster.zones()[0]?.maxUnavailable ?? 1;
  const done: string[] = [];
  for (let tick = 0; tick < 2000; tick++) {
    syncAll(cluster);
    const decision = decideRollout(observe(cluster));
    if (decision) carryOut(decision, cluster);
    const names = decision ? namesOf(decision) : [];
    done.push(...names);
    const isWaiting = names.length === 0;
    const moved = atOnce === 1 ? moveOne(cluster, pace[tick % pace.length] ?? 0) : isWaiting && moveAll(cluster);
    if (!moved && isWaiting) return done;
  }
  return assert.fail("it does not end");
}

describe("over random rollouts", () => {
  it("the plan has the pods and the zones in the order in which they are then replaced and finished", () => {
    const seen = { settled: 0, blocked: 0, steps: 0 };
    fc.assert(
      fc.property(start, ({ sizes, maxUnavailable, past, ticks, pace }) => {
        const cluster = playPast({ sizes, maxUnavailable, past, ticks });
        syncAll(cluster);
        // Pods that are on their way get there first, in the plan as in the play.
        moveAll(cluster);
        syncAll(cluster);

        const plan = planGroup(worldOf(observe(cluster).zones), 10_000);
        const planned = plan.steps.flatMap(({ zone, pods = [zone] }) => pods);
        assert.deepEqual(planned, execute(cluster, pace));
        assert.ok(plan.end !== "cut");
        seen[plan.end]++;
        seen.steps += planned.length;
      }),
      { numRuns: runs(1000) },
    );
    assert.ok(
      seen.settled >= least(300, 1000) && seen.blocked >= least(100, 1000) && seen.steps >= least(2000, 1000),
      JSON.stringify(seen),
    );
  });
});
