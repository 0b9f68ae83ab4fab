import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeProtection, needsPods, type Protection } from "../../../reconciler/budget/protection.ts";
import type { BudgetZone } from "../../../reconciler/budget/budget-pod.ts";
import { withCountedPods } from "../../../reconciler/budget/headroom.ts";
import { BUDGET_KIND, parseBudget } from "../../../reconciler/budget/zpdb.ts";
import { group, type ZoneTraits } from "../builders.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

function protect(traits: readonly ZoneTraits[], spec: object = {}, more: object = {}): Protection {
  const selector = { matchLabels: { "rollout-group": "ingester" } };
  const content = parseBudget({ kind: BUDGET_KIND, metadata: { name: "b" }, spec: { selector, ...spec } });
  return describeProtection({
    content,
    generation: 3,
    zones: group(...traits).zones,
    reservations: {},
    guard: { state: "guarded", reason: "Guarded", message: "hook guards", remedy: "" },
    earlier: {},
    now: START,
    ...more,
  });
}

const shown = ({ zones }: Protection): string =>
  zones.map((zone) => `${zone.healthy}/${zone.expected} ${zone.disruptionsAllowed ?? "-"}`).join(", ");
const reserve = (pod: string, secondsAgo: number) => ({
  [pod]: {
    kind: "eviction" as const,
    uid: "u",
    pinned: true,
    by: "x",
    time: new Date(START - secondsAgo * 1000).toISOString(),
  },
});

/** Two zones with their pods, of which one is not ready. */
const partitionsWithout = (unready: string): readonly BudgetZone[] =>
  group({}, {}).zones.map((zone) => {
    const counted = withCountedPods(zone, {});
    return { ...counted, pods: counted.pods.map((pod) => ({ ...pod, ready: pod.name !== unready })) };
  });
const PARTITIONS = { podNamePartitionRegex: "[a-z-]+-([0-9]+)" };

describe("what a budget protects", () => {
  for (const [name, expected, protection] of [
    ["all well: one in each zone", "3/3 1, 3/3 1", protect([{}, {}])],
    ["all well, two allowed", "3/3 2, 3/3 2", protect([{}, {}], { maxUnavailable: 2 })],
    ["half of a zone", "4/4 2, 3/3 1", protect([{ replicas: 4 }, {}], { maxUnavailablePercentage: 50 })],
    ["none at all", "3/3 0, 3/3 0", protect([{}, {}], { maxUnavailable: 0 })],
    ["a zone that lacks a pod: none elsewhere, and none more there", "2/3 0, 3/3 0", protect([{ statusReady: 2 }, {}])],
    [
      "a zone that lacks a pod of two: one more there",
      "2/3 1, 3/3 0",
      protect([{ statusReady: 2 }, {}], { maxUnavailable: 2 }),
    ],
    [
      "a pod that is reserved counts as lost",
      "2/3 0, 3/3 0",
      protect([{}, {}], {}, { reservations: reserve("ingester-zone-a-1", 10) }),
    ],
    [
      "one that is reserved and not ready counts once",
      "2/3 0, 3/3 0",
      protect([{ statusReady: 2 }, {}], {}, { reservations: reserve("ingester-zone-a-1", 10) }),
    ],
    [
      "a reservation that has expired does not count",
      "3/3 1, 3/3 1",
      protect([{}, {}], {}, { reservations: reserve("ingester-zone-a-1", 120) }),
    ],
    ["a zone with a pod beyond its replicas", "3/4 1, 3/3 0", protect([{ statusReplicas: 4 }, {}])],
    [
      "a downscale that is reserved",
      "1/3 1, 3/3 0",
      protect(
        [{}, {}],
        {},
        {
          reservations: {
            "ingester-zone-a/1": {
              kind: "downscale",
              uid: "uid-ingester-zone-a",
              from: 1,
              pinned: true,
              by: "x",
              time: new Date(START).toISOString(),
            },
          },
        },
      ),
    ],
    ["partitions, all well: a pod of each", "3/3 3, 3/3 3", protect([{}, {}], PARTITIONS)],
    [
      "partitions, while pods that are not ready are not known",
      "2/3 -, 3/3 -",
      protect([{ statusReady: 2 }, {}], PARTITIONS),
    ],
    [
      "partitions with a delay, while it is not known since when pods are ready",
      "3/3 -, 3/3 -",
      protect([{}, {}], { ...PARTITIONS, crossZoneEvictionDelay: "1m" }),
    ],
    [
      "partitions, while a pod is reserved that is not known",
      "2/3 -, 3/3 -",
      protect([{}, {}], PARTITIONS, { reservations: reserve("ingester-zone-a-1", 10) }),
    ],
    [
      "partitions, by their pods: each but the one that lacks a pod elsewhere",
      "2/3 2, 3/3 2",
      protect([{ statusReady: 2 }, {}], PARTITIONS, { withPods: partitionsWithout("ingester-zone-a-1") }),
    ],
    ["one zone alone: none", "3/3 0", protect([{}])],
    ["beside a zone of no pods: its own limit", "0/0 0, 3/3 1", protect([{ replicas: 0 }, {}])],
    [
      "beside a zone whose last pod is still there: none",
      "0/1 0, 3/3 0",
      protect([{ replicas: 0, statusReplicas: 1, statusReady: 0 }, {}]),
    ],
    ["partitions beside a zone of no pods: none", "0/0 0, 3/3 0", protect([{ replicas: 0 }, {}], PARTITIONS)],
    ["partitions, of which one zone has fewer", "1/1 1, 3/3 1", protect([{ replicas: 1 }, {}], PARTITIONS)],
    ["two zones of no pods", "0/0 0, 0/0 0", protect([{ replicas: 0 }, { replicas: 0 }])],
    [
      "more replicas than are counted",
      "3/6000 -, 3/6000 -",
      protect([{}, {}], {}, { zones: group({}, {}).zones.map((zone) => ({ ...zone, replicas: 6000 })) }),
    ],
  ] as const)
    it(`${name}: ${expected}`, () => assert.equal(shown(protection), expected));

  for (const [name, expected, traits] of [
    ["with a pod that is not ready", true, [{ statusReady: 2 }, {}]],
    ["with 1,000 pods", true, [{ replicas: 997 }, {}]],
    ["with 1,001 pods", false, [{ replicas: 998 }, {}]],
    ["with 1,001 pods, of which most are to go", false, [{ statusReplicas: 998 }, {}]],
    ["with 33 zones", false, [{ statusReady: 2 }, ...Array.from({ length: 32 }, (_, i) => ({ name: `zone-${i}` }))]],
  ] as const)
    it(`pods are ${expected ? "" : "not "}read for a budget by partition ${name}`, () => {
      const selector = { matchLabels: { "rollout-group": "ingester" } };
      const spec = { selector, ...PARTITIONS, crossZoneEvictionDelay: "1m" };
      const budget = parseBudget({ kind: BUDGET_KIND, metadata: { name: "b" }, spec });
      if ("problem" in budget) assert.fail(budget.problem);
      assert.equal(needsPods(budget, { zones: group(...traits).zones, reservations: {}, now: START }), expected);
    });

  for (const [name, status, reason, protection] of [
    ["two zones", "True", "Protecting", protect([{}, {}])],
    ["one zone", "False", "TooFewZones", protect([{}])],
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
