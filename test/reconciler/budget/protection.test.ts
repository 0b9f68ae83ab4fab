import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeProtection, type Protection } from "../../../reconciler/budget/protection.ts";
import type { Zone } from "../../../reconciler/model/zone.ts";
import { BUDGET_KIND, parseBudget } from "../../../reconciler/budget/zpdb.ts";
import { group } from "../../builders/groups.ts";
import type { ZoneTraits } from "../../builders/zones.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

function protect(traits: readonly ZoneTraits[], spec: object = {}, more: object = {}): Protection {
  const selector = { matchLabels: { "rollout-group": "ingester" } };
  const content = parseBudget({ kind: BUDGET_KIND, metadata: { name: "b" }, spec: { selector, ...spec } });
  return describeProtection({
    content,
    generation: 3,
    zones: group(...traits).zones,
    guard: { reason: "Guarded", message: "hook guards", remedy: "" },
    earlier: {},
    now: START,
    ...more,
  });
}

const UNGUARDED = { reason: "NoWebhook", message: "no webhook asks it", remedy: "" };

const shown = ({ zones }: Protection): string =>
  zones.map(({ healthy, expected, orphaned }) => `${healthy}/${expected}${orphaned ? " orphaned" : ""}`).join(", ");

/** The last of these zones has lost its StatefulSet. */
const orphan = (zones: readonly Zone[]): Zone[] =>
  zones.map((zone, i) => (i < zones.length - 1 ? zone : { ...zone, orphaned: "gone" }));

describe("what a budget protects", () => {
  for (const [name, expected, protection] of [
    ["all well", "3/3, 3/3", protect([{}, {}])],
    ["a zone that lacks a pod", "2/3, 3/3", protect([{ statusReady: 2 }, {}])],
    ["a zone with a pod beyond its replicas", "3/3, 3/3", protect([{ statusReplicas: 4 }, {}])],
    ["one zone alone", "3/3", protect([{}])],
    ["beside a zone of no pods", "0/0, 3/3", protect([{ replicas: 0 }, {}])],
    [
      "beside a zone whose last pod is still there",
      "0/0, 3/3",
      protect([{ replicas: 0, statusReplicas: 1, statusReady: 0 }, {}]),
    ],
    ["an orphaned zone", "3/3, 2/3 orphaned", protect([], {}, { zones: orphan(group({}, { statusReady: 2 }).zones) })],
    ["an invalid budget", "", protect([{}, {}], { maxUnavailable: -1 })],
  ] as const)
    it(`${name}: ${expected}`, () => assert.equal(shown(protection), expected));

  for (const [name, status, reason, protection] of [
    ["two zones", "True", "Protecting", protect([{}, {}])],
    ["two zones where no webhook asks it", "False", "NoWebhook", protect([{}, {}], {}, { guard: UNGUARDED })],
    ["one zone", "False", "TooFewZones", protect([{}])],
    ["one zone, and an orphaned one", "True", "Protecting", protect([], {}, { zones: orphan(group({}, {}).zones) })],
    ["nothing", "False", "SelectsNothing", protect([])],
    ["anything, but is invalid", "False", "Invalid", protect([{}, {}], { maxUnavailable: -1 })],
  ] as const)
    it(`a budget that selects ${name} is Protecting=${status}: ${reason}`, () => {
      const [condition] = protection.conditions;
      assert.partialDeepStrictEqual(condition, {
        status,
        reason,
        observedGeneration: 3,
        lastTransitionTime: "2026-01-01T00:00:00Z",
      });
    });

  it("the condition keeps the time of its last change", () => {
    const earlier = protect([{}, {}]);
    const [later] = protect([{}, {}, {}], {}, { earlier, now: START + 60_000 }).conditions;
    const [other] = protect([], {}, { earlier, now: START + 60_000 }).conditions;
    assert.deepEqual(
      [later?.lastTransitionTime, other?.lastTransitionTime],
      ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"],
    );
  });
});
