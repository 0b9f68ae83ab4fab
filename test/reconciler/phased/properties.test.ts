import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { CheckVerdict } from "../../../reconciler/checks/check.ts";
import { isSameJson } from "../../../infra/json.ts";
import { runs } from "../../runs.ts";
import { needsPods, type PhasedDecision } from "./adapter.ts";
import {
  carryOut,
  createWorld,
  decideNext,
  factsOf,
  happen,
  type Happening,
  HAPPENINGS,
  heal,
  numberOf,
  releaseKey,
  rolloutOf,
  runKubelets,
  setOf,
  sync,
  THRESHOLD,
  tick,
  type SetFacts,
  versionsOf,
  wishesOf,
  type World,
} from "./world.ts";

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
  const { decision, verdict } = decideNext(world);
  const asked = wishesOf(world);
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

  it("what can finish does finish, with no pod replaced twice; and a settled object gets no write and no list of pods", () => {
    fc.assert(
      fc.property(history, ({ steps, ...traits }) => {
        const world = createWorld(traits);
        play(world, steps);
        for (const what of ["clear", "resume", "unsuspend", "rollingUpdate"] as const) happen(what, world, 0);
        const isDone = (): boolean => {
          const { decision } = decideNext(world);
          const { update, template } = setOf(world);
          return (
            // The controller knows of the template.
            update === template &&
            decision.action === "report" &&
            decision.status.phase === "Updated" &&
            isSameJson(decision.status, rolloutOf(world).status)
          );
        };
        /** What pods and their controller do by themselves comes to its end. */
        const settle = (): void => {
          heal(world);
          for (let turn = 0; turn <= 2 * setOf(world).replicas; turn++) {
            happen("kubelets", world, 0);
            happen("sync", world, 0);
          }
        };
        settle();
        const replaced: string[] = [];
        const most = 60 * (setOf(world).replicas + 3);
        for (let turn = 0; !isDone(); turn++) {
          assert.ok(
            turn < most,
            `after ${turn} turns: ${JSON.stringify(decideNext(world).decision)} ${JSON.stringify(setOf(world))}`,
          );
          const decision = tick(world);
          if (decision.action === "replacePod") replaced.push(decision.pod.name);
          heal(world);
          happen("advance", world, 0);
        }
        settle();
        assert.equal(new Set(replaced).size, replaced.length, replaced.join());
        const set = setOf(world);
        assert.equal(set.partition, set.replicas);
        assert.ok([...set.pods.values()].every((pod) => numberOf(pod) === set.template));
        assert.ok(!needsPods(factsOf(world)));
      }),
      { numRuns: runs(1000) },
    );
  });
});

/** Ticks as often as controllers act, or less often. Resolves with the number of pods that were released. */
function runOn(world: World, turns: number): number {
  let released = 0;
  for (let turn = 0; turn < turns; turn++) {
    if (tick(world).action === "releasePod") released++;
    for (const what of ["sync", "kubelets", "wait"] as const) happen(what, world, 0);
  }
  return released;
}

const SCALING = ["scaleUp", "scaleUp", "scaleDown", "applyMore", "sync", "kubelets", "tick", "tick"] as const;
const scaling = fc.record({
  replicas: fc.integer({ min: 1, max: 4 }),
  ordered: fc.boolean(),
  maxUnavailable: fc.integer({ min: 1, max: 3 }),
  /** Turns before the checks begin to fail. */
  quietFor: fc.nat(60),
  /** Together with the template, by one write. */
  deploy: fc.constantFrom<Happening>("deploy", "deployMore"),
  during: fc.array(fc.constantFrom(...SCALING), { maxLength: 30 }),
});

function updated(world: World): number {
  const { pods, template } = setOf(world);
  return [...pods.values()].filter((pod) => numberOf(pod) === template).length;
}

/** Every step has passed, or the rollout is over. */
function isOver(world: World): boolean {
  const { partition, current, template } = setOf(world);
  return partition === 0 || current === template;
}

it("however it is scaled during a rollout: once the checks fail and the scaling ends, as many pods have the latest template as steps have passed, at most", () => {
  fc.assert(
    fc.property(scaling, ({ quietFor, during, deploy, ...traits }) => {
      const world = createWorld({ ...traits, guarded: true });
      runOn(world, 8);
      happen(deploy, world, 0);
      const released = runOn(world, quietFor);
      if (isOver(world)) return;
      world.prometheus = "firing";
      // A success that is stored releases its pod.
      const late = runOn(world, 8);
      if (isOver(world)) return;
      for (const what of during)
        if (what === "tick") tick(world);
        else happen(what, world, 0);
      const later = runOn(world, 60);
      assert.equal(later, 0);
      assert.ok(
        updated(world) <= released + late,
        `${updated(world)} pods, and ${released + late} steps: ${JSON.stringify(setOf(world))}`,
      );
    }),
    { numRuns: runs(1000) },
  );
});

type Crashes = (revision: number, index: number) => boolean;

/** Ticks until only waiting is left. */
function tickAll(world: World): void {
  for (let step = 0; step < 10; step++) {
    const decision = tick(world);
    if (decision.action === "report" && (decision.dueAt ?? Infinity) > world.cluster.now()) return;
  }
}

/** Ten minutes, with pods that do not come up. */
function playWith(crashes: Crashes, world: World, rounds = 60): void {
  for (let round = 0; round < rounds; round++) {
    tickAll(world);
    sync(world);
    runKubelets(world);
    for (const [index, pod] of setOf(world).pods)
      if (crashes(numberOf(pod), index)) world.cluster.ail(pod.metadata.name, "crashing");
    sync(world);
    tickAll(world);
    world.cluster.elapse(10_000);
  }
}

const endOf = (world: World) => [
  rolloutOf(world).status?.phase,
  ...[...setOf(world).pods].map(([index, pod]) => `${index} r${numberOf(pod)} ${world.cluster.lifeOf(pod)}`),
];

for (const ordered of [true, false]) {
  const policy = ordered ? "OrderedReady" : "Parallel";
  it(`a template that mends a StatefulSet none of whose pods has ever come up reaches all of them (${policy})`, () => {
    const world = createWorld({ replicas: 3, ordered, guarded: true });
    for (const { metadata } of setOf(world).pods.values()) world.cluster.remove(metadata.name);
    world.cluster.runAll();
    const crashes: Crashes = (revision) => revision === 0;
    playWith(crashes, world, 5);
    happen("deploy", world, 0);
    playWith(crashes, world);
    assert.deepEqual(endOf(world), ["Updated", "0 r1 ready", "1 r1 ready", "2 r1 ready"]);
  });

  it(`a pod that a scale-out adds, and whose template does not come up any more, gets the new one in its step (${policy})`, () => {
    const world = createWorld({ replicas: 3, ordered, guarded: true });
    playWith(() => false, world, 5);
    happen("deploy", world, 0);
    playWith(() => false, world, 5);
    assert.deepEqual(endOf(world), ["Rolling", "0 r0 ready", "1 r0 ready", "2 r1 ready"]);
    for (let more = 0; more < 2; more++) happen("scaleUp", world, 0);
    playWith((revision, index) => revision === 0 && index > 2, world, 90);
    assert.deepEqual(endOf(world), ["Updated", ...[0, 1, 2, 3, 4].map((index) => `${index} r1 ready`)]);
  });
}
