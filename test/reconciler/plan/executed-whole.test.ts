/**
 * The plan is what happens, with all that a tick weighs: followers that take over the replicas of leaders, minimum
 * times between downscales, gates whose checks fail at first, batches, mixed revisions and broken pods.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Scaling } from "../../../reconciler/model/annotations.ts";
import type { GroupSnapshot, ZoneWithPods } from "../../../reconciler/model/zone.ts";
import type { GateRecord } from "../../../reconciler/gates/record.ts";
import { judgeGates } from "../../../reconciler/gates/hold.ts";
import { identityOf, wantedBy } from "../../../reconciler/gates/rollout.ts";
import { decideRollout, decideUngated } from "../../../reconciler/rollout/decide-rollout.ts";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { least, runs } from "../../runs.ts";
import { data, follow, noData, stored, type GateTraits } from "../gates/builders.ts";
import { carryOut, observe, type Happening } from "../rollout/world.ts";
import type { SmallCluster } from "../small-cluster.ts";
import { NOW, worldOf } from "./builders.ts";
import { moveAll, playPast, syncAll } from "./play.ts";
import { applyScale, chooseScale, momentsOf, syncLagging, syncObserved } from "./shell.ts";
import fc from "fast-check";

const PAST = ["deploy", "stumble", "crash", "limp", "pause", "recover", "revert"] as const satisfies Happening[];
const POINTS = ["BeforeFirstZone", "BetweenZones", "AfterLastZone"] as const;

const start = fc.record({
  sizes: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 2, maxLength: 3, size: "max" }),
  maxUnavailable: fc.integer({ min: 1, max: 3 }),
  past: fc.array(fc.record({ what: fc.constantFrom(...PAST), zone: fc.nat(3), pod: fc.nat(4) }), { maxLength: 6 }),
  ticks: fc.nat(3),
  /** Of the zones after the first: nobody, the first zone, or the one before. */
  leaders: fc.array(fc.constantFrom("none", "first", "before"), { minLength: 3, maxLength: 3 }),
  readyOnly: fc.boolean(),
  minTime: fc.constantFrom(undefined, "1h"),
  when: fc.option(fc.subarray([...POINTS], { minLength: 1 }), { nil: undefined }),
  /** Answers of Prometheus that are bad at first. */
  bad: fc.nat(2),
});
type Start = typeof start extends fc.Arbitrary<infer T> ? T : never;

/** The group with what its labels and annotations say of scaling. */
type Observe = (cluster: SmallCluster, lastDownscales: ReadonlyMap<string, string>) => GroupSnapshot;

function observeWith({ leaders, readyOnly, minTime }: Start): Observe {
  return (cluster, lastDownscales) => {
    const group = observe(cluster);
    const read = (zone: ZoneWithPods, i: number): ZoneWithPods => {
      const kind = i === 0 ? "none" : leaders[i - 1];
      const leader = kind === "none" ? undefined : group.zones[kind === "first" ? 0 : i - 1]?.name;
      const lastDownscale = lastDownscales.get(zone.name);
      const scaling: Scaling = {
        ...zone.scaling,
        leader,
        upscaleOnlyWhenLeaderReady: readyOnly,
        minTime,
        lastDownscale,
      };
      return { ...zone, scaling };
    };
    return { ...group, zones: group.zones.map(read) };
  };
}

/** A gate's steps, without the results of checks. */
const outline = (record: GateRecord | undefined): string =>
  JSON.stringify([
    record?.identity,
    record?.settledAt,
    record?.zones,
    record?.stages.map(({ point, zone, state }) => [point, zone, state]),
  ]);

/**
 * Ticks, with everybody else doing their part whenever there is nothing to do but wait, until nothing moves any more.
 */
function execute(cluster: SmallCluster, given: Start, read: Observe): string[] {
  const lastDownscales = new Map<string, string>();
  const done: string[] = [];
  const traits: GateTraits = { spec: { when: given.when ?? [] } };
  let record: GateRecord | undefined;
  let { bad } = given;
  let now = NOW;
  for (let tick = 0; tick < 5000; tick++) {
    syncObserved(cluster);
    const group = read(cluster, lastDownscales);
    const { step, holds } = chooseScale(group, { now });
    if (step) {
      applyScale(step, cluster, lastDownscales);
      done.push(`${step.zone.name}=${step.replicas}`);
      continue;
    }
    const view = { identity: identityOf(group.zones), zones: group.zones, now, wanted: wantedBy(decideUngated(group)) };
    const gates = given.when && judgeGates([stored(traits, record)], view);
    const decision = decideRollout({ ...group, ...(gates && { gates }) });
    const before = outline(record);
    const next = given.when && follow(traits, { record, view, answer: (at) => (bad-- > 0 ? data(at) : noData(at)) });
    record = next?.record;
    if (decision && decision.action !== "hold") {
      carryOut(decision, cluster);
      done.push(...(decision.action === "finishZone" ? [decision.zone.name] : decision.pods.map(({ name }) => name)));
      continue;
    }
    // The next tick follows a step of a gate at once.
    if (outline(record) !== before) continue;
    const isSynced = syncLagging(cluster);
    if (moveAll(cluster) || isSynced) continue;
    const waits = [...holds, ...(decision ? [decision] : [])];
    const times = [
      ...waits.flatMap(({ until }) => (until === undefined ? [] : [until + 1])),
      ...(waits.length > 0 ? [next?.nextAt ?? 0, ...momentsOf(group.zones)] : []),
    ];
    const later = times.filter((at) => at > now);
    if (later.length === 0) return done;
    now = Math.min(...later);
  }
  return assert.fail("it does not end");
}

const COUNT = 1000;

it("over random groups with followers and gates, the plan has the steps in the order in which they are then taken", () => {
  const seen = { settled: 0, blocked: 0, steps: 0, scaled: 0, gated: 0 };
  fc.assert(
    fc.property(start, (given) => {
      const { when } = given;
      const cluster = playPast(given);
      syncAll(cluster);
      moveAll(cluster);
      syncAll(cluster);
      const read = observeWith(given);

      const gates = when ? [stored({ spec: { when } }, undefined)] : [];
      const plan = planGroup(worldOf(read(cluster, new Map()).zones, { gates }), 10_000);
      const planned = plan.steps.flatMap(({ zone, pods = [zone], replicas }) =>
        replicas === undefined ? pods : [`${zone}=${replicas}`],
      );
      assert.deepEqual(planned, execute(cluster, given, read));
      assert.ok(plan.end !== "cut");
      seen[plan.end]++;
      seen.steps += planned.length;
      seen.scaled += planned.filter((name) => name.includes("=")).length;
      seen.gated += plan.steps.filter(({ waits }) => waits.includes("GateWaiting")).length;
    }),
    { numRuns: runs(COUNT) },
  );
  for (const [what, count] of Object.entries({
    settled: 200,
    blocked: 100,
    steps: 2000,
    scaled: 300,
    gated: 100,
  }))
    assert.ok(seen[what as keyof typeof seen] >= least(count, COUNT), `${what}: ${JSON.stringify(seen)}`);
});
