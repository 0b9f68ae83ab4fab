/**
 * The plan is what happens under disruption budgets, in zones and in partitions, with delays between zones, and with
 * zones that mirror a resource and whose pods prepare before they go.
 */
import { isTerminating } from "../../../reconciler/model/health.ts";
import type { ScaleZone } from "../../../reconciler/model/outcome.ts";
import { it } from "node:test";
import type { ZoneWithPods } from "../../../reconciler/model/zone.ts";
import type { Reservation, Reservations } from "../../../reconciler/budget/reservation.ts";
import type { Hold } from "../../../reconciler/model/decision.ts";
import { readScaling } from "../../../reconciler/model/annotations.ts";
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import type { ReferenceReading } from "../../../reconciler/scaling/snapshot.ts";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { budgetOf } from "../../cli/decide/worlds.ts";
import { least, runs } from "../../runs.ts";
import { PARTITIONS, budget as parse } from "../budget/builders.ts";
import { carryOut, type Happening } from "../rollout/world.ts";
import type { SmallCluster } from "../small-cluster.ts";
import { DELAYED, MIRROR } from "../scaling/mirror-stage.ts";
import { worldOf } from "./builders.ts";
import { moveAll, playPast, syncAll } from "./play.ts";
import { applyScale, chooseScale, denyShrink, grantPods, momentsOf, syncLagging, syncObserved } from "./shell.ts";
import assert from "node:assert/strict";
import fc from "fast-check";

const PAST = ["deploy", "stumble", "crash", "limp", "pause", "recover", "revert"] as const satisfies Happening[];
const MODES = { zones: {}, partitions: PARTITIONS, delayed: { ...PARTITIONS, crossZoneEvictionDelay: "10m" } } as const;
const MINUTE = 60_000;

const start = fc.record({
  sizes: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 2, maxLength: 3, size: "max" }),
  maxUnavailable: fc.integer({ min: 1, max: 3 }),
  past: fc.array(fc.record({ what: fc.constantFrom(...PAST), zone: fc.nat(3), pod: fc.nat(4) }), { maxLength: 6 }),
  ticks: fc.nat(3),
  mode: fc.constantFrom("zones", "partitions", "delayed"),
  allowed: fc.nat(3),
  /** A pod whose eviction was allowed a minute ago. */
  reserved: fc.option(fc.record({ zone: fc.nat(2), pod: fc.nat(3) }), { nil: undefined }),
  /** What each zone mirrors, if it does. */
  mirrors: fc.array(fc.option(fc.record({ wanted: fc.nat(4), isDelayed: fc.boolean() }), { nil: undefined }), {
    minLength: 3,
    maxLength: 3,
  }),
  minTime: fc.constantFrom(undefined, "1h"),
});
type Start = typeof start extends fc.Arbitrary<infer T> ? T : never;

/** The group as a tick and its budget see it. */
function observeWith({ mirrors, minTime }: Start) {
  return (cluster: SmallCluster, downscales: ReadonlyMap<string, string>): ZoneWithPods[] =>
    cluster.zones().map((zone, i) => {
      const mirror = mirrors[i];
      const { value: scaling } = readScaling({}, { ...(mirror && MIRROR), ...(mirror?.isDelayed && DELAYED) });
      // It is gone before time passes.
      const pods = zone.pods.map((pod) => ({ ...pod, ...(isTerminating(pod) && { notReadySince: undefined }) }));
      return { ...zone, pods, scaling: { ...scaling, minTime, lastDownscale: downscales.get(zone.name) } };
    });
}

interface Execution {
  readonly cluster: SmallCluster;
  readonly spec: object;
  readonly reservations: Map<string, Reservation>;
  readonly references: ReadonlyMap<string, ReferenceReading>;
  readonly read: ReturnType<typeof observeWith>;
}

/**
 * Ticks, with everybody else doing their part whenever there is nothing to do but wait, until nothing moves any more.
 */
function execute({ cluster, spec, reservations, references, read }: Execution): string[] {
  const downscales = new Map<string, string>();
  const prepared = new Map<string, number>();
  const budget = parse(spec);
  const done: string[] = [];
  for (let tick = 0; tick < 5000; tick++) {
    const now = cluster.now();
    syncObserved(cluster);
    const group = { namespace: "test", name: "ingester", zones: read(cluster, downscales) };
    const denies = (shrink: ScaleZone): Hold | undefined =>
      denyShrink(shrink, group.zones, { budget, reservations, now });
    const { step, holds } = chooseScale(group, { now, references, prepared, denies });
    if (step) {
      applyScale(step, cluster, downscales);
      done.push(`${step.zone.name}=${step.replicas}`);
      continue;
    }
    const decision = decideRollout(group);
    if (decision?.action === "finishZone") {
      carryOut(decision, cluster);
      done.push(decision.zone.name);
      continue;
    }
    const granted =
      decision?.action === "deletePods" ? grantPods(decision, group.zones, { budget, reservations, now }) : [];
    if (decision?.action === "deletePods" && granted.length > 0) {
      carryOut({ ...decision, pods: granted }, cluster);
      done.push(...granted.map(({ name }) => name));
      continue;
    }
    const isSynced = syncLagging(cluster);
    if (moveAll(cluster) || isSynced) continue;
    if (!decision && holds.length === 0) return done;
    const times = [
      ...[...holds, ...(decision?.action === "hold" ? [decision] : [])].flatMap(({ until }) =>
        until === undefined ? [] : [until + 1],
      ),
      ...[...reservations.values()].map(({ time }) => Date.parse(time) + 2 * MINUTE),
      ...group.zones.flatMap(({ pods }) =>
        pods.flatMap(({ readySince }) => (readySince === undefined ? [] : [readySince + 10 * MINUTE + 1])),
      ),
      ...momentsOf(group.zones),
    ];
    const later = times.filter((at) => at > now);
    if (later.length === 0) return done;
    // Times of the cluster are in whole seconds.
    cluster.elapse(Math.ceil((Math.min(...later) - now) / 1000) * 1000);
  }
  return assert.fail("it does not end");
}

const COUNT = 1000;

it("over random groups with budgets and mirrors, the plan has the steps in the order in which they are then taken", () => {
  const seen = { settled: 0, blocked: 0, cut: 0, steps: 0, scaled: 0, prepared: 0, spent: 0, delayed: 0 };
  fc.assert(
    fc.property(start, (given) => {
      const cluster = playPast(given);
      syncAll(cluster);
      moveAll(cluster);
      syncAll(cluster);
      const now = cluster.now();
      const read = observeWith(given);
      const observed = read(cluster, new Map());

      const spec = { ...MODES[given.mode], maxUnavailable: given.allowed };
      const claimed = given.reserved && observed[given.reserved.zone]?.pods[given.reserved.pod];
      const time = new Date(now - MINUTE).toISOString();
      const reserved: Reservations = claimed
        ? { [claimed.name]: { kind: "eviction", uid: claimed.uid, pinned: true, time, by: "x" } }
        : {};
      const resource = { group: "g", version: "v1", plural: "templates" };
      const references = new Map(
        observed.map(({ uid }, i) => [
          uid,
          { resource, wantedReplicas: given.mirrors[i]?.wanted ?? 0, reportedReplicas: 0 },
        ]),
      );

      const budgets = [{ ...budgetOf(spec), reservations: reserved }];
      const plan = planGroup({ ...worldOf([]), zones: observed, now, budgets, references }, 10_000);
      const taken = plan.steps.filter(({ action }) => action !== "PreparePods");
      const planned = taken.flatMap(({ zone, pods = [zone], replicas }) =>
        replicas === undefined ? pods : [`${zone}=${replicas}`],
      );
      assert.deepEqual(
        planned,
        execute({ cluster, spec, reservations: new Map(Object.entries(reserved)), references, read }),
      );
      const count = (reason: string): number => plan.steps.filter(({ waits }) => waits.includes(reason)).length;
      seen[plan.end]++;
      seen.steps += planned.length;
      seen.scaled += planned.filter((name) => name.includes("=")).length;
      seen.prepared += plan.steps.length - taken.length;
      seen.spent += count("BudgetSpent");
      seen.delayed += count("DelayNotReached");
    }),
    { numRuns: runs(COUNT) },
  );
  assert.equal(seen.cut, 0);
  for (const [what, count] of Object.entries({
    settled: 200,
    blocked: 100,
    steps: 2000,
    scaled: 300,
    prepared: 100,
    spent: 30,
    delayed: 30,
  }))
    assert.ok(seen[what as keyof typeof seen] >= least(count, COUNT), `${what}: ${JSON.stringify(seen)}`);
});
