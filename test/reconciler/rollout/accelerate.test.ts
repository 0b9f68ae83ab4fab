/** Batches that begin with one pod and grow as long as pods come up healthy (§1.13). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { runs } from "../../runs.ts";
import { objectsOf, worldOf, zone } from "../../builders/groups.ts";
import { LAST, OLD, type PodTraits, PREVIOUS, type ZoneTraits } from "../../builders/zones.ts";
import { batchesOf, decide, decideNext, limitOf, readGroup } from "./adapter.ts";

const GROWS = { "rollout-max-unavailable": "8", "zonewise.dev/rollout-accelerate": "true" };
/** A zone of 20 pods of which the first have these traits, and the rest the old template. */
const rolling = (pods: readonly PodTraits[], annotations: Record<string, string> = GROWS): ZoneTraits => ({
  ...OLD,
  replicas: 20,
  annotations,
  statusReady: 20 - pods.filter(({ ready = true }) => !ready).length,
  pods: pods.map((pod) => ({ revision: LAST, ...pod })),
});
const healthy = (count: number, more: PodTraits = {}): PodTraits[] => Array.from({ length: count }, () => more);
/** The builder's pods turn ready at midnight; those that have restarted, an hour later. */
const RESTARTED: PodTraits = { restarts: 1 };
const CRASHING: PodTraits = { broken: "CrashLoopBackOff" };

describe("the rollout of a zone that accelerates", () => {
  const TABLE: readonly (readonly [name: string, pods: readonly PodTraits[], limit: number, next?: string])[] = [
    ["begins with one pod", [], 1, "delete a-0"],
    ["waits for it", [{ ready: false }], 1, "hold MaxUnavailableReached"],
    ["goes on with two", healthy(1), 2, "delete a-1 a-2"],
    ["takes one beside one that starts", [...healthy(2), { ready: false }], 2, "delete a-3"],
    ["then goes on with four", healthy(3), 4, "delete a-3 a-4 a-5 a-6"],
    ["which it takes until all of them are healthy", healthy(6), 4],
    ["then with eight", healthy(7), 8],
    ["and never with more than its maximum", healthy(18), 8],
    ["waits for a pod that does not come up", [...healthy(7), CRASHING], 1, "hold MaxUnavailableReached"],
    ["goes on with one after a pod that has restarted", [...healthy(7), RESTARTED], 1, "delete a-8"],
    ["begins again after a pod that was ready and is not", [...healthy(7), { ready: false, restarts: 0 }], 1],
    [
      "learns nothing of the template from a pod that terminates",
      [...healthy(3), { terminating: true, ready: false }],
      4,
    ],
    [
      "grows again with pods that became ready after the one that did not come up",
      [...healthy(7), RESTARTED, ...healthy(3, { readyAt: "2026-01-01T02:00:00Z" })],
      4,
    ],
    [
      "replaces outdated pods that are not ready within the maximum",
      [...healthy(1), ...healthy(4, { revision: PREVIOUS, ready: false, working: true })],
      2,
      "delete a-1 a-2 a-3 a-4",
    ],
  ];
  for (const [name, pods, limit, next] of TABLE)
    it(`${name}: ${limit}`, () => {
      const objects = objectsOf([rolling(pods), "nnn"]);
      assert.equal(limitOf(objects), limit);
      if (next !== undefined) assert.equal(decide(objects), next);
    });

  it("says how many may be unavailable at the moment", () => {
    const decision = decideNext(objectsOf([rolling([...healthy(3), ...healthy(4, { ready: false })]), "nnn"]));
    assert.match(
      decision?.action === "hold" ? decision.message : "",
      /; at most 4 of ingester-zone-a may be unavailable for now, as batches grow to 8, and 13 pods have/,
    );
  });

  it("takes as many batches as it counts, in a look ahead", () => {
    const objects = objectsOf([rolling([])]);
    const { steps } = planGroup(worldOf(readGroup(objects).zones), 100);
    const sizes = steps.flatMap(({ pods }) => pods?.length ?? []);
    assert.deepEqual(sizes, [1, 2, 4, 8, 5]);
    assert.equal(batchesOf(objects, 20), sizes.length);
  });
});

describe("the limit of a zone that accelerates", () => {
  it("is the maximum at once without the annotation, or with another value", () => {
    assert.equal(limitOf(objectsOf([rolling([], { "rollout-max-unavailable": "8" })])), 8);
    const other = rolling([], { ...GROWS, "zonewise.dev/rollout-accelerate": "yes" });
    assert.equal(limitOf(objectsOf([other])), 8);
    assert.deepEqual(zone(other).problems, [
      'annotation zonewise.dev/rollout-accelerate is "yes": only "true" counts; batches do not accelerate',
    ]);
  });

  it("is never above the maximum, nor above the healthy pods and one more, and never 0", () => {
    const pod = fc.record(
      { ready: fc.boolean(), restarts: fc.constantFrom(0, 1), terminating: fc.boolean() },
      { requiredKeys: ["ready", "terminating"] },
    );
    fc.assert(
      fc.property(fc.array(pod, { maxLength: 20 }), fc.integer({ min: 1, max: 20 }), (pods, most) => {
        const limit = limitOf(objectsOf([rolling(pods, { ...GROWS, "rollout-max-unavailable": String(most) })]));
        const well = pods.filter(({ ready, terminating }) => ready && !terminating).length;
        assert.ok(limit >= 1 && limit <= most && limit <= well + 1, `${limit} of ${most} after ${well}`);
      }),
      { numRuns: runs(1000) },
    );
  });
});
