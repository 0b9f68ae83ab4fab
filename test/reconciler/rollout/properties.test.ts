import type { DeletePods } from "../../../reconciler/model/outcome.ts";
import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { least, runs } from "../../runs.ts";
import type { Pod, StatefulSet } from "../../emulator/controllers/objects.ts";
import { isTrue } from "../../emulator/objects.ts";
import { isCurrent, type SmallCluster } from "../small-cluster.ts";
import { decideNext } from "./adapter.ts";
import { carryOut, createWorld, happen, HAPPENINGS, observe, PAUSED } from "./world.ts";

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

/** Plays a history; `onDelete` sees the cluster right before each of our decisions is executed. */
function play(
  cluster: SmallCluster,
  steps: readonly Step[],
  onDelete: (decision: DeletePods) => void,
  onHold: (reason: string) => void = () => {},
): void {
  for (const next of steps) {
    if (next !== "tick") {
      const sets = cluster.sets();
      const zone = sets[next.zone % sets.length];
      if (zone) happen(next.what, cluster, zone, next.pod);
      continue;
    }
    const decision = decideNext(observe(cluster));
    if (decision?.action === "deletePods") onDelete(decision);
    if (decision?.action === "hold") onHold(decision.reason);
    if (decision) carryOut(decision, cluster);
  }
}

/** The minimum number of histories that reach each of these cases; below it the property proves nothing about it. */
const LEAST = {
  "several deletions": 100,
  "a limping pod deleted": 100,
  "a limping pod left alone": 50,
  "a crashing pod deleted": 100,
  "a cure beside another zone": 100,
  "a status that lags": 40,
  MultipleZonesNotReady: 1000,
  OtherZoneNotReady: 60,
  MaxUnavailableReached: 300,
  StatusNotObserved: 1000,
  ZoneNotReady: 1000,
};

const isPaused = ({ metadata }: StatefulSet): boolean => metadata.annotations?.[PAUSED] !== undefined;

/** What the counts of ready pods in a status say beside the pods. */
const lags = (cluster: SmallCluster, { metadata, status }: StatefulSet): boolean =>
  (status?.readyReplicas ?? 0) !== cluster.podsOf(metadata.name).filter((pod) => isTrue(pod, "Ready")).length;

it("over random groups and histories, no step disrupts two zones, or more pods of a zone than max-unavailable allows", () => {
  const reached: Record<string, number> = {};
  const reach = (what: string): void => void (reached[what] = (reached[what] ?? 0) + 1);
  fc.assert(
    fc.property(history, ({ sizes, maxUnavailable, steps }) => {
      const cluster = createWorld(sizes, maxUnavailable);
      const lifeOf = (pod: Pod | undefined) => cluster.lifeOf(pod);
      const isDown = (pod: Pod): boolean => lifeOf(pod) !== "ready";
      /** Nobody loses anything by its deletion. */
      const servesNothing = (pod: Pod): boolean => ["crashing", "starting"].includes(lifeOf(pod));
      /** The pods of a zone that are not there, or not ready. */
      const downOf = (name: string): number =>
        (cluster.set(name).spec.replicas ?? 0) - cluster.podsOf(name).filter((pod) => !isDown(pod)).length;
      const onDelete = (decision: DeletePods): void => {
        const target = cluster.set(decision.zone.name);
        const pods = cluster.podsOf(decision.zone.name);
        const others = cluster.sets().filter(({ metadata }) => metadata.name !== decision.zone.name);
        assert.ok(!isPaused(target), "no pod of a paused zone is replaced");
        const chosen = pods.filter(({ metadata }) => decision.pods.some(({ uid }) => uid === metadata.uid));
        assert.ok(chosen.length > 0 && chosen.length === decision.pods.length);
        const serving = chosen.filter((pod) => !servesNothing(pod));
        assert.ok(serving.length === 0 || serving.length === chosen.length, "pods that serve go alone");
        if (serving.length > 0)
          for (const { metadata } of others) assert.equal(downOf(metadata.name), 0, `${metadata.name} is down already`);
        const observed = target.status?.observedGeneration === target.metadata.generation;
        assert.ok(chosen.every((pod) => !observed || !isCurrent(pod, target)));
        assert.ok(chosen.every((pod) => lifeOf(pod) !== "terminating"));
        // An outdated pod that is not ready and is not deleted serves as before.
        const isSpared = (pod: Pod): boolean =>
          ["limping", "starting", "failed"].includes(lifeOf(pod)) &&
          pod.metadata.labels?.["controller-revision-hash"] !== target.status?.updateRevision;
        const missing = (target.spec.replicas ?? 0) - pods.length;
        const downAfter =
          missing + pods.filter((pod) => serving.includes(pod) || (isDown(pod) && !isSpared(pod))).length;
        if (serving.length > 0)
          assert.ok(
            downAfter <= maxUnavailable,
            `${downAfter} of ${decision.zone.name} down, ${maxUnavailable} allowed`,
          );
        const isReady = serving.some((pod) => lifeOf(pod) === "ready");
        if (isReady) assert.ok(!pods.some((pod) => isSpared(pod)), "ready pods go last");
        if (chosen.length > 1) reach("several deletions");
        if (serving.some((pod) => lifeOf(pod) === "limping")) reach("a limping pod deleted");
        if (pods.some((pod) => isSpared(pod) && !chosen.includes(pod))) reach("a limping pod left alone");
        if (chosen.some((pod) => lifeOf(pod) === "crashing")) reach("a crashing pod deleted");
        if (serving.length === 0 && others.some(({ metadata }) => downOf(metadata.name) > 0))
          reach("a cure beside another zone");
        if (lags(cluster, target)) reach("a status that lags");
      };
      play(cluster, steps, onDelete, reach);
    }),
    { numRuns: runs(2000) },
  );
  for (const [what, count] of Object.entries(LEAST))
    assert.ok((reached[what] ?? 0) >= least(count, 2000), `${what}: ${JSON.stringify(reached)}`);
});
