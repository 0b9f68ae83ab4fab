/** What a closed window holds, and what it does not (§1.12). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { whyStopBatch, type BatchView } from "../../../reconciler/rollout/continue-batch.ts";
import { wantedBy } from "../../../reconciler/gates/rollout.ts";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { group, LAST, PREVIOUS, type ZoneTraits } from "../builders.ts";
import { worldOf } from "../plan/builders.ts";
import { crashing, decideAt, old, updated } from "./table.ts";
import { goneHealth } from "../../../reconciler/model/health.ts";

/** A Monday, two hours before the windows open. */
const NOW = Date.parse("2026-06-01T00:00:00Z");
const OPENS = Date.parse("2026-06-01T02:00:00Z");
const window = (value = "* * 2 * * *") => ({ annotations: { "zonewise.dev/rollout-window": value } });
const SET_AT = "2026-05-01T00:00:00Z";
/** Zone a was given a template and gets its old one back; its pod 1 has the one that was taken back. */
const reverted: ZoneTraits = {
  ...window(),
  createdAt: SET_AT,
  pods: { 1: { revision: "taken-back", createdAt: "2026-05-31T00:00:00Z" } },
};

const decisionAt = (now: number, ...zones: readonly ZoneTraits[]) => decideRollout({ ...group(...zones), now });

describe("a closed window", () => {
  const TABLE: readonly (readonly [name: string, zones: (ZoneTraits | string)[], expected: string, now?: number])[] = [
    ["holds an outdated zone", [{ ...old, ...window() }, updated], "hold WindowClosed"],
    ["lets it go on once it is open", [{ ...old, ...window() }, updated], "delete a-0 a-1", OPENS],
    ["does not matter to a settled group", [{ ...updated, ...window() }, updated], "settled"],
    ["holds the zones after it, which keep their order", [{ ...old, ...window() }, old], "hold WindowClosed"],
    ["of a later zone lets the first one go", [old, { ...old, ...window() }], "delete a-0 a-1"],
    [
      "lets the pod that is on its way come up",
      [{ ...old, ...window(), statusReady: 2, pods: { 0: { revision: LAST, ready: false } } }, updated],
      "hold WindowClosed",
    ],
    [
      "says first that the zone has no room",
      [
        {
          ...old,
          ...window(),
          annotations: { ...window().annotations, "rollout-max-unavailable": "1" },
          statusReady: 2,
          pods: { 0: { revision: LAST, ready: false } },
        },
        updated,
      ],
      "hold MaxUnavailableReached",
    ],
    [
      "lets broken pods be replaced",
      [{ ...old, ...window(), statusReady: 2, pods: { 1: crashing } }, updated],
      "delete a-1",
    ],
    [
      "lets outdated pods be replaced that are not ready",
      [
        { ...old, ...window(), statusReady: 2, pods: { 1: { revision: PREVIOUS, ready: false, working: true } } },
        updated,
      ],
      "delete a-1",
    ],
    ["lets a finished zone be recorded", [{ currentRevision: PREVIOUS, ...window() }, updated], "finish a"],
    ["lets a template that was taken back go", [reverted, updated], "delete a-1"],
    ["lets it go behind a zone that waits for its window", [{ ...old, ...window() }, reverted], "delete b-1"],
    [
      "holds pods that are older than their StatefulSet, which was created again: they are no way back",
      [{ ...reverted, pods: { 1: { revision: "x", createdAt: "2026-04-01T00:00:00Z" } } }, updated],
      "hold WindowClosed",
    ],
    ["that cannot be read holds", [{ ...old, ...window("at night") }, updated], "hold WindowInvalid"],
    ["that never opens holds", [{ ...old, ...window("* * 2 * * * 2020") }, updated], "hold WindowInvalid"],
    [
      "of another zone that is not ready does not come first",
      [{ ...old, ...window() }, { statusReady: 2 }],
      "hold ZoneNotReady",
    ],
    [
      "of a paused zone does not hold the others",
      [{ ...old, annotations: { ...window().annotations, "grafana.com/rollout-paused": "true" } }, old],
      "delete b-0 b-1",
    ],
  ];
  for (const [name, zones, expected, now = NOW] of TABLE)
    it(`${name}: ${expected}`, () => assert.equal(decideAt(now, ...zones), expected));

  it("names the time of its opening", () => {
    const decision = decisionAt(NOW, { ...old, ...window() }, updated);
    assert.ok(decision?.action === "hold");
    assert.equal(decision.until, OPENS);
    assert.equal(
      decision.message,
      "ingester-zone-a waits, and 3 pods have to be updated: window * * 2 * * * (UTC) is closed, and opens at 2026-06-01T02:00:00Z",
    );
  });

  it("holds if nobody knows the time", () =>
    assert.equal(decideAt(undefined, { ...old, ...window() }, updated), "hold WindowClosed"));

  it("asks no gate before it opens", () => {
    assert.equal(wantedBy(decisionAt(NOW, { ...old, ...window() })).kind, "other");
    assert.equal(wantedBy(decisionAt(OPENS, { ...old, ...window() })).kind, "zone");
  });
});

describe("a batch", () => {
  const view = (at: number, changed: ZoneTraits, judged: ZoneTraits = {}): BatchView => {
    const zones = group({ at: PREVIOUS, ...judged }, {}).zones;
    const [zone] = zones;
    const pod = zone?.pods[1];
    assert.ok(zone && pod);
    const now = group({ at: PREVIOUS, ...changed }, {}).zones;
    return { judged: zones, zone, pod, now, servesNothing: false, at };
  };
  const LAST_SECOND = Date.parse("2026-06-01T02:59:59Z");
  it("ends when the window closes", () => {
    assert.equal(whyStopBatch(view(LAST_SECOND, window(), window())), undefined);
    assert.match(
      whyStopBatch(view(LAST_SECOND + 1000, window(), window())) ?? "",
      /is closed, and opens at 2026-06-02/,
    );
  });
  it("ends when a window is set that is closed", () =>
    assert.match(whyStopBatch(view(NOW, window())) ?? "", /is closed/));
  it("ends when a freeze is set", () => {
    const annotations = { "zonewise.dev/rollout-freezes": "2026-06-01T00:00:00Z/2026-06-02T00:00:00Z" };
    assert.match(whyStopBatch(view(NOW, { annotations })) ?? "", /a freeze lasts until 2026-06-02T00:00:00Z/);
  });
  it("goes on with a pod that is not ready", () => {
    const given = view(NOW, window(), window());
    assert.equal(
      whyStopBatch({ ...given, pod: { ...given.pod, health: goneHealth(given.pod.health, undefined) } }),
      undefined,
    );
  });
  it("goes on with a template that was taken back", () => {
    const given = view(NOW, { ...reverted, at: LAST }, { ...reverted, at: LAST });
    assert.equal(whyStopBatch(given), undefined);
  });
});

it("a look ahead waits for the window, and again for the next one", () => {
  // Each pod takes a minute, and the window is open for two.
  const annotations = { "zonewise.dev/rollout-window": "* 0-1 2 * * *", "rollout-max-unavailable": "1" };
  const { steps, end } = planGroup(worldOf(group({ ...old, annotations }).zones, { now: NOW }), 100);
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
  const { end, holds } = planGroup(worldOf(group({ ...old, ...window("* * 2 31 2 *") }).zones, { now: NOW }), 100);
  assert.deepEqual([end, holds.map(({ reason }) => reason)], ["blocked", ["WindowInvalid"]]);
});
