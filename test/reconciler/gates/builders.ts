/** Builders of gates, and what a tick does with one, without a cluster. */
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import type { CheckAnswer } from "../../../reconciler/checks/check.ts";
import type { Answers } from "../../../reconciler/checks/result.ts";
import { advanceGate } from "../../../reconciler/gates/advance.ts";
import { readGate, RETRY_ANNOTATION, type Gate } from "../../../reconciler/gates/gate.ts";
import { isHeld } from "../../../reconciler/gates/hold.ts";
import { formatRecord, type GateRecord } from "../../../reconciler/gates/record.ts";
import { currentRecord, type GroupView, type Wanted, identityOf } from "../../../reconciler/gates/rollout.ts";
import type { Zone } from "../../../reconciler/model/zone.ts";

export interface GateTraits {
  readonly name?: string;
  readonly spec?: object;
  readonly check?: object;
  readonly status?: unknown;
  readonly generation?: number;
  readonly retry?: string;
}

export const T0 = Date.parse("2026-01-01T00:00:00Z");

/** A gate between zones with one check, which passes after two successes, without a delay. */
export function gateObject({
  name = "gate",
  spec,
  check,
  status,
  generation = 1,
  retry,
}: GateTraits = {}): CustomObject {
  const checks = [
    {
      name: "errors",
      query: { expr: "errors > 0", url: "http://prometheus" },
      successWhen: "NoData",
      initialDelaySeconds: 0,
      periodSeconds: 10,
      successThreshold: 2,
      ...check,
    },
  ];
  return {
    metadata: {
      namespace: "test",
      name,
      uid: `uid-${name}`,
      resourceVersion: "1",
      generation,
      ...(retry !== undefined && { annotations: { [RETRY_ANNOTATION]: retry } }),
    },
    spec: { group: "ingester", checks, ...spec },
    ...(status !== undefined && { status }),
  };
}

export function gateOf(traits: GateTraits = {}): Gate {
  const gate = readGate(gateObject(traits));
  if (!gate) throw new Error("no gate");
  return gate;
}

/** The gate as it is read back after this record was written. */
export function stored(traits: GateTraits, record: GateRecord | undefined): Gate {
  if (!record) return gateOf(traits);
  return gateOf({ ...traits, status: { observedGeneration: 1, ...formatRecord(record) } });
}

/** The view of a rollout `seconds` after T0. */
export function viewOf(zones: readonly Zone[], wanted: Wanted | Zone, seconds = 0): GroupView {
  const step: Wanted = "uid" in wanted ? { kind: "zone", zone: wanted } : wanted;
  return { identity: identityOf(zones), zones, wanted: step, now: T0 + seconds * 1000 };
}

export const SETTLED: Wanted = { kind: "settled" };
export const OTHER: Wanted = { kind: "other" };

export const noData = (at: number): CheckAnswer => ({ kind: "Vector", samples: 0, warnings: [], at });
export const data = (at: number): CheckAnswer => ({
  kind: "Vector",
  samples: 1,
  sample: "errors{} 7",
  warnings: [],
  at,
});
export const lost = (at: number): CheckAnswer => ({ kind: "Error", code: "Unreachable", message: "refused", at });

/** One tick: asks what is due, and resolves with the gate as it is stored afterwards. */
export function follow(
  traits: GateTraits,
  {
    record,
    view: group,
    answer,
  }: { record: GateRecord | undefined; view: GroupView; answer: (at: number, name: string) => CheckAnswer },
) {
  const gate = stored(traits, record);
  const view = { ...group, isHeld: isHeld([gate], group) };
  const { due } = advanceGate(gate, view, new Map());
  const answers: Answers = new Map(due.map(({ name }) => [name, answer(view.now + 100, name)]));
  return { asked: due.map(({ name }) => name), ...advanceGate(gate, view, answers) };
}

/** The record that a settled group leaves behind. */
export function settledRecord(zones: readonly Zone[], traits: GateTraits = {}): GateRecord {
  return currentRecord(gateOf(traits), viewOf(zones, SETTLED, -3600));
}
