import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RolloutError } from "../../../infra/errors.ts";
import { hold } from "../../../reconciler/model/decision.ts";
import { linesOf } from "../../../reconciler/report/log-lines.ts";
import { remember, revisionKey, type GroupMemory } from "../../../reconciler/report/log-lines.ts";
import type { Outcome } from "../../../reconciler/model/outcome.ts";
import { zone } from "../../builders/groups.ts";
import { podObject, PREVIOUS } from "../../builders/zones.ts";
import { readPod } from "../../../reconciler/model/pod.ts";

const stored = zone({ name: "zone-a" });
const common = { namespace: "test", group: "g", zones: [stored], scalingHolds: [], notes: [] };
const waitFor = (left: string) => ({ ...hold("DelayNotReached", `${left} left`, [stored]), dedupKey: "zone-a" });
const change = new RolloutError("Conflict", "it changed");

const settled: Outcome = { ...common, state: "settled" };
const held: Outcome = { ...common, state: "held", hold: hold("ZonePaused", "zone-a is paused", [stored]) };
const waiting = (left: string): Outcome => ({ ...settled, scalingHolds: [waitFor(left)] });
const noted: Outcome = { ...settled, notes: [{ level: "warn", text: "a note" }] };
const superseded = (times: number): Outcome => ({ ...common, state: "superseded", error: change, times });
const finished = { action: "finishZone", zone: stored, message: "zone-a is updated" } as const;
const finish: Outcome = { ...common, state: "acted", decision: finished, effect: { replaced: [], denied: [] } };
const replace: Outcome = { ...finish, effect: { replaced: [readPod(podObject("zone-a", 0))], denied: [] } };

const rolled = { ...stored, status: { ...stored.status, currentRevision: PREVIOUS } };
const rolling: Outcome = { ...held, zones: [rolled] };
const unread: Outcome = { ...superseded(1), zones: [] };
const recorded: Outcome = { ...finish, zones: [rolled], decision: { ...finished, zone: rolled } };

/** The memory after these outcomes, one second apart. */
function rememberAll(...outcomes: readonly Outcome[]): GroupMemory | undefined {
  return outcomes.reduce<GroupMemory | undefined>(
    (earlier, outcome, i) => remember(earlier, outcome, i * 1000),
    undefined,
  );
}

const REMEMBERED: readonly [name: string, outcomes: readonly Outcome[], expected: Partial<GroupMemory>][] = [
  [
    "the start of a hold, while it lasts",
    [held, held, held],
    { holds: new Map([["ZonePaused: zone-a is paused", 0]]) },
  ],
  [
    "the same hold as a new one after it ended",
    [held, settled, held],
    { holds: new Map([["ZonePaused: zone-a is paused", 2000]]) },
  ],
  [
    "a scaling hold by its dedupKey, regardless of its message",
    [waiting("9s"), waiting("8s")],
    { holds: new Map([["DelayNotReached: zone-a", 0]]) },
  ],
  ["no hold of a settled group", [held, settled], { holds: new Map() }],
  ["that a pod was replaced, until the group is settled", [replace, held, finish], { rolling: true }],
  ["that the rollout is over", [replace, settled], { rolling: false }],
  ["no rollout where no pod was replaced", [finish, held], { rolling: false }],
  ["the number of times in a row that it was superseded", [superseded(1), superseded(2)], { timesSuperseded: 2 }],
  ["none once it was not", [superseded(1), held], { timesSuperseded: 0 }],
  ["the zones that are to be recorded", [rolling], { unfinished: new Set([revisionKey(rolled)]) }],
  ["them while an outcome has no zones", [rolling, unread], { unfinished: new Set([revisionKey(rolled)]) }],
  ["not the zone that it records itself", [rolling, recorded], { unfinished: new Set() }],
  ["no zone that is recorded", [rolling, settled], { unfinished: new Set() }],
  ["the last notes alone", [noted, settled], { notes: [] }],
];

describe("a process remembers of a group", () => {
  for (const [name, outcomes, expected] of REMEMBERED)
    it(name, () =>
      assert.partialDeepStrictEqual(rememberAll(...outcomes), { namespace: "test", group: "g", ...expected }),
    );
});

const LOGGED: readonly [name: string, earlier: readonly Outcome[], outcome: Outcome, lines: readonly string[]][] = [
  ["a new state", [settled], held, ["info zone-a is paused"]],
  ["an unchanged state, once", [held], held, []],
  ["each action", [finish], finish, ["info zone-a is updated"]],
  ["a new scaling hold", [settled], waiting("9s"), ["info 9s left"]],
  ["a scaling hold that lasts, once", [waiting("9s")], waiting("8s"), []],
  ["a new note", [settled], noted, ["warn a note"]],
  ["an unchanged note, once", [noted], noted, []],
  ["that it was superseded", [], superseded(1), ["warn the group changed meanwhile; the next tick decides again"]],
];

describe("the log has", () => {
  for (const [name, earlier, outcome, lines] of LOGGED)
    it(name, () =>
      assert.deepEqual(
        linesOf(outcome, rememberAll(...earlier)).map(({ level, text }) => `${level} ${text}`),
        lines,
      ),
    );
});
