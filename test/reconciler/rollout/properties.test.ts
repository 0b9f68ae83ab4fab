import type { DeletePods } from "../../../reconciler/model/outcome.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decideByStatus, decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { least, runs } from "../../runs.ts";
import {
  calmDown,
  carryOut,
  createWorld,
  happen,
  HAPPENINGS,
  isDown,
  observe,
  podNamed,
  servesNothing,
  type SimulatedPod,
  type SimulatedZone,
} from "./world.ts";

const step = fc.oneof(
  { weight: 3, arbitrary: fc.constant("tick" as const) },
  // Without it some status would be older than its spec in most ticks.
  { weight: 2, arbitrary: fc.constant({ what: "syncAll" as const, zone: 0, pod: 0 }) },
  { weight: 7, arbitrary: fc.record({ what: fc.constantFrom(...HAPPENINGS), zone: fc.nat(3), pod: fc.nat(5) }) },
);
const history = fc.record({
  sizes: fc.array(fc.nat(5), { minLength: 1, maxLength: 4, size: "max" }),
  maxUnavailable: fc.integer({ min: 1, max: 4 }),
  steps: fc.array(step, { maxLength: 120, size: "max" }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Plays a history; `onTick` sees the world right before each of our decisions is executed. */
function play(
  zones: SimulatedZone[],
  steps: readonly Step[],
  onDelete: (decision: DeletePods) => void,
  onHold: (reason: string) => void = () => {},
): void {
  for (const next of steps) {
    if (next !== "tick") {
      const zone = zones[next.zone % zones.length];
      if (zone) happen(next.what, zones, zone, next.pod);
      continue;
    }
    const decision = decideRollout(observe(zones));
    if (decision?.action === "deletePods") onDelete(decision);
    if (decision?.action === "hold") onHold(decision.reason);
    if (decision) carryOut(decision, zones);
  }
}

/** The minimum number of histories that reach each of these cases; below it the property proves nothing about it. */
const LEAST = {
  "several deletions": 100,
  "a limping pod deleted": 100,
  "a limping pod left alone": 50,
  "a crashing pod deleted": 100,
  "a recovering pod deleted": 50,
  "a cure beside another zone": 100,
  "a status that lags": 40,
  MultipleZonesNotReady: 1000,
  OtherZoneNotReady: 60,
  MaxUnavailableReached: 300,
  StatusNotObserved: 1000,
  ZoneNotReady: 1000,
};

describe("over random groups and histories", () => {
  it("no step disrupts two zones, or more pods of a zone than max-unavailable allows", () => {
    const reached: Record<string, number> = {};
    const reach = (what: string): void => void (reached[what] = (reached[what] ?? 0) + 1);
    fc.assert(
      fc.property(history, ({ sizes, maxUnavailable, steps }) => {
        const zones = createWorld(sizes, maxUnavailable);
        const onDelete = (decision: DeletePods): void => {
          const target = zones.find((zone) => zone.name === decision.zone.name);
          assert.ok(target && !target.paused, "a paused zone is left alone");
          const chosen = decision.pods.map((pod) => podNamed(target, pod.name));
          const serving = chosen.filter((pod) => !servesNothing(pod));
          assert.ok(serving.length === 0 || serving.length === chosen.length, "pods that serve go alone");
          if (serving.length > 0)
            for (const other of zones)
              if (other !== target) assert.ok(!other.pods.some(isDown), `${other.name} is down already`);
          assert.ok(
            chosen.length > 0 &&
              chosen.every((pod) => pod.revision !== target.template || target.status.template !== target.template),
          );
          assert.ok(chosen.every((pod) => pod.phase !== "terminating" && pod.phase !== "missing"));
          // An outdated pod that is not ready and is not deleted serves as before.
          const isSpared = (pod: SimulatedPod): boolean =>
            ["limping", "recovering"].includes(pod.phase) && pod.revision !== target.status.update;
          const downAfter = target.pods.filter(
            (pod) => serving.includes(pod) || (isDown(pod) && !isSpared(pod)),
          ).length;
          if (serving.length > 0)
            assert.ok(downAfter <= maxUnavailable, `${downAfter} of ${target.name} down, ${maxUnavailable} allowed`);
          const isReady = serving.some(({ phase }) => phase === "ready");
          if (isReady) assert.ok(!target.pods.some((pod) => isSpared(pod)), "ready pods go last");
          if (chosen.length > 1) reach("several deletions");
          if (serving.some(({ phase }) => phase === "limping")) reach("a limping pod deleted");
          if (serving.some(({ phase }) => phase === "recovering")) reach("a recovering pod deleted");
          if (target.pods.some((pod) => isSpared(pod) && !chosen.includes(pod))) reach("a limping pod left alone");
          if (chosen.some(({ phase }) => phase === "crashing")) reach("a crashing pod deleted");
          if (serving.length === 0 && zones.some((other) => other !== target && other.pods.some(isDown)))
            reach("a cure beside another zone");
          if (target.status.ready !== target.pods.filter((pod) => !isDown(pod)).length) reach("a status that lags");
        };
        play(zones, steps, onDelete, reach);
      }),
      { numRuns: runs(2000) },
    );
    for (const [what, count] of Object.entries(LEAST))
      assert.ok((reached[what] ?? 0) >= least(count, 2000), `${what}: ${JSON.stringify(reached)}`);
  });

  it("every group that can settle does settle, and a settled group gets no write and no second read", () => {
    fc.assert(
      fc.property(history, ({ sizes, maxUnavailable, steps }) => {
        const zones = createWorld(sizes, maxUnavailable);
        play(zones, steps, () => {});
        // The rollout cannot fix a pod that crash-loops or limps at the wanted revision, nor pods of two zones that
        // work in part: those recover.
        const limping = zones.filter((zone) => zone.pods.some(({ phase }) => phase === "limping"));
        for (const zone of zones) {
          zone.paused = false;
          for (const pod of zone.pods) {
            const isBroken = pod.phase === "limping" || pod.phase === "crashing";
            if (isBroken && pod.revision === zone.template) pod.phase = "ready";
            if (pod.phase === "limping" && limping.length > 1) pod.phase = "ready";
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
        for (const zone of zones)
          assert.ok(zone.pods.every((pod) => pod.revision === zone.template && pod.phase === "ready"));
        const snapshot = observe(zones);
        assert.equal(decideRollout(snapshot), undefined);
        assert.equal(
          decideByStatus(
            snapshot.zones.map((zone) => ({ ...zone, status: { ...zone.status, updated: zone.replicas } })),
          ),
          undefined,
        );
      }),
      { numRuns: runs(1000) },
    );
  });
});
