/** The gates of a world, with a Prometheus that answers every check with success. */
import { advanceGate } from "../gates/advance.ts";
import type { Gate } from "../gates/gate.ts";
import { isHeld } from "../gates/hold.ts";
import { outlineOf } from "../gates/record.ts";
import { identityOf, type RolloutView, wantedBy } from "../gates/rollout.ts";
import type { CheckAnswer, CheckSpec } from "../checks/check.ts";
import type { Answers } from "../checks/result.ts";
import { decideUngated } from "../rollout/decide-rollout.ts";
import { snapshotOf } from "./next-step.ts";
import type { World } from "./world.ts";

interface SimulatedGates {
  readonly world: World;
  /** Something other than results of checks has changed: the next tick follows at once. */
  readonly progressed: boolean;
  /** When the next check is due, milliseconds since the epoch. */
  readonly nextAt: number | undefined;
}

/** The gates as a tick would write them. */
export function followGates(world: World): SimulatedGates {
  if (world.gates.length === 0) return { world, progressed: false, nextAt: undefined };
  const { zones, now } = world;
  const rollout = { identity: identityOf(zones), zones, now, wanted: wantedBy(decideUngated(snapshotOf(world))) };
  const view: RolloutView = { ...rollout, isHeld: isHeld(world.gates, rollout) };
  const followed = world.gates.map((gate) => follow(gate, view));
  const times = followed.flatMap(({ nextAt }) => nextAt ?? []);
  return {
    world: { ...world, gates: followed.map(({ gate }) => gate) },
    progressed: followed.some(({ gate }, i) => outlineOf(gate.record) !== outlineOf(world.gates[i]?.record)),
    nextAt: times.length > 0 ? Math.min(...times) : undefined,
  };
}

function follow(gate: Gate, view: RolloutView): { readonly gate: Gate; readonly nextAt: number | undefined } {
  const { due } = advanceGate(gate, view, new Map());
  const answers: Answers = new Map(due.map((check) => [check.name, succeed(check, view.now)]));
  const { record, nextAt } = advanceGate(gate, view, answers);
  return { gate: { ...gate, record, observedGeneration: gate.generation }, nextAt };
}

function succeed({ successWhen }: CheckSpec, at: number): CheckAnswer {
  if (successWhen === "WithinBaseline") return { kind: "Comparison", isWithin: true, text: "", at };
  return { kind: "Vector", samples: successWhen === "Data" ? 1 : 0, warnings: [], at };
}
