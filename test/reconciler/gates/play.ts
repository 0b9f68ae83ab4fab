/** A rollout of three zones under one gate: zone a is done, and zone b is wanted. */
import assert from "node:assert/strict";
import type { CheckAnswer } from "../../../reconciler/checks/check.ts";
import { judgeGates } from "../../../reconciler/gates/hold.ts";
import type { GateRecord } from "../../../reconciler/gates/record.ts";
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

/** A gate after zone a has begun and the rollout wants zone b: what it does at these seconds, with these answers. */
export function play(traits: GateTraits, ...ticks: readonly (readonly [seconds: number, answer: Kind])[]) {
  let { record } = follow(traits, {
    record: settledRecord(zonesAt("1"), traits),
    view: viewOf(start, a),
    answer: noData,
  });
  const seen: string[] = [];
  for (const [seconds, answer] of ticks) {
    const next = follow(traits, { record, view: viewOf(zones, b, seconds), answer });
    seen.push(`${next.asked.join() || "-"} ${next.record.stages.at(-1)?.state ?? "none"}`);
    ({ record } = next);
  }
  return { record, seen };
}

/** The reason that holds zone b under the stored record. */
export function reasonFor(traits: GateTraits, record: GateRecord | undefined, seconds = 40): string | undefined {
  const { identity, now } = viewOf(zones, b, seconds);
  return judgeGates([stored(traits, record)], { identity, zones, now }).holds.get(b.uid)?.reason;
}

export const began = (record: GateRecord): string =>
  record.zones.flatMap((one) => (one.began === "Now" ? [one.name] : [])).join();
