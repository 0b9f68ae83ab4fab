/**
 * What is waited for can still happen: whatever made pods of several zones sick, after the user's cure everything
 * settles (§1.10).
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { least, runs } from "../../runs.ts";
import { playSickGroup, sickGroup } from "./play.ts";

it("over random groups with sick pods, a fixed template and the way back of the replicas cure everything, and nothing that works goes twice", () => {
  const seen = { severalZones: 0, scaled: 0, budgets: 0, quick: 0 };
  fc.assert(
    fc.property(sickGroup, (group) => {
      const { isSettled, holds, sickZones, tookMs, violations } = playSickGroup(group);
      assert.deepEqual(violations, []);
      assert.ok(isSettled, JSON.stringify(holds));
      if (sickZones > 1) seen.severalZones++;
      if (group.budget) seen.budgets++;
      if (group.shape.scaling !== "none" && group.cure.reverts) seen.scaled++;
      if (tookMs < 5 * 60_000) seen.quick++;
    }),
    { numRuns: runs(500) },
  );
  for (const [what, count] of Object.entries({ severalZones: 100, scaled: 50, budgets: 200, quick: 100 }))
    assert.ok(seen[what as keyof typeof seen] >= least(count, 500), `${what}: ${JSON.stringify(seen)}`);
});

const limping = fc.record({
  replicas: fc.integer({ min: 1, max: 4 }),
  maxUnavailable: fc.integer({ min: 1, max: 4 }),
  allowed: fc.constantFrom(0, 1, 2),
  pods: fc.array(fc.nat(3), { minLength: 1, maxLength: 4, size: "max" }),
});

it("pods of one zone that work in part are all cured, and no more of them go at once than the limit and the budget allow", () => {
  let several = 0;
  fc.assert(
    fc.property(limping, ({ replicas, maxUnavailable, allowed, pods }) => {
      const { isSettled, holds, violations } = playSickGroup({
        shape: { sizes: [replicas, replicas], maxUnavailable, scaling: "none" },
        budget: { maxUnavailable: allowed },
        first: undefined,
        events: pods.map((pod) => ({ what: "fail", zone: 1, pod, ailment: "limping" })),
        cure: { reverts: false, deploys: true, from: 0, apart: 0 },
        pace: [0],
      });
      assert.deepEqual(violations, []);
      assert.ok(isSettled, JSON.stringify(holds));
      if (allowed > 0 && allowed < maxUnavailable && new Set(pods.map((pod) => pod % replicas)).size > allowed)
        several++;
    }),
    { numRuns: 200 },
  );
  assert.ok(several > 10, `${several}`);
});
