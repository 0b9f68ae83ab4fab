import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { CheckVerdict } from "../../../reconciler/checks/check.ts";
import { targetNeedsPods } from "../../../reconciler/phased/decide-phased.ts";
import type { PhasedDecision } from "../../../reconciler/phased/snapshot.ts";
import { isSameJson } from "../../../infra/json.ts";
import { runs } from "../../runs.ts";
import {
  createWorld,
  happen,
  HAPPENINGS,
  heal,
  numberOf,
  releaseKey,
  setOf,
  THRESHOLD,
  type SetFacts,
  type World,
} from "./world.ts";
import { carryOut, decide, observe, tick, versionsOf } from "./world-actor.ts";

/** So often that rollouts, reverts and broken pods meet; any other change is rarer. */
const often = fc.constantFrom(
  "deploy" as const,
  "revert" as const,
  "break" as const,
  "fire" as const,
  "clear" as const,
);
const happening = fc.record({
  what: fc.oneof({ weight: 2, arbitrary: often }, fc.constantFrom(...HAPPENINGS)),
  at: fc.nat(5),
});
/** What goes on all the time, so that histories come far. */
const progress = fc.constantFrom(
  { what: "advance" as const, at: 0 },
  { what: "sync" as const, at: 0 },
  { what: "kubelets" as const, at: 0 },
);
/** A tick whose write comes after more has happened, or whose process dies before it. */
const risky = fc.record({ meanwhile: fc.array(fc.oneof(happening, progress), { maxLength: 2 }), dies: fc.boolean() });
const step = fc.oneof(
  { weight: 16, arbitrary: fc.constant({ meanwhile: [], dies: false }) },
  { weight: 1, arbitrary: risky },
  { weight: 16, arbitrary: progress },
  { weight: 1, arbitrary: happening },
);
const history = fc.record({
  replicas: fc.integer({ min: 1, max: 5 }),
  ordered: fc.boolean(),
  maxUnavailable: fc.integer({ min: 1, max: 3 }),
  finalCheck: fc.boolean(),
  guarded: fc.boolean(),
  steps: fc.array(step, { maxLength: 300, size: "max" }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** The verdicts in a row about one revision and partition, kept beside the status. */
interface Witness {
  key: string;
  verdicts: CheckVerdict[];
}

/** What the decision was made on: users may change their mind before its write. */
interface Read extends Witness {
  readonly partition: number;
  readonly skipCheck: boolean;
  readonly paused: boolean;
}

type OnWrite = (decision: PhasedDecision, read: Read) => void;

/**
 * Pods from this index on may be replaced after the write: it has checked, asked for none, or found that they are not
 * there.
 */
function freedFrom(decision: PhasedDecision, world: World): number {
  const { partition } = setOf(world);
  if (decision.action === "claim") return partition;
  if (decision.action === "releasePod") return partition;
  if (decision.action !== "setPartition") return Infinity;
  return ["Suspend", "Guard"].includes(decision.reason) ? partition : Infinity;
}

const MAX_PODS = 6;

function keyOf(world: World): string {
  const { uid, update, partition, replicas } = setOf(world);
  return `${uid} r${update} ${Math.min(partition, replicas)}`;
}

function play(world: World, steps: readonly Step[], onWrite: OnWrite = () => {}): void {
  const witness: Witness = { key: keyOf(world), verdicts: [] };
  for (const next of steps) {
    if ("what" in next) happen(next.what, world, next.at);
    else tickOnce(world, next, { witness, onWrite });
  }
}

interface Recording {
  readonly witness: Witness;
  readonly onWrite: OnWrite;
}

function tickOnce(
  world: World,
  { meanwhile, dies }: Exclude<Step, { what: unknown }>,
  { witness, onWrite }: Recording,
): void {
  const read = versionsOf(world);
  const key = keyOf(world);
  const { decision, verdict } = decide(world);
  const asked = { skipCheck: world.rollout.skipCheck, paused: world.rollout.paused };
  for (const { what, at } of meanwhile) happen(what, world, at);
  const { partition } = setOf(world);
  if (dies || !carryOut(decision, world, read)) return;
  // An answer that was not stored died with its process.
  if (verdict && witness.key !== key) Object.assign(witness, { key, verdicts: [] });
  if (verdict) witness.verdicts.push(verdict);
  onWrite(decision, { ...witness, ...asked, partition });
}

/** How many pods of these indexes are still to be replaced. */
const staleBetween = (from: number, to: number, { pods, replicas, update }: SetFacts): number =>
  [...pods].filter(([index, pod]) => index >= from && index < Math.min(to, replicas) && numberOf(pod) !== update)
    .length;

describe("over random histories of a StatefulSet, its users and Prometheus", () => {
  it("whatever users write, and whenever the process dies: the StatefulSet controller replaces no pod that no decision has released, and adds none before the first is", () => {
    let replaced = 0;
    fc.assert(
      fc.property(history, ({ steps, ...traits }) => {
        const world = createWorld({ ...traits, guarded: true });
        const freed = new Set<string>();
        const begun = new Set<string>();
        const templateOf = (key: string): string => key.slice(0, key.lastIndexOf(" "));
        const check = (): void => {
          world.replaced.forEach((key) => assert.ok(freed.has(key), `${key} was not released`));
          world.made.forEach((key) =>
            assert.ok(begun.has(templateOf(key)), `${key} was added before a pod was released`),
          );
        };
        play(world, steps, (decision) => {
          check();
          const set = setOf(world);
          const from = freedFrom(decision, world);
          for (let index = from; index < MAX_PODS; index++) freed.add(releaseKey(set, index));
          if (from < set.replicas) begun.add(templateOf(releaseKey(set, 0)));
        });
        check();
        replaced += world.replaced.length;
      }),
      { numRuns: runs(1000) },
    );
    assert.ok(replaced > 0);
  });

  it("no pod is released before its checks have passed, and one at a time", () => {
    let released = 0;
    fc.assert(
      fc.property(history, ({ steps, ...traits }) => {
        const world = createWorld(traits);
        play(world, steps, (decision, { key, verdicts, partition: before, skipCheck, paused }) => {
          const set = setOf(world);
          const kind = decision.action === "setPartition" ? decision.reason : decision.action;
          if (set.partition >= before) return;
          switch (kind as string) {
            case "releasePod":
              released++;
              assert.equal(staleBetween(set.partition + 1, before, set), 0, "the next one");
              assert.equal(key, `${set.uid} r${set.update} ${Math.min(before, set.replicas)}`);
              assert.deepEqual(
                verdicts.slice(-THRESHOLD),
                Array.from({ length: THRESHOLD }, () => "Success"),
              );
              assert.ok(!paused && !skipCheck && set.rolls);
              return;
            case "RollBack":
              assert.equal(set.current, set.update, "only pods of a template that was reverted");
              return assert.ok(staleBetween(set.partition, Infinity, set) <= 1, "one at a time");
            case "Suspend":
              return assert.ok(skipCheck);
            case "Guard":
              return assert.ok(set.partition >= set.replicas, "no pod has such an index");
            default:
              assert.fail(`${kind} lowers the partition`);
          }
        });
      }),
      { numRuns: runs(2000) },
    );
    assert.ok(released > 0);
  });

  it("what can finish does finish, and a settled object gets no write and no list of pods", () => {
    fc.assert(
      fc.property(history, ({ steps, ...traits }) => {
        const world = createWorld(traits);
        play(world, steps);
        for (const what of ["clear", "resume", "unsuspend", "rollingUpdate"] as const) happen(what, world, 0);
        const isDone = (): boolean => {
          const { decision } = decide(world);
          return (
            decision.action === "report" &&
            decision.status.phase === "Updated" &&
            isSameJson(decision.status, observe(world).rollout.status)
          );
        };
        const most = 60 * (setOf(world).replicas + 3);
        for (let turn = 0; !isDone(); turn++) {
          assert.ok(
            turn < most,
            `after ${turn} turns: ${JSON.stringify(decide(world).decision)} ${JSON.stringify(setOf(world))}`,
          );
          tick(world);
          heal(world);
          happen("advance", world, 0);
        }
        for (let turn = 0; turn <= 2 * setOf(world).replicas; turn++) {
          happen("kubelets", world, 0);
          happen("sync", world, 0);
        }
        const set = setOf(world);
        assert.equal(set.partition, set.replicas);
        assert.ok([...set.pods.values()].every((pod) => numberOf(pod) === set.template));
        const { rollout, target } = observe(world);
        assert.ok(target && !targetNeedsPods({ rollout, target }));
      }),
      { numRuns: runs(1000) },
    );
  });
});
