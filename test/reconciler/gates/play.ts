/** Rollouts of three zones under a gate: what it asks and holds, tick by tick, without a cluster. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { CheckAnswer } from "../../../reconciler/checks/check.ts";
import type { Hold } from "../../../reconciler/model/decision.ts";
import { gateObject, type GateTraits, noData, zonesOf } from "../../builders/gates.ts";
import { CREATED } from "../../builders/zones.ts";
import { type Facts, follow, type Followed, judge, type StoredGate } from "./adapter.ts";

export type Kind = (at: number, name: string) => CheckAnswer;

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
type Tick = readonly [seconds: number, answer: Kind, scene?: Scene];

/** So that a row of ticks stands on a line. */
export const ticks = (...all: readonly Tick[]): readonly Tick[] => all;

export const factsAt = (
  seconds: number,
  gates: readonly CustomObject[],
  { zones: all = zones, wants = B }: Scene = {},
): Facts => ({ now: CREATED + seconds * 1000, gates, zones: all, wants });

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
