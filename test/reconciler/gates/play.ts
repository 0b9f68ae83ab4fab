/** A rollout of three zones under one gate: zone a is done, and zone b is wanted. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CheckAnswer } from "../../../reconciler/checks/check.ts";
import { judgeGates } from "../../../reconciler/gates/hold.ts";
import type { GateRecord } from "../../../reconciler/gates/record.ts";
import type { Wanted } from "../../../reconciler/gates/rollout.ts";
import type { Zone } from "../../../reconciler/model/zone.ts";
import { zone } from "../builders.ts";
import { follow, noData, settledRecord, stored, viewOf, type GateTraits } from "./builders.ts";

export const zonesAt = (revision: string, next = revision) =>
  ["a", "b", "c"].map((name) => {
    const one = zone({ name: `zone-${name}`, at: revision, currentRevision: revision, updateRevision: next });
    return { ...one, status: { ...one.status, current: one.replicas } };
  });
export const start = zonesAt("1", "2");
export const [a = assert.fail(), b = assert.fail()] = start;
/** Zone a is done. */
export const zones = [...zonesAt("2").slice(0, 1), ...start.slice(1)];
/** The rollout has replaced a pod of zone b. */
export const underWay = zones.map((one) =>
  one.name === "zone-b" ? { ...one, status: { ...one.status, current: 2, updated: 1 } } : one,
);
export type Kind = (at: number, name: string) => CheckAnswer;

/** What a tick differs in: it wants zone b of `zones`. */
export interface Scene {
  readonly zones?: readonly Zone[];
  readonly wanted?: Wanted;
}
type Tick = readonly [seconds: number, answer: Kind, scene?: Scene];

/** So that a row of ticks stands on a line. */
export const ticks = (...all: readonly Tick[]): readonly Tick[] => all;

const zoneB = (all: readonly Zone[]): Zone => all.find(({ name }) => name === "zone-b") ?? assert.fail();

/** A gate after zone a has begun and the rollout wants zone b: what it does at these seconds, with these answers. */
export function play(traits: GateTraits, ...ticks: readonly Tick[]) {
  let { record } = follow(traits, {
    record: settledRecord(zonesAt("1"), traits),
    view: viewOf(start, a),
    answer: noData,
  });
  const seen: string[] = [];
  for (const [seconds, answer, { zones: all = zones, wanted = zoneB(all) } = {}] of ticks) {
    const next = follow(traits, { record, view: viewOf(all, wanted, seconds), answer });
    ({ record } = next);
    const hold = reasonFor(traits, record, seconds, all) ?? "free";
    seen.push(`${next.asked.join() || "-"} ${record.stages.at(-1)?.state ?? "none"} ${began(record)} ${hold}`);
  }
  return { record, seen };
}

/** The hold of zone b under the stored record. */
export function holdFor(
  traits: GateTraits,
  record: GateRecord | undefined,
  seconds = 40,
  all: readonly Zone[] = zones,
) {
  const { uid } = zoneB(all);
  return judgeGates([stored(traits, record)], viewOf(all, zoneB(all), seconds)).holds.get(uid);
}

export const reasonFor = (...args: Parameters<typeof holdFor>): string | undefined => holdFor(...args)?.reason;

/** The letters of the zones that have begun. */
export const began = (record: GateRecord): string =>
  record.zones.flatMap((one) => (one.began === "Now" ? [one.name.slice("zone-".length)] : [])).join("");

/** The checks that each tick asks, the state of the last stage, the zones that have begun, and whether zone b is held. */
export type History = readonly [name: string, traits: GateTraits, ticks: readonly Tick[], seen: readonly string[]];

export function histories(title: string, rows: readonly History[]): void {
  describe(title, () => {
    for (const [name, traits, ticks, seen] of rows) it(name, () => assert.deepEqual(play(traits, ...ticks).seen, seen));
  });
}
