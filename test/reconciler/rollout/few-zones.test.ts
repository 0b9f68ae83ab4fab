/** One zone, two zones, and zones of no pods (§1.14). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { runs } from "../../runs.ts";
import { withBudget } from "../../cli/decide/worlds.ts";
import { group, PREVIOUS, type ZoneTraits } from "../builders.ts";
import { worldOf } from "../plan/builders.ts";
import { crashing, decide, old, paused, updated } from "./table.ts";

const none = { replicas: 0 };
const noneOld: ZoneTraits = { replicas: 0, currentRevision: PREVIOUS };
const BY_PARTITION = { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)" };
/** Its last pods are still there. */
const leaving: ZoneTraits = { replicas: 0, statusReplicas: 2, pods: { 0: {}, 1: {} } };

describe("groups of one and two zones, and zones of no pods", () => {
  const TABLE: readonly (readonly [name: string, zones: ZoneTraits[], expected: string])[] = [
    ["one zone, settled", [updated], "settled"],
    ["one zone, outdated", [old], "delete a-0 a-1"],
    [
      "one zone, its limit reached",
      [
        {
          ...old,
          statusReady: 1,
          pods: { 0: { revision: "last", ready: false }, 1: { revision: "last", ready: false } },
        },
      ],
      "hold MaxUnavailableReached",
    ],
    ["one zone, paused", [{ ...old, ...paused }], "hold ZonePaused"],
    ["one zone, a pod that crashes", [{ ...old, statusReady: 2, pods: { 1: crashing } }], "delete a-1"],
    ["one zone of no pods", [none], "settled"],
    ["one zone of no pods, with a new template", [noneOld], "finish a"],
    ["two zones, the other not ready", [old, { statusReady: 2 }], "hold ZoneNotReady"],
    [
      "two zones, both not ready",
      [
        { ...old, statusReady: 2 },
        { ...old, statusReady: 2 },
      ],
      "hold MultipleZonesNotReady",
    ],
    ["two zones, both of no pods, with a new template", [noneOld, noneOld], "finish a"],
    ["two zones, both of no pods", [none, none], "settled"],
    ["a zone of no pods before one that is outdated", [none, old], "delete b-0 b-1"],
    ["a zone of no pods with a new template, before one", [noneOld, old], "finish a"],
    ["a zone of no pods after one that is outdated", [old, none], "delete a-0 a-1"],
    ["a zone whose last pods are leaving, beside one that is outdated", [leaving, old], "hold OtherZoneNotReady"],
    ["a paused zone of no pods with a new template", [{ ...noneOld, ...paused }, updated], "hold ZonePaused"],
    ["a paused zone of no pods beside one that is outdated", [{ ...none, ...paused }, old], "delete b-0 b-1"],
    ["three zones, two of no pods", [none, old, none], "delete b-0 b-1"],
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
  const TABLE: readonly (readonly [name: string, zones: ZoneTraits[], spec: object, expected: string])[] = [
    ["two zones roll out", [old, old], {}, "settled"],
    ["a zone rolls out beside one of no pods", [old, none], {}, "settled"],
    ["one zone does not, as the budget wants two", [old], {}, "blocked BudgetUnusable"],
    ["two zones roll out by partition", [old, old], BY_PARTITION, "settled"],
    ["by partition a zone of no pods counts as one that is missing", [old, none], BY_PARTITION, "blocked BudgetSpent"],
  ];
  for (const [name, zones, spec, expected] of TABLE)
    it(`${name}: ${expected}`, () => {
      const { end, holds } = planGroup(withBudget(zones, { maxUnavailable: 1, ...spec }), 100);
      assert.equal([end, ...holds.map(({ reason }) => reason)].join(" "), expected);
    });
});
