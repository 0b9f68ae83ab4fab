/**
 * The plan is what happens, with all that a tick weighs: followers that take over the replicas of leaders, minimum
 * times between downscales, gates whose checks fail at first, batches, mixed revisions and broken pods; and under
 * disruption budgets, in zones and in partitions, with delays between zones, zones that mirror a resource and whose pods
 * prepare before they go.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import type { Reservation } from "../../../reconciler/budget/reservation.ts";
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import { wantedBy } from "../../../reconciler/gates/rollout.ts";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import type { ReferenceReading } from "../../../reconciler/scaling/snapshot.ts";
import { budgetOf } from "../../cli/decide/worlds.ts";
import { least, runs } from "../../runs.ts";
import { budget as parse, PARTITIONS } from "../../builders/budgets.ts";
import { data, gateObject, noData } from "../../builders/gates.ts";
import { worldOf } from "../../builders/groups.ts";
import { type Facts, follow, type GateStatus, judge, readOne } from "../gates/adapter.ts";
import { decideNext, type Decision } from "../rollout/adapter.ts";
import { carryOut, createWorld, happen, observe, type Happening } from "../rollout/world.ts";
import { DELAYED, MIRROR } from "../scaling/mirror-stage.ts";
import type { SmallCluster } from "../small-cluster.ts";
import { applyScale, chooseScale, denyShrink, grantPods, momentsOf, syncLagging, syncObserved } from "./shell.ts";

const PAST = ["deploy", "stumble", "crash", "limp", "pause", "recover", "revert"] as const satisfies Happening[];
const POINTS = ["BeforeFirstZone", "BetweenZones", "AfterLastZone"] as const;
const MODES = { zones: {}, partitions: PARTITIONS, delayed: { ...PARTITIONS, crossZoneEvictionDelay: "10m" } } as const;
const MINUTE = 60_000;
const G = "grafana.com";

const past = fc.record({
  sizes: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 2, maxLength: 3, size: "max" }),
  maxUnavailable: fc.integer({ min: 1, max: 3 }),
  past: fc.array(fc.record({ what: fc.constantFrom(...PAST), zone: fc.nat(3), pod: fc.nat(4) }), { maxLength: 6 }),
  ticks: fc.nat(3),
});
const budgeted = fc.record({
  mode: fc.constantFrom("zones", "partitions", "delayed"),
  allowed: fc.nat(3),
  /** A pod whose eviction was allowed a minute ago. */
  reserved: fc.option(fc.record({ zone: fc.nat(2), pod: fc.nat(3) }), { nil: undefined }),
  /** What each zone mirrors, if it does. */
  mirrors: fc.array(fc.option(fc.record({ wanted: fc.nat(4), isDelayed: fc.boolean() }), { nil: undefined }), {
    minLength: 3,
    maxLength: 3,
  }),
});
const gated = fc.record({
  /** Of the zones after the first: nobody, the first zone, or the one before. */
  leaders: fc.array(fc.constantFrom("none", "first", "before"), { minLength: 3, maxLength: 3 }),
  readyOnly: fc.boolean(),
  when: fc.option(fc.subarray([...POINTS], { minLength: 1 }), { nil: undefined }),
  /** Answers of Prometheus that are bad at first. */
  bad: fc.nat(2),
});
const start = fc.record({
  past,
  minTime: fc.constantFrom(undefined, "1h"),
  guards: fc.oneof(
    budgeted.map((guards) => ({ by: "budget" as const, ...guards })),
    gated.map((guards) => ({ by: "gate" as const, ...guards })),
  ),
});
type Start = typeof start extends fc.Arbitrary<infer T> ? T : never;

/** Of zone `i`. */
function annotationsOf({ minTime, guards }: Start, i: number): Record<string, string> {
  const time = { ...(minTime && { [`${G}/min-time-between-zones-downscale`]: minTime }) };
  if (guards.by === "budget")
    return { ...time, ...(guards.mirrors[i] && MIRROR), ...(guards.mirrors[i]?.isDelayed && DELAYED) };
  const kind = i === 0 ? "none" : guards.leaders[i - 1];
  const leader = `ingester-zone-${"abc".charAt(kind === "first" ? 0 : i - 1)}`;
  return {
    ...time,
    ...(kind !== "none" && { [`${G}/rollout-downscale-leader`]: leader }),
    ...(guards.readyOnly && { [`${G}/rollout-upscale-only-when-leader-ready`]: "true" }),
  };
}

/** A group in the middle of a rollout. */
function playPast(given: Start): SmallCluster {
  const { sizes, maxUnavailable, past, ticks } = given.past;
  const cluster = createWorld(sizes, maxUnavailable, { annotationsOf: (i) => annotationsOf(given, i) });
  const change = (what: Happening, zone = 0, pod = 0): void => {
    const sets = cluster.sets();
    const set = sets[zone % sets.length];
    if (set) happen(what, cluster, set, pod);
  };
  change("deploy");
  for (let i = 0; i < ticks; i++) {
    calmDown(cluster);
    const decision = decideNext(observe(cluster));
    if (decision) carryOut(decision, cluster);
  }
  for (const { what, zone, pod } of past) change(what, zone, pod);
  change("syncAll");
  moveAll(cluster);
  change("syncAll");
  return cluster;
}

/**
 * Kubelets and controllers do all they can: only a pod that crash-loops or limps and is not deleted stays unchanged.
 */
function calmDown(cluster: SmallCluster): void {
  cluster.limitPods(false);
  for (const { metadata } of cluster.store.list("pods"))
    if (cluster.lifeOf(cluster.pod(metadata.name)) === "failed") cluster.ail(metadata.name, "ready");
  cluster.settle();
}

/** A pod gets on: it ends, is made again, or becomes ready. */
function moveOne(cluster: SmallCluster): boolean {
  for (const {
    metadata: { name },
    spec: { replicas = 0 },
  } of cluster.sets()) {
    const pods = cluster.podsOf(name);
    const moving = pods.find((pod) => ["terminating", "starting", "failed"].includes(cluster.lifeOf(pod)));
    if (moving) {
      cluster.ail(moving.metadata.name, "ready");
      cluster.runOut(moving.metadata.name);
    } else if (pods.length < replicas) cluster.sync(name);
    else continue;
    return true;
  }
  return false;
}

/** All pods that are on their way get there together. */
function moveAll(cluster: SmallCluster): boolean {
  let moved = false;
  while (moveOne(cluster)) moved = true;
  return moved;
}

/** A gate's steps, without the results of checks. */
const outline = (gate: CustomObject | undefined): string => {
  const { identity, settledTime, zones, stages } = (gate?.status ?? {}) as Partial<GateStatus>;
  return JSON.stringify([identity, settledTime, zones, stages?.map(({ point, zone, state }) => [point, zone, state])]);
};

function wantsOf(ungated: Decision): Facts["wants"] {
  const wanted = wantedBy(ungated);
  return wanted.kind === "zone" ? (wanted.zone.name as `zone-${string}`) : wanted.kind;
}

interface Execution {
  readonly references: ReadonlyMap<string, ReferenceReading>;
  readonly spec?: object;
  readonly reservations: Map<string, Reservation>;
  readonly gate?: CustomObject;
  readonly bad?: number;
}

/**
 * Ticks, with everybody else doing their part whenever there is nothing to do but wait, until nothing moves any more.
 */
function execute(cluster: SmallCluster, { references, spec, reservations, bad = 0, ...more }: Execution): string[] {
  const budget = spec && parse(spec);
  const prepared = new Map<string, number>();
  const done: string[] = [];
  let { gate } = more;
  let left = bad;
  for (let tick = 0; tick < 5000; tick++) {
    const now = cluster.now();
    syncObserved(cluster);
    const zones = cluster.zones();
    const group = { namespace: "test", name: "ingester", zones };
    const grants = budget && { budget, reservations, now };
    const { step, holds } = chooseScale(group, {
      now,
      references,
      prepared,
      denies: (shrink) => grants && denyShrink(shrink, zones, grants),
    });
    if (step) {
      applyScale(step, cluster);
      done.push(`${step.zone.name}=${step.replicas}`);
      continue;
    }
    const objects = cluster.objects();
    const facts = gate && { now, gates: [gate], zones: objects.statefulSets, wants: wantsOf(decideNext(objects)) };
    const decision = decideNext({ ...objects, gates: facts && judge(facts) });
    const before = outline(gate);
    const next = facts && follow(facts, (at) => (left-- > 0 ? data(at) : noData(at)));
    gate = next?.gate;
    if (decision?.action === "finishZone") {
      carryOut(decision, cluster);
      done.push(decision.zone.name);
      continue;
    }
    if (decision?.action === "deletePods") {
      const granted = grants ? grantPods(decision, zones, grants) : decision.pods;
      carryOut({ ...decision, pods: granted }, cluster);
      done.push(...granted.map(({ name }) => name));
      if (granted.length > 0) continue;
    }
    // The next tick follows a step of a gate at once.
    if (outline(gate) !== before) continue;
    const isSynced = syncLagging(cluster);
    if (moveAll(cluster) || isSynced) continue;
    if (!decision && holds.length === 0) return done;
    const pods = zones.flatMap((zone) => zone.pods);
    const times = [
      ...[...holds, ...(decision?.action === "hold" ? [decision] : [])].flatMap(({ until }) =>
        until === undefined ? [] : [until + 1],
      ),
      ...(next?.nextAt === undefined ? [] : [next.nextAt]),
      ...[...reservations.values()].map(({ time }) => Date.parse(time) + 2 * MINUTE),
      ...pods.flatMap(({ readySince }) => (budget && readySince !== undefined ? readySince + 10 * MINUTE + 1 : [])),
      ...momentsOf(zones),
    ];
    const later = times.filter((at) => at > now);
    if (later.length === 0) return done;
    // Times of the cluster are in whole seconds.
    cluster.elapse(Math.ceil((Math.min(...later) - now) / 1000) * 1000);
  }
  return assert.fail("it does not end");
}

const COUNT = 2000;
const RESOURCE = { group: "g", version: "v1", plural: "templates" };

it("over random groups, the plan has the steps in the order in which they are then taken", () => {
  const seen = { settled: 0, blocked: 0, cut: 0, steps: 0, scaled: 0, prepared: 0 };
  const waited: Record<string, number> = {};
  fc.assert(
    fc.property(start, (given) => {
      const { guards } = given;
      const cluster = playPast(given);
      const [now, zones] = [cluster.now(), cluster.zones()];

      const isBudget = guards.by === "budget";
      const spec = isBudget ? { ...MODES[guards.mode], maxUnavailable: guards.allowed } : undefined;
      const claimed = isBudget && guards.reserved && zones[guards.reserved.zone]?.pods[guards.reserved.pod];
      const time = new Date(now - MINUTE).toISOString();
      const reservations = new Map<string, Reservation>(
        claimed ? [[claimed.name, { kind: "eviction", uid: claimed.uid, pinned: true, time, by: "x" }]] : [],
      );
      const wantedReplicas = (i: number): number => (isBudget && guards.mirrors[i]?.wanted) || 0;
      const references = new Map(
        zones.map(({ uid }, i) => [
          uid,
          { resource: RESOURCE, wantedReplicas: wantedReplicas(i), reportedReplicas: 0 },
        ]),
      );
      const gate = !isBudget && guards.when ? gateObject({ spec: { when: guards.when } }) : undefined;

      const budgets = spec ? [{ ...budgetOf(spec), reservations: Object.fromEntries(reservations) }] : [];
      const gates = gate ? [readOne(gate)] : [];
      const plan = planGroup({ ...worldOf([]), zones, now, budgets, gates, references }, 10_000);
      const taken = plan.steps.filter(({ action }) => action !== "PreparePods");
      const planned = taken.flatMap(({ zone, pods = [zone], replicas }) =>
        replicas === undefined ? pods : [`${zone}=${replicas}`],
      );
      const more = { ...(spec && { spec }), ...(gate && { gate }), ...(!isBudget && { bad: guards.bad }) };
      assert.deepEqual(planned, execute(cluster, { references, reservations, ...more }));
      seen[plan.end]++;
      seen.steps += planned.length;
      seen.scaled += planned.filter((name) => name.includes("=")).length;
      seen.prepared += plan.steps.length - taken.length;
      for (const { waits } of plan.steps) for (const reason of waits) waited[reason] = (waited[reason] ?? 0) + 1;
    }),
    { numRuns: runs(COUNT) },
  );
  assert.equal(seen.cut, 0);
  const all: Record<string, number> = { ...waited, ...seen };
  for (const [what, count] of Object.entries({
    settled: 400,
    blocked: 200,
    steps: 4000,
    scaled: 600,
    prepared: 100,
    BudgetSpent: 30,
    DelayNotReached: 30,
    GateWaiting: 100,
  }))
    assert.ok((all[what] ?? 0) >= least(count, COUNT), `${what}: ${JSON.stringify(all)}`);
});
