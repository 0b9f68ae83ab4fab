/** The values of the placeholders in the expressions of a gate's checks. */
import { compares, findFaults, type PlaceholderValues, rangeSince } from "../checks/placeholders.ts";
import type { Zone } from "../model/zone.ts";
import type { Gate } from "./gate.ts";
import type { GateRecord, Point, Stage } from "./record.ts";
import type { RolloutView } from "./rollout.ts";

interface Asked {
  readonly stage: Stage;
  readonly record: GateRecord;
  readonly view: Pick<RolloutView, "zones" | "now">;
}

/**
 * The candidate pods are those that the rollout has updated so far: all pods of the zones that it has begun and that
 * have its templates, except the zone that waits. The other pods belong to all other zones.
 */
export function gatePlaceholders(gate: Gate, { stage, record, view: { zones, now } }: Asked): PlaceholderValues {
  const begun = new Set(record.zones.flatMap(({ name, began }) => (began === undefined ? [] : [name])));
  const isCandidate = ({ name, replicas, status }: Zone): boolean =>
    begun.has(name) && name !== stage.zone && status.updated >= replicas;
  const podsOf = (chosen: readonly Zone[]) =>
    ({ kind: "pods", sets: chosen.map(({ name }) => ({ set: name })) }) as const;
  return {
    namespace: { kind: "name", name: gate.ref.namespace },
    group: { kind: "name", name: gate.group },
    ...(stage.zone !== "" && { zone: { kind: "name", name: stage.zone } as const }),
    candidate_pods: podsOf(zones.filter(isCandidate)),
    other_pods: podsOf(zones.filter((zone) => !isCandidate(zone))),
    range: rangeSince(stage.since, now),
  };
}

/** The points at which a placeholder stands for no pods: no pod is updated yet, or all are. */
const WITHOUT_PODS = [
  ["BeforeFirstZone", "candidate_pods"],
  ["AfterLastZone", "other_pods"],
] as const satisfies readonly (readonly [Point, string])[];

/**
 * What no server can ever answer (§14.12), a sentence each: URLs, placeholders that cannot be filled in, expressions that
 * are too long, comparisons with no pods, which would never pass (§14.9).
 */
export function findImpossible(gate: Gate): string[] {
  const values = sampleValues(gate);
  return gate.checks.flatMap((check) => {
    const empty = WITHOUT_PODS.flatMap(([point, placeholder]) =>
      compares(check, placeholder) && gate.when.includes(point)
        ? [`$(${placeholder}) stands for no pods at ${point}, and a baseline needs two numbers`]
        : [],
    );
    return [...findFaults(check, values), ...empty].map((fault) => `check ${check.name}: ${fault}`);
  });
}

/** Values to try its expressions with: after the last zone no zone waits. */
export const sampleValues = ({ ref, group, when }: Gate): PlaceholderValues => ({
  namespace: { kind: "name", name: ref.namespace },
  group: { kind: "name", name: group },
  ...(!when.includes("AfterLastZone") && { zone: { kind: "name", name: "zone-a" } as const }),
  candidate_pods: { kind: "pods", sets: [{ set: "zone-a" }] },
  other_pods: { kind: "pods", sets: [{ set: "zone-b" }] },
  range: { kind: "duration", seconds: 300 },
});
