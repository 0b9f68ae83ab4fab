/** Batches that begin with one pod and grow as long as pods come up healthy (§1.13). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { whyStopBatch } from "../../../reconciler/rollout/continue-batch.ts";
import { countBatches, batchLimitOf } from "../../../reconciler/rollout/decide-zone.ts";
import { readyHealth } from "../../../reconciler/model/health.ts";
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { runs } from "../../runs.ts";
import { group, LAST, type PodTraits, PREVIOUS, zone, type ZoneTraits } from "../builders.ts";
import { worldOf } from "../plan/builders.ts";
import { decide, updated } from "./table.ts";

const GROWS = { "rollout-max-unavailable": "8", "zonewise.dev/rollout-accelerate": "true" };
/** A zone of 20 pods of which the first have these traits, and the rest the old template. */
const rolling = (pods: readonly PodTraits[], annotations: Readonly<Record<string, string>> = GROWS): ZoneTraits => ({
  at: PREVIOUS,
  replicas: 20,
  annotations,
  statusReady: 20 - pods.filter(({ ready = true }) => !ready).length,
  pods: Object.fromEntries(pods.map((pod, i) => [i, { revision: LAST, ...pod }])),
});
const healthy = (count: number): PodTraits[] => Array.from({ length: count }, () => ({}));
/** The builder's pods turn ready at midnight; those that have restarted, an hour later. */
const RESTARTED: PodTraits = { restarts: 1 };

describe("the limit of a zone that accelerates", () => {
  const TABLE: readonly (readonly [name: string, pods: readonly PodTraits[], limit: number])[] = [
    ["before its first pod", [], 1],
    ["while its first pod starts", [{ ready: false }], 1],
    ["after one", healthy(1), 2],
    ["after two, the second batch has one that starts", [...healthy(2), { ready: false }], 2],
    ["after three", healthy(3), 4],
    ["after six", healthy(6), 4],
    ["after seven", healthy(7), 8],
    ["after eighteen, its maximum", healthy(18), 8],
    ["after a pod that crashes", [...healthy(7), { broken: "CrashLoopBackOff" }], 1],
    ["after a pod that has restarted, and is ready", [...healthy(7), RESTARTED], 1],
    ["after a pod that was ready and is not", [...healthy(7), { ready: false, restarts: 0 }], 1],
    [
      "with a pod that terminates, which tells nothing of the template",
      [...healthy(3), { terminating: true, ready: false }],
      4,
    ],
  ];
  for (const [name, pods, limit] of TABLE)
    it(`${name}: ${limit}`, () => assert.equal(batchLimitOf(zone(rolling(pods))), limit));

  it("grows again with the pods that became ready after the one that did not come up", () => {
    const given = zone(rolling([...healthy(7), RESTARTED, ...healthy(3)]));
    const later = given.pods.map((pod, i) =>
      i > 7 ? { ...pod, health: readyHealth((pod.health.since ?? 0) + 7_200_000) } : pod,
    );
    assert.equal(batchLimitOf({ ...given, pods: later }), 4);
  });

  it("is the maximum at once without the annotation, or with another value", () => {
    assert.equal(batchLimitOf(zone(rolling([], { "rollout-max-unavailable": "8" }))), 8);
    const other = zone(rolling([], { ...GROWS, "zonewise.dev/rollout-accelerate": "yes" }));
    assert.equal(batchLimitOf(other), 8);
    assert.deepEqual(other.problems, [
      'annotation zonewise.dev/rollout-accelerate is "yes": only "true" counts; batches do not accelerate',
    ]);
  });

  it("is never above the maximum, nor above the healthy pods and one more, and never 0", () => {
    const pod = fc.record({
      ready: fc.boolean(),
      restarts: fc.constantFrom(undefined, 0, 1),
      terminating: fc.boolean(),
    });
    const traits = fc.array(
      pod.map(({ restarts, ...one }) => ({ ...one, ...(restarts !== undefined && { restarts }) })),
      {
        maxLength: 20,
      },
    );
    fc.assert(
      fc.property(traits, fc.integer({ min: 1, max: 20 }), (pods, most) => {
        const limit = batchLimitOf(zone(rolling(pods, { ...GROWS, "rollout-max-unavailable": String(most) })));
        const well = pods.filter(({ ready, terminating }) => ready && !terminating).length;
        assert.ok(limit >= 1 && limit <= most && limit <= well + 1, `${limit} of ${most} after ${well}`);
      }),
      { numRuns: runs(1000) },
    );
  });
});

describe("the rollout of a zone that accelerates", () => {
  const TABLE: readonly (readonly [name: string, pods: readonly PodTraits[], expected: string])[] = [
    ["begins with one pod", [], "delete a-0"],
    ["waits for it", [{ ready: false }], "hold MaxUnavailableReached"],
    ["goes on with two", healthy(1), "delete a-1 a-2"],
    ["then with four", healthy(3), "delete a-3 a-4 a-5 a-6"],
    [
      "waits for a pod that does not come up",
      [...healthy(7), { broken: "CrashLoopBackOff" }],
      "hold MaxUnavailableReached",
    ],
    ["goes on with one after that", [...healthy(7), RESTARTED], "delete a-8"],
    [
      "replaces outdated pods that are not ready within the maximum",
      [...healthy(1), ...Array.from({ length: 4 }, () => ({ revision: PREVIOUS, ready: false, working: true }))],
      "delete a-1 a-2 a-3 a-4",
    ],
  ];
  for (const [name, pods, expected] of TABLE)
    it(`${name}: ${expected}`, () => assert.equal(decide(rolling(pods), updated), expected));

  it("says how many may be unavailable at the moment", () => {
    const decision = decideRollout(
      group(rolling([...healthy(3), ...Array.from({ length: 4 }, () => ({ ready: false }))]), {}),
    );
    assert.match(
      decision?.action === "hold" ? decision.message : "",
      /; at most 4 of ingester-zone-a may be unavailable for now, as batches grow to 8, and 13 pods have/,
    );
  });

  it("ends a batch once acceleration is switched on or off", () => {
    const judged = group(rolling([], { "rollout-max-unavailable": "8" }), {}).zones;
    const now = group(rolling([]), {}).zones;
    const [own] = judged;
    const pod = own?.pods[1];
    assert.ok(own && pod);
    assert.equal(
      whyStopBatch({ judged, zone: own, pod, now, servesNothing: false, at: 0 }),
      "ingester-zone-a was changed",
    );
  });

  it("takes as many batches as it counts, in a look ahead", () => {
    const given = group(rolling([]));
    const { steps } = planGroup(worldOf(given.zones), 100);
    const sizes = steps.flatMap(({ pods }) => pods?.length ?? []);
    assert.deepEqual(sizes, [1, 2, 4, 8, 5]);
    const [own] = given.zones;
    assert.ok(own);
    assert.equal(countBatches(own, 20), sizes.length);
  });
});
