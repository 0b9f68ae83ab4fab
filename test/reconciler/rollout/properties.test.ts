import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decideByStatus, decideRollout } from "../../../reconciler/rollout/decide.ts";
import type { DeletePods } from "../../../reconciler/rollout/zone.ts";
import { calmDown, carryOut, createWorld, happen, HAPPENINGS, isDown, observe, podNamed, type SimulatedZone } from "./world.ts";

const step = fc.oneof(
  { weight: 3, arbitrary: fc.constant("tick" as const) },
  { weight: 7, arbitrary: fc.record({ what: fc.constantFrom(...HAPPENINGS), zone: fc.nat(3), pod: fc.nat(5) }) },
);
const history = fc.record({
  sizes: fc.array(fc.nat(5), { minLength: 1, maxLength: 4, size: "max" }),
  maxUnavailable: fc.integer({ min: 1, max: 4 }),
  steps: fc.array(step, { maxLength: 120, size: "max" }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Plays a history; `onTick` sees the world right before each decision of ours is carried out. */
function play(zones: SimulatedZone[], steps: readonly Step[], onDelete: (decision: DeletePods) => void): void {
  for (const next of steps) {
    if (next !== "tick") {
      const zone = zones[next.zone % zones.length];
      if (zone) happen(next.what, zones, zone, next.pod);
      continue;
    }
    const decision = decideRollout(observe(zones));
    if (decision?.action === "deletePods") onDelete(decision);
    if (decision) carryOut(decision, zones);
  }
}

describe("over random groups and histories", () => {
  it("no step disrupts two zones, or more pods of a zone than max-unavailable allows", () => {
    fc.assert(
      fc.property(history, ({ sizes, maxUnavailable, steps }) => {
        const zones = createWorld(sizes, maxUnavailable);
        play(zones, steps, (decision) => {
          const target = zones.find((zone) => zone.name === decision.zone.name);
          assert.ok(target && !target.paused, "a paused zone is left alone");
          for (const other of zones) if (other !== target) assert.ok(!other.pods.some(isDown), `${other.name} is down already`);
          const chosen = decision.pods.map((pod) => podNamed(target, pod.name));
          assert.ok(
            chosen.length > 0 && chosen.every((pod) => pod.revision !== target.template || target.status.template !== target.template),
          );
          assert.ok(chosen.every((pod) => pod.phase !== "terminating" && pod.phase !== "missing"));
          const healthy = chosen.filter((pod) => pod.phase !== "crashing");
          const downAfter = target.pods.filter((pod) => isDown(pod) || healthy.includes(pod)).length;
          if (healthy.length > 0) assert.ok(downAfter <= maxUnavailable, `${downAfter} of ${target.name} down, ${maxUnavailable} allowed`);
        });
      }),
      { numRuns: 2000 },
    );
  });

  it("every group that can settle does settle, and a settled group gets no write and no second look", () => {
    fc.assert(
      fc.property(history, ({ sizes, maxUnavailable, steps }) => {
        const zones = createWorld(sizes, maxUnavailable);
        play(zones, steps, () => {});
        // Nobody can help a pod that crash-loops at the wanted revision, nor two zones with pods that do: those get well by themselves.
        const crashing = zones.filter((zone) => zone.pods.some((pod) => pod.phase === "crashing"));
        for (const zone of zones) {
          zone.paused = false;
          for (const pod of zone.pods) {
            if (pod.phase === "crashing" && (crashing.length > 1 || pod.revision === zone.template)) pod.phase = "ready";
          }
        }
        const most = 2 * sizes.reduce((sum, size) => sum + size + 1, 0);
        for (let tick = 0; ; tick++) {
          calmDown(zones);
          const decision = decideRollout(observe(zones));
          if (!decision) break;
          assert.ok(tick < most, `still ${JSON.stringify(decision)} after ${tick} ticks`);
          carryOut(decision, zones);
        }
        for (const zone of zones) assert.ok(zone.pods.every((pod) => pod.revision === zone.template && pod.phase === "ready"));
        const snapshot = observe(zones);
        assert.equal(decideRollout(snapshot), undefined);
        assert.equal(
          decideByStatus(snapshot.zones.map((zone) => ({ ...zone, status: { ...zone.status, updated: zone.replicas } }))),
          undefined,
        );
      }),
      { numRuns: 1000 },
    );
  });
});
