/**
 * The one door to the decisions of gates: facts in, as the objects that a cluster has, with what Prometheus answers; out
 * come what the gates hold, what they ask, and the gate as it is stored. Whoever rewrites how they are read and followed
 * has this file to keep, and no case.
 */
import { type Condition, stampCondition } from "../../../infra/kubernetes/condition.ts";
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { CheckAnswer } from "../../../reconciler/checks/check.ts";
import type { PlaceholderValues } from "../../../reconciler/checks/placeholders.ts";
import type { Answers, StoredResult } from "../../../reconciler/checks/result.ts";
import { advanceGate } from "../../../reconciler/gates/advance.ts";
import { type Gate, readGate } from "../../../reconciler/gates/gate.ts";
import { bypassesOf, isHeld, judgeGates } from "../../../reconciler/gates/hold.ts";
import { findImpossible, sampleValues } from "../../../reconciler/gates/placeholder-values.ts";
import { formatRecord } from "../../../reconciler/gates/record.ts";
import {
  bypassesSeen,
  changesOf,
  describeOpen,
  describeValid,
  type GateChange,
  validByAnswers,
} from "../../../reconciler/gates/report.ts";
import { type GroupView, identityOf, type Wanted } from "../../../reconciler/gates/rollout.ts";
import { type Bypass, type GateVerdicts, readZone } from "../../../reconciler/model/zone.ts";

/** All objects are of one group. */
export interface Facts {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly gates: readonly CustomObject[];
  readonly zones: readonly StatefulSet[];
  /** The next step of the rollout if there were no gates: it begins the zone of this name, is over, or does another thing. */
  readonly wants: "settled" | "other" | `${string}zone-${string}`;
}

/** As it is stored. */
export interface GateStatus {
  readonly identity: string;
  readonly startTime: string;
  readonly settledTime?: string;
  readonly retried?: string;
  readonly zones: readonly { readonly name: string; readonly began?: "Now" | "Earlier" }[];
  readonly stages: readonly {
    readonly point: string;
    readonly zone: string;
    readonly state: string;
    readonly since: string;
    readonly checks: readonly StoredResult[];
  }[];
  readonly bypasses?: readonly object[];
  readonly conditions: readonly Condition[];
}

export type StoredGate = CustomObject & { readonly status: GateStatus };

export interface Followed {
  readonly gate: StoredGate;
  /** The names of the checks that were due. */
  readonly asked: readonly string[];
  readonly values: PlaceholderValues;
  /** When the next check is due. */
  readonly nextAt: number | undefined;
  /** What gets an Event. */
  readonly changes: readonly GateChange[];
}

/** As the rules read the object. */
export function readOne(object: CustomObject): Gate {
  const gate = readGate(object);
  if (!gate) throw new Error("no gate");
  return gate;
}

function viewOf({ now, zones: sets, wants }: Facts): GroupView {
  const zones = sets.map(readZone);
  const zone = zones.find(({ name }) => name === wants);
  const wanted: Wanted = zone ? { kind: "zone", zone } : { kind: wants === "settled" ? "settled" : "other" };
  return { identity: identityOf(zones), zones, wanted, now };
}

/** What the gates hold, by what is stored. */
export const judge = (facts: Facts): GateVerdicts => judgeGates(facts.gates.map(readOne), viewOf(facts));

/** The zones that may begin without their gates for now. */
export const listBypasses = (facts: Facts): Bypass[] => bypassesOf(facts.gates.map(readOne), viewOf(facts));

/** One tick of the first gate: asks what is due. */
export function follow(facts: Facts, answer: (at: number, name: string) => CheckAnswer): Followed {
  const gates = facts.gates.map(readOne);
  const [[object], [gate]] = [facts.gates, gates];
  if (!object || !gate) throw new Error("no gate");
  const group = viewOf(facts);
  const view = { ...group, isHeld: isHeld(gates, group) };
  const { due } = advanceGate(gate, view, new Map());
  const answers: Answers = new Map(due.map(({ name }) => [name, answer(view.now + 100, name)]));
  const { record, values, nextAt } = advanceGate(gate, view, answers);
  const stamp = { earlier: gate.conditions, generation: gate.generation, now: view.now };
  const valid = stampCondition(describeValid(gate, true, record.stages.at(-1)) ?? validByAnswers([]), stamp);
  const judged = { ...gate, observedGeneration: gate.generation, conditions: [valid] };
  const conditions = [valid, stampCondition(describeOpen(judged, record), stamp)];
  const status = { observedGeneration: gate.generation, ...formatRecord(record), conditions };
  const stored = { ...object, status: status as unknown as GateStatus };
  const after = readOne(stored).record ?? record;
  const changes = [...bypassesSeen(gate.record, after, view), ...changesOf(judged, gate.record, after)];
  return { gate: stored, asked: due.map(({ name }) => name), values, nextAt, changes };
}

/** Values to try the expressions of a gate with. */
export const sampleOf = (gate: CustomObject): PlaceholderValues => sampleValues(readOne(gate));

/** What no server can ever answer, a sentence each. */
export const listImpossible = (gate: CustomObject): string[] => findImpossible(readOne(gate));
