/** What a closed window holds, and what it does not (§1.12). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { wantedBy } from "../../../reconciler/gates/rollout.ts";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { objectsOf, worldOf } from "../../builders/groups.ts";
import { OLD, PREVIOUS, traitsOf, type ZoneScene, type ZoneTraits } from "../../builders/zones.ts";
import { decide, decideNext, readGroup, type Decision } from "./adapter.ts";

/** A Monday, two hours before the windows open. */
const NOW = Date.parse("2026-06-01T00:00:00Z");
const OPENS = Date.parse("2026-06-01T02:00:00Z");
const window = (value = "* * 2 * * *") => ({ annotations: { "zonewise.dev/rollout-window": value } });
/** Zone a was given a template and gets its old one back; its pod 1 has the one that was taken back. */
const reverted: ZoneTraits = {
  ...window(),
  createdAt: "2026-05-01T00:00:00Z",
  pods: { 1: { revision: "taken-back", createdAt: "2026-05-31T00:00:00Z" } },
};

/** A zone with that window beside what its sketch says. */
function windowed(sketch: string, value?: string): ZoneTraits {
  const { annotations, ...traits } = traitsOf(sketch);
  return { ...traits, annotations: { ...annotations, ...window(value).annotations } };
}
const WAITING = windowed("ooo");
const decisionAt = (now: number): Decision => decideNext({ ...objectsOf([WAITING, "nnn"]), now });

describe("a closed window", () => {
  const TABLE: readonly (readonly [name: string, zones: ZoneScene[], expected: string, now?: number])[] = [
    ["holds an outdated zone", [WAITING, "nnn"], "hold WindowClosed"],
    ["lets it go on once it is open", [WAITING, "nnn"], "delete a-0 a-1", OPENS],
    ["does not matter to a settled group", [windowed("nnn"), "nnn"], "settled"],
    ["holds the zones after it, which keep their order", [WAITING, "ooo"], "hold WindowClosed"],
    ["of a later zone lets the first one go", ["ooo", WAITING], "delete a-0 a-1"],
    ["lets the pod that is on its way come up", [windowed("n!oo"), "nnn"], "hold WindowClosed"],
    ["says first that the zone has no room", [windowed("n!oo max 1"), "nnn"], "hold MaxUnavailableReached"],
    ["lets broken pods be replaced", [windowed("ooxo"), "nnn"], "delete a-1"],
    ["lets outdated pods be replaced that are not ready", [windowed("oo~o"), "nnn"], "delete a-1"],
    ["lets a finished zone be recorded", [{ currentRevision: PREVIOUS, ...window() }, "nnn"], "finish a"],
    ["lets a template that was taken back go", [reverted, "nnn"], "delete a-1"],
    ["lets it go behind a zone that waits for its window", [WAITING, reverted], "delete b-1"],
    [
      "holds pods that are older than their StatefulSet, which was created again: they are no way back",
      [{ ...reverted, pods: { 1: { revision: "x", createdAt: "2026-04-01T00:00:00Z" } } }, "nnn"],
      "hold WindowClosed",
    ],
    ["that cannot be read holds", [windowed("ooo", "at night"), "nnn"], "hold WindowInvalid"],
    ["that never opens holds", [windowed("ooo", "* * 2 * * * 2020"), "nnn"], "hold WindowInvalid"],
    ["of another zone that is not ready does not come first", [WAITING, "nnn ready 2"], "hold ZoneNotReady"],
    ["of a paused zone does not hold the others", [windowed("ooo paused"), "ooo"], "delete b-0 b-1"],
  ];
  for (const [name, zones, expected, now = NOW] of TABLE)
    it(`${name}: ${expected}`, () => assert.equal(decide({ ...objectsOf(zones), now }), expected));

  it("names the time of its opening", () => {
    const decision = decisionAt(NOW);
    assert.ok(decision?.action === "hold");
    assert.equal(decision.until, OPENS);
    assert.equal(
      decision.message,
      "ingester-zone-a waits, and 3 pods have to be updated: window * * 2 * * * (UTC) is closed, and opens at 2026-06-01T02:00:00Z",
    );
  });

  it("asks no gate before it opens", () => {
    assert.equal(wantedBy(decisionAt(NOW)).kind, "other");
    assert.equal(wantedBy(decisionAt(OPENS)).kind, "zone");
  });
});

it("a look ahead waits for the window, and again for the next one", () => {
  // Each pod takes a minute, and the window is open for two.
  const annotations = { "zonewise.dev/rollout-window": "* 0-1 2 * * *", "rollout-max-unavailable": "1" };
  const { steps, end } = planGroup(worldOf(readGroup(objectsOf([{ ...OLD, annotations }])).zones, { now: NOW }), 100);
  assert.equal(end, "settled");
  assert.deepEqual(
    steps.map(({ pods, at }) => [pods?.join() ?? "finish", new Date(at).toISOString().slice(5, 16)]),
    [
      ["ingester-zone-a-0", "06-01T02:00"],
      ["ingester-zone-a-1", "06-01T02:01"],
      ["ingester-zone-a-2", "06-02T02:00"],
      ["finish", "06-02T02:01"],
    ],
  );
  assert.deepEqual(steps[2]?.waits, ["MaxUnavailableReached", "WindowClosed"]);
});

it("a look ahead ends at a window that never opens", () => {
  const never = objectsOf([{ ...OLD, ...window("* * 2 31 2 *") }]);
  const { end, holds } = planGroup(worldOf(readGroup(never).zones, { now: NOW }), 100);
  assert.deepEqual([end, holds.map(({ reason }) => reason)], ["blocked", ["WindowInvalid"]]);
});
