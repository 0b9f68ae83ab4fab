import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { GateRecord, ZoneRecord } from "../../../reconciler/gates/record.ts";
import { currentRecord, needOf, needsLastStage, type Need } from "../../../reconciler/gates/rollout.ts";
import type { Zone } from "../../../reconciler/model/zone.ts";
import { zone, type ZoneTraits } from "../builders.ts";
import { gateOf, OTHER, SETTLED, settledRecord, stored, T0, viewOf } from "./builders.ts";

const [A, B, C] = ["zone-a", "zone-b", "zone-c"] as const;
const at = (name: string, revision: string, traits: ZoneTraits = {}) =>
  zone({ name, at: revision, currentRevision: revision, updateRevision: revision, ...traits });
/** A zone whose pods are at `revision` and whose template is another. */
const outdated = (name: string, revision: string, next: string) => at(name, revision, { updateRevision: next });
const oldZones = [A, B, C].map((name) => at(name, "1"));
const newZones = [A, B, C].map((name) => outdated(name, "1", "2"));
const [newA = assert.fail(), newB = assert.fail(), newC = assert.fail()] = newZones;
const ALL = { when: ["BeforeFirstZone", "BetweenZones", "AfterLastZone"] as const };

const record = (zones: readonly ZoneRecord[], more: Partial<GateRecord> = {}): GateRecord => ({
  identity: "i",
  startedAt: T0,
  zones,
  stages: [],
  bypasses: [],
  ...more,
});
const entry = (name: string, began?: "Now" | "Earlier", settledRevision = "1"): ZoneRecord => ({
  name,
  settledRevision,
  began,
});

describe("what a zone needs to begin", () => {
  for (const [name, when, zones, own, need] of [
    ["the first zone", ALL.when, [entry(A), entry(B), entry(C)], newA, "BeforeFirstZone"],
    ["the first zone under a gate between zones", ["BetweenZones"], [entry(A), entry(B), entry(C)], newA, "Record"],
    ["the next zone", ALL.when, [entry(A, "Now"), entry(B), entry(C)], newB, "BetweenZones"],
    [
      "the next zone under a gate before the first zone",
      ["BeforeFirstZone"],
      [entry(A, "Now"), entry(B), entry(C)],
      newB,
      "Record",
    ],
    ["a zone that has begun", ALL.when, [entry(A, "Now"), entry(B), entry(C)], newA, "Nothing"],
    ["a zone on its way back", ALL.when, [entry(A, "Now"), entry(B, undefined, "2"), entry(C)], newB, "Record"],
    [
      "a zone that an unfinished rollout had begun",
      ALL.when,
      [entry(A, "Earlier"), entry(B), entry(C)],
      newA,
      "Record",
    ],
    [
      "another zone after an unfinished rollout",
      ALL.when,
      [entry(A, "Earlier"), entry(B), entry(C)],
      newB,
      "BetweenZones",
    ],
    [
      "a second zone of an unfinished rollout",
      ALL.when,
      [entry(A, "Now"), entry(B, "Earlier"), entry(C)],
      newB,
      "BetweenZones",
    ],
    ["a zone that the record does not know", ALL.when, [entry(A, "Now")], newC, "BetweenZones"],
  ] as const satisfies readonly (readonly [string, readonly string[], readonly ZoneRecord[], unknown, Need])[])
    it(`${name}: ${need}`, () => assert.equal(needOf({ when }, record(zones), own), need));
});

describe("few zones, and zones of no pods, need to begin", () => {
  const none = (name: string) => at(name, "2", { replicas: 0 });
  const before = settledRecord([A, B].map((name) => at(name, "1")));
  for (const [name, zones, need] of [
    ["the only zone", [newA], "BeforeFirstZone"],
    ["the first of two zones", [newA, newB], "BeforeFirstZone"],
    ["the only zone with pods, after one of no pods that is recorded", [newB, none(A)], "BeforeFirstZone"],
    [
      "the only zone with pods, before one of no pods",
      [newA, at(B, "1", { replicas: 0, updateRevision: "2" })],
      "BeforeFirstZone",
    ],
    ["the second of two zones", [newB, at(A, "2")], "BetweenZones"],
  ] as const satisfies readonly (readonly [string, readonly Zone[], Need])[])
    it(`${name}: ${need}`, () => {
      const [own = assert.fail()] = zones;
      const started = currentRecord(stored({ spec: ALL }, before), viewOf(zones, own));
      assert.equal(needOf(ALL, started, own), need);
    });

  it("a zone of no pods alone does not make the checks after the last zone wait", () => {
    const zones = [none(A), none(B)];
    const gate = stored({ spec: ALL }, before);
    assert.equal(needsLastStage(gate, currentRecord(gate, viewOf(zones, SETTLED))), false);
  });
});

describe("the record of a rollout", () => {
  const began = ({ zones }: GateRecord) => zones.map((one) => one.began ?? "-").join(" ");
  const gate = (before?: GateRecord, when: readonly string[] = ["BetweenZones"]) => stored({ spec: { when } }, before);

  it("begins settled for a new gate of a settled group", () => {
    const { settledAt, zones } = currentRecord(gate(), viewOf(oldZones, SETTLED));
    assert.deepEqual([settledAt, zones[0]], [T0, { name: A, settledRevision: "1" }]);
  });

  it("begins again with other templates, and keeps the way back", () => {
    const next = currentRecord(gate(settledRecord(oldZones)), viewOf(newZones, newA));
    assert.deepEqual(
      [next.settledAt, began(next), next.zones[0]?.settledRevision, next.startedAt],
      [undefined, "- - -", "1", T0],
    );
  });

  it("goes on while the templates are the same", () => {
    const before = currentRecord(gate(settledRecord(oldZones)), viewOf(newZones, newA));
    assert.deepEqual(currentRecord(gate(before), viewOf(newZones, newB, 99)), before);
  });

  it("takes no zone that was made again with another template, its pods kept, for one on its way back", () => {
    const without = settledRecord([at(A, "1"), at(C, "1")]);
    const again = zone({ name: B, at: "1", currentRevision: "2", updateRevision: "2" });
    const zones = [at(A, "1"), again, at(C, "1")];
    assert.equal(needOf(ALL, currentRecord(gate(without), viewOf(zones, again)), again), "BeforeFirstZone");
  });

  it("takes no such zone for one on its way back if the gate is new, but one with a pod of the template", () => {
    const again = zone({ name: B, at: "1", currentRevision: "2", updateRevision: "2" });
    const zones = [at(A, "1"), again, at(C, "1")];
    assert.equal(needOf(ALL, currentRecord(gate(), viewOf(zones, again)), again), "BetweenZones");
    const reverted = { ...again, status: { ...again.status, updated: 1 } };
    const others = [at(A, "1"), reverted, at(C, "1")];
    assert.equal(needOf(ALL, currentRecord(gate(), viewOf(others, reverted)), reverted), "Record");
  });

  it("remembers the zones that an unfinished rollout has begun", () => {
    const started = currentRecord(gate(settledRecord(oldZones)), viewOf(newZones, newA));
    const before = {
      ...started,
      zones: started.zones.map((one) => (one.name === A ? { ...one, began: "Now" as const } : one)),
    };
    const third = [outdated(A, "2", "3"), outdated(B, "1", "3"), outdated(C, "1", "3")];
    const next = currentRecord(gate(before), viewOf(third, third[0] ?? assert.fail()));
    assert.deepEqual([began(next), next.zones[0]?.settledRevision, next.stages], ["Earlier - -", "1", []]);
  });

  it("asks again for a zone that was let begin and is not updated, once another zone is wanted", () => {
    const started = currentRecord(gate(settledRecord(oldZones)), viewOf(newZones, newA));
    const before = {
      ...started,
      zones: started.zones.map((one) => (one.name === A ? { ...one, began: "Now" as const } : one)),
    };
    assert.equal(began(currentRecord(gate(before), viewOf(newZones, newA))), "Now - -");
    assert.equal(began(currentRecord(gate(before), viewOf(newZones, newB))), "Earlier - -");
  });

  it("keeps no success of a zone that waits, once another zone is wanted, and every failure", () => {
    const { identity } = viewOf(newZones, newA);
    const place = { point: "BetweenZones", since: T0, checks: [] } as const;
    const stages = [
      { ...place, zone: B, state: "Waiting" as const },
      { ...place, zone: C, state: "Failed" as const },
    ];
    const before = record([entry(A), entry(B), entry(C)], { identity, startedAt: T0, stages });
    const next = currentRecord(gate(before), viewOf(newZones, newA));
    assert.deepEqual(
      next.stages.map(({ zone }) => zone),
      [C],
    );
  });

  it("asks also for a zone that an earlier rollout has begun, once another zone has begun in this one", () => {
    const zones = [
      outdated(A, "2", "3"),
      at(B, "1", { updateRevision: "3", pods: { 0: { revision: "3" } } }),
      outdated(C, "1", "3"),
    ];
    const before = record([entry(A, "Earlier"), entry(B, "Now"), entry(C)], {
      identity: viewOf(zones, OTHER).identity,
    });
    const [a = assert.fail()] = zones;
    const next = currentRecord(gate(before), viewOf(zones, a));
    assert.deepEqual([began(next), needOf({ when: ["BetweenZones"] }, next, a)], ["- Earlier -", "BetweenZones"]);
  });

  it("begins again if a settled group rolls again to the same revisions: its results are older than the rollout", () => {
    const settled = settledRecord(newZones);
    const next = currentRecord(gate(settled), viewOf(newZones, newB, 5));
    assert.deepEqual([next.identity, next.settledAt, next.startedAt], [settled.identity, undefined, T0 + 5000]);
  });

  it("trusts no time that is to come: after the clock was turned back the checks of its open stages are asked again", () => {
    const streak = { successes: 2, failures: 0, errors: 0, lastAt: T0 + 3_601_000 };
    const check = { name: "errors", lastVerdict: "Success" as const, streak };
    const stage = {
      point: "BetweenZones" as const,
      zone: B,
      since: T0 + 3_600_000,
      state: "Passed" as const,
      checks: [check],
    };
    const failed = { ...stage, zone: C, state: "Failed" as const };
    const identity = viewOf(newZones, newB).identity;
    const before = record([entry(A, "Now"), entry(B), entry(C)], {
      identity,
      startedAt: T0 + 3_600_000,
      stages: [stage, failed],
    });
    const next = currentRecord(gate(before), viewOf(newZones, newB, 0));
    assert.deepEqual(
      [next.startedAt, ...next.stages.map(({ since, state, checks }) => [since, state, checks.length])],
      [T0, [T0, "Waiting", 0], [T0, "Failed", 1]],
    );
    const soon = currentRecord(gate(before), viewOf(newZones, newB, 3595));
    assert.deepEqual([soon.startedAt, soon.stages[0]?.state], [before.startedAt, "Passed"]);
  });

  it("counts zones that a new gate finds updated as begun, so that the next one is asked for", () => {
    const zones = [at(A, "2"), newB, newC];
    assert.equal(began(currentRecord(gate(), viewOf(zones, newB))), "Earlier - -");
    assert.equal(began(currentRecord(gate(undefined, ["BeforeFirstZone"]), viewOf(zones, newB))), "- - -");
  });

  it("needs a last stage only after a zone has begun, until it is settled", () => {
    const begun = record([entry(A, "Now")]);
    assert.deepEqual(
      [begun, record([entry(A)]), { ...begun, settledAt: T0 }].map((one) => needsLastStage(gateOf({ spec: ALL }), one)),
      [true, false, false],
    );
    assert.equal(needsLastStage(gateOf(), begun), false);
  });

  it("is kept while something else is to be done", () => {
    const before = currentRecord(gate(settledRecord(oldZones)), viewOf(newZones, newA));
    assert.deepEqual(currentRecord(gate(before), viewOf(newZones, OTHER, 9)), before);
  });
});
