/** The gates of a world, with a Prometheus that answers every check with success. */
import { advanceGate, type Answers } from "../gates/advance.ts";
import type { Gate, GateCheck } from "../gates/gate.ts";
import { isHeld } from "../gates/hold.ts";
import type { RolloutView } from "../gates/rollout.ts";
import { identityOf } from "../gates/rollout-identity.ts";
import { wantedBy } from "../gates/wanted.ts";
import type { CheckAnswer } from "../checks/check.ts";
import { decideUngated } from "../rollout/decide-rollout.ts";
import { snapshotOf } from "./next-step.ts";
import type { World } from "./world.ts";

export interface SimulatedGates {
  readonly world: World;
  /** Something else than results of checks has changed: the next tick follows at once. */
  readonly progressed: boolean;
  /** When the next check is due, milliseconds since the epoch. */
  readonly nextAt: number | undefined;
}

/** What a tick writes to the gates. */
export function followGates(world: World): SimulatedGates {
  if (world.gates.length === 0) return { world, progressed: false, nextAt: undefined };
  const { zones, now } = world;
  const rollout = { identity: identityOf(zones), zones, now, wanted: wantedBy(decideUngated(snapshotOf(world))) };
  const view: RolloutView = { ...rollout, isHeld: isHeld(world.gates, rollout) };
  const followed = world.gates.map((gate) => follow(gate, view));
  const times = followed.flatMap(({ nextAt }) => nextAt ?? []);
  return {
    world: { ...world, gates: followed.map(({ gate }) => gate) },
    progressed: followed.some(({ gate }, i) => outline(gate) !== outline(world.gates[i])),
    nextAt: times.length > 0 ? Math.min(...times) : undefined,
  };
}

function follow(gate: Gate, view: RolloutView): { readonly gate: Gate; readonly nextAt: number | undefined } {
  const { due } = advanceGate(gate, view, new Map());
  const answers: Answers = new Map(due.map((check) => [check.name, succeed(check, view.now)]));
  const { record, nextAt } = advanceGate(gate, view, answers);
  return { gate: { ...gate, record, observedGeneration: gate.generation }, nextAt };
}

function succeed({ successWhen }: GateCheck, at: number): CheckAnswer {
  return { kind: "Vector", samples: successWhen === "Data" ? 1 : 0, warnings: [], at };
}

function outline(gate: Gate | undefined): string {
  const { record } = gate ?? {};
  const stages = record?.stages.map(({ point, zone, state }) => [point, zone, state]);
  return JSON.stringify([record?.identity, record?.settledAt, record?.zones, stages]);
}
