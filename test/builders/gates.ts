/** RolloutGates, what Prometheus answers their checks, and the zones of a rollout under them. */
import type { CustomObject } from "../../infra/kubernetes/custom-resources.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import type { CheckAnswer } from "../../reconciler/checks/check.ts";
import type { Gate } from "../../reconciler/gates/gate.ts";
import { readOne } from "../reconciler/gates/adapter.ts";
import { statefulSetObject } from "./zones.ts";

export interface GateTraits {
  readonly name?: string;
  readonly spec?: object;
  readonly check?: object;
  readonly status?: unknown;
  readonly generation?: number;
  readonly retry?: string;
}

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
      ...(retry !== undefined && { annotations: { "zonewise.dev/retry-gate": retry } }),
    },
    spec: { group: "ingester", checks, ...spec },
    ...(status !== undefined && { status }),
  };
}

export const gateOf = (traits: GateTraits = {}): Gate => readOne(gateObject(traits));

export const noData = (at: number): CheckAnswer => ({ kind: "Vector", samples: 0, warnings: [], at });
export const data = (at: number): CheckAnswer => ({
  kind: "Vector",
  samples: 1,
  sample: "errors{} 7",
  warnings: [],
  at,
});
export const lost = (at: number): CheckAnswer => ({ kind: "Error", code: "Unreachable", message: "refused", at });

interface SetTraits {
  readonly replicas?: number;
  /** `status.replicas`. */
  readonly existing?: number;
  /** Pods of the update revision, and of the current one. */
  readonly updated?: number;
  readonly current?: number;
}

/** The zone of this letter at revision `from`, with the template of `to`. */
export function setOf(letter: string, from: string, to = from, traits: SetTraits = {}): StatefulSet {
  const { replicas = 3, existing = replicas } = traits;
  const name = `zone-${letter}`;
  const object = statefulSetObject({ name, at: from, updateRevision: to, replicas, statusReplicas: existing });
  const updated = traits.updated ?? (from === to ? existing : 0);
  const current = traits.current ?? (from === to ? existing : existing - updated);
  return {
    ...object,
    status: { replicas: existing, ...object.status, updatedReplicas: updated, currentReplicas: current },
  };
}

/**
 * Zones a, b and c, a word each: `1` at revision 1, `1>2` with the template of 2, `1>2:1` of which one pod has it,
 * `1>2:0/2` and two pods are at revision 1, `1>2x0` of no replicas, `-` for none.
 */
export const zonesOf = (text: string): StatefulSet[] =>
  text.split(" ").flatMap((word, i) => {
    const [, from, to, updated, current, replicas] = /^(\d)(?:>(\d))?(?::(\d)(?:\/(\d))?)?(?:x(\d))?$/.exec(word) ?? [];
    if (from === undefined) return [];
    const traits = Object.entries({ updated, current, replicas }).filter(([, count]) => count !== undefined);
    const counts = Object.fromEntries(traits.map(([name, count]) => [name, Number(count)]));
    return [setOf("abc".charAt(i), from, to, counts)];
  });
