/** Gates, and rollouts of three zones under one: what it asks and holds, tick by tick, without a cluster. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { CheckAnswer } from "../../../reconciler/checks/check.ts";
import type { Gate } from "../../../reconciler/gates/gate.ts";
import type { Hold } from "../../../reconciler/model/decision.ts";
import { statefulSetObject } from "../builders.ts";
import { type Facts, follow, type Followed, judge, readOne, type StoredGate } from "./adapter.ts";

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
      ...(retry !== undefined && { annotations: { "zonewise.dev/retry-gate": retry } }),
    },
    spec: { group: "ingester", checks, ...spec },
    ...(status !== undefined && { status }),
  };
}

export const gateOf = (traits: GateTraits = {}): Gate => readOne(gateObject(traits));

export type Kind = (at: number, name: string) => CheckAnswer;
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

/** Zone a is done. */
export const zones = zonesOf("2 1>2 1>2");
/** The rollout has replaced a pod of zone b. */
export const underWay = zonesOf("2 1>2:1 1>2");
export const B = "zone-b";

/** What a tick differs in: it wants zone b of `zones`. */
export interface Scene {
  readonly zones?: readonly StatefulSet[];
  readonly wants?: Facts["wants"];
  /** The gate is changed to this before the tick. */
  readonly edit?: GateTraits;
}
export type Tick = readonly [seconds: number, answer: Kind, scene?: Scene];

/** So that a row of ticks stands on a line. */
export const ticks = (...all: readonly Tick[]): readonly Tick[] => all;

export const factsAt = (
  seconds: number,
  gates: readonly CustomObject[],
  { zones: all = zones, wants = B }: Scene = {},
): Facts => ({ now: T0 + seconds * 1000, gates, zones: all, wants });

const edited = ({ metadata, spec, ...gate }: StoredGate, edit: GateTraits | undefined): StoredGate => {
  if (!edit) return { metadata, spec, ...gate };
  const { metadata: changed, spec: next } = gateObject({ name: metadata.name ?? "", ...edit });
  return { ...gate, metadata: changed, spec: next };
};

/** A gate that has seen zones a, b and c settled at revision 1. */
export const settled = (traits: GateTraits = {}): StoredGate =>
  follow(factsAt(-3600, [gateObject(traits)], { zones: zonesOf("1 1 1"), wants: "settled" }), noData).gate;

/** The same gate after zone a has begun to get revision 2. */
export const begun = (traits: GateTraits = {}): StoredGate =>
  follow(factsAt(0, [settled(traits)], { zones: zonesOf("1>2 1>2 1>2"), wants: "zone-a" }), noData).gate;

/** What a gate does at these seconds, with these answers: from the tick on at which the rollout wants zone b. */
export function play(traits: GateTraits, ...all: readonly Tick[]) {
  let gate = begun(traits);
  let last: Followed | undefined;
  const seen: string[] = [];
  for (const [seconds, answer, { edit, ...scene } = {}] of all) {
    last = follow(factsAt(seconds, [edited(gate, edit)], scene), answer);
    ({ gate } = last);
    const hold = holdOf(gate, seconds, scene)?.reason ?? "free";
    seen.push(`${last.asked.join() || "-"} ${gate.status.stages.at(-1)?.state ?? "none"} ${begins(gate)} ${hold}`);
  }
  return { gate, seen, last };
}

/** The hold of the zone that is wanted, zone b otherwise, by the stored gate. */
export function holdOf(gate: CustomObject, seconds = 40, { wants = B, ...scene }: Scene = {}): Hold | undefined {
  const wanted = wants.startsWith("zone-") ? wants : B;
  return judge(factsAt(seconds, [gate], { ...scene, wants })).holds.get(`uid-${wanted}`);
}

/** The letters of the zones that have begun, and in capitals those that an earlier rollout has begun. */
export function begins({ status }: StoredGate): string {
  const letters = status.zones.map(({ name, began }) => {
    const letter = name.slice("zone-".length);
    return began === "Now" ? letter : began === "Earlier" ? letter.toUpperCase() : "";
  });
  return letters.join("");
}

/** The checks that each tick asks, the state of the last stage, the zones that have begun, and what holds the zone. */
export type History = readonly [name: string, traits: GateTraits, ticks: readonly Tick[], seen: readonly string[]];

export function histories(title: string, rows: readonly History[]): void {
  describe(title, () => {
    for (const [name, traits, all, seen] of rows) it(name, () => assert.deepEqual(play(traits, ...all).seen, seen));
  });
}
