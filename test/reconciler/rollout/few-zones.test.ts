/** One zone, two zones, and zones of no pods (§1.14). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { runs } from "../../runs.ts";
import { withBudget } from "../../cli/decide/worlds.ts";
import { group, PREVIOUS, traitsOf, type ZoneTraits } from "../builders.ts";
import { worldOf } from "../plan/builders.ts";
import { decide, paused } from "./table.ts";

const none = { replicas: 0 };
const noneOld: ZoneTraits = { replicas: 0, currentRevision: PREVIOUS };
const BY_PARTITION = { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)" };

describe("groups of one and two zones, and zones of no pods", () => {
  const TABLE: readonly (readonly [name: string, zones: (ZoneTraits | string)[], expected: string])[] = [
    ["one zone, settled", ["nnn"], "settled"],
    ["one zone, outdated", ["ooo"], "delete a-0 a-1"],
    ["one zone, its limit reached", ["n!n!o"], "hold MaxUnavailableReached"],
    ["one zone, paused", ["ooo paused"], "hold ZonePaused"],
    ["one zone, a pod that crashes", ["ooxo"], "delete a-1"],
    ["one zone of no pods", [none], "settled"],
    ["one zone of no pods, with a new template", [noneOld], "finish a"],
    ["two zones, the other not ready", ["ooo", "nnn ready 2"], "hold ZoneNotReady"],
    ["two zones, both not ready", ["ooo ready 2", "ooo ready 2"], "hold MultipleZonesNotReady"],
    ["two zones, both of no pods, with a new template", [noneOld, noneOld], "finish a"],
    ["two zones, both of no pods", [none, none], "settled"],
    ["a zone of no pods before one that is outdated", [none, "ooo"], "delete b-0 b-1"],
    ["a zone of no pods with a new template, before one", [noneOld, "ooo"], "finish a"],
    ["a zone of no pods after one that is outdated", ["ooo", none], "delete a-0 a-1"],
    [
      "a zone whose last pods are leaving, beside one that is outdated",
      ["nn of 0 counts 2", "ooo"],
      "hold OtherZoneNotReady",
    ],
    ["a paused zone of no pods with a new template", [{ ...noneOld, ...paused }, "nnn"], "hold ZonePaused"],
    ["a paused zone of no pods beside one that is outdated", [{ ...none, ...paused }, "ooo"], "delete b-0 b-1"],
    ["three zones, two of no pods", [none, "ooo", none], "delete b-0 b-1"],
  ];
  for (const [name, zones, expected] of TABLE)
    it(`${name}: ${expected}`, () => assert.equal(decide(...zones), expected));

  it("settle in a look ahead, whatever their sizes are, and never take pods of two zones at once", () => {
    const sizes = fc.array(fc.constantFrom(0, 1, 2, 3), { minLength: 1, maxLength: 3 });
    const limit = fc.constantFrom("1", "2", "100%");
    fc.assert(
      fc.property(sizes, limit, fc.boolean(), (replicas, most, accelerates) => {
        const annotations = {
          "rollout-max-unavailable": most,
          ...(accelerates && { "zonewise.dev/rollout-accelerate": "true" }),
        };
        const zones = replicas.map((count) => ({ at: PREVIOUS, replicas: count, annotations }));
        const { steps, end } = planGroup(worldOf(group(...zones).zones), 100);
        assert.equal(end, "settled");
        // Each zone is finished before a pod of the next goes.
        const order = steps.map(({ zone }) => zone);
        assert.deepEqual(order, order.toSorted());
        assert.equal(
          steps.flatMap(({ pods = [] }) => pods).length,
          replicas.reduce<number>((sum, count) => sum + count, 0),
        );
        assert.equal(steps.filter(({ action }) => action === "FinishZone").length, replicas.length);
      }),
      { numRuns: runs(500) },
    );
  });
});

describe("under a budget of one pod", () => {
  const TABLE: readonly (readonly [name: string, zones: (ZoneTraits | string)[], spec: object, expected: string])[] = [
    ["two zones roll out", ["ooo", "ooo"], {}, "settled"],
    ["a zone rolls out beside one of no pods", ["ooo", none], {}, "settled"],
    ["one zone does not, as the budget wants two", ["ooo"], {}, "blocked BudgetUnusable"],
    ["two zones roll out by partition", ["ooo", "ooo"], BY_PARTITION, "settled"],
    [
      "by partition a zone of no pods counts as one that is missing",
      ["ooo", none],
      BY_PARTITION,
      "blocked BudgetSpent",
    ],
  ];
  for (const [name, zones, spec, expected] of TABLE)
    it(`${name}: ${expected}`, () => {
      const { end, holds } = planGroup(withBudget(zones.map(traitsOf), { maxUnavailable: 1, ...spec }), 100);
      assert.equal([end, ...holds.map(({ reason }) => reason)].join(" "), expected);
    });
});
