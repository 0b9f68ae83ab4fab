import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decideEviction } from "../../../reconciler/budget/decide-eviction.ts";
import {
  planDenialCheck,
  missingPods,
  checkDenial,
  findBlocking,
  type Reread,
} from "../../../reconciler/budget/denial-cache.ts";
import type { EvictionSnapshot } from "../../../reconciler/budget/unavailability.ts";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import type { PodTraits, ZoneTraits } from "../builders.ts";
import { PARTITIONS, snapshot } from "./builders.ts";

const MAX_READS = 4;

/** The blocking pods with their state in another snapshot. */
function reread(now: EvictionSnapshot, blocking: readonly Reread["blocker"][]): Reread[] {
  return blocking.map((blocker) => {
    const zone = now.zones.find(({ uid }) => uid === blocker.zone.uid);
    const pod = zone?.pods.find(({ name }) => name === blocker.pod);
    return { blocker, pod, zone: pod ? undefined : zone };
  });
}

/** The denial that an earlier read proves for the pod of `now`; undefined if it proves none. */
function denyAgain(before: EvictionSnapshot, now: EvictionSnapshot): string | undefined {
  const claim = planDenialCheck(now.pod.name, findBlocking(before.zones, before, 0), MAX_READS);
  return claim && checkDenial(claim, reread(now, claim.blocking), now);
}

const podTraits = fc.constantFrom<PodTraits | null>({}, {}, {}, { ready: false }, { terminating: true }, null);
const zoneTraits = fc.record({
  pods: fc.record({ 0: podTraits, 1: podTraits, 2: podTraits }),
  statusReplicas: fc.constantFrom(2, 3, 4),
});
const zones = fc.record({ a: zoneTraits, b: zoneTraits, c: zoneTraits });
const specs = fc.oneof(
  fc.record({ maxUnavailable: fc.nat(3) }),
  fc.record({ maxUnavailablePercentage: fc.constantFrom(0, 34, 67) }),
  fc.record({
    maxUnavailable: fc.nat(3),
    ...Object.fromEntries(Object.entries(PARTITIONS).map(([key, value]) => [key, fc.constant(value)])),
  }),
);
const reserved = fc.subarray(["zone-a-1", "zone-b-0", "zone-c-2"]);

/** The pod to evict exists. */
const at = (all: Readonly<Record<"a" | "b" | "c", ZoneTraits>>): Readonly<Record<string, ZoneTraits>> => ({
  ...all,
  a: { ...all.a, pods: { ...all.a.pods, 0: {} } },
});

describe("the denial cache", () => {
  it("proves no denial that a full read would not give, after any change", () => {
    const reached = { denied: 0, readAgain: 0, allowed: 0 };
    fc.assert(
      fc.property(specs, zones, reserved, zones, reserved, (spec, first, reservedFirst, second, reservedSecond) => {
        const before = snapshot({ pod: "zone-a-0", spec, zones: at(first), reserved: reservedFirst });
        const now = snapshot({ pod: "zone-a-0", spec, zones: at(second), reserved: reservedSecond });
        const message = denyAgain(before, now);
        const { code } = VERDICTS[decideEviction(now).reason];
        if (message !== undefined) assert.notEqual(code, 200, message);
        reached[message !== undefined ? "denied" : code === 200 ? "allowed" : "readAgain"]++;
      }),
      { numRuns: 2000 },
    );
    for (const [what, count] of Object.entries(reached)) assert.ok(count > 20, `${what}: ${count}`);
  });

  it("proves a denial again, with the same message, if nothing has changed and few pods block", () => {
    const here = snapshot({ pod: "zone-a-0", zones: { b: { pods: { 0: { ready: false }, 2: null } } } });
    assert.equal(denyAgain(here, here), decideEviction(here).message);
  });

  it("is not used if too many pods would have to be read, or if no pod blocks", () => {
    const down = { pods: { 1: { ready: false }, 2: { ready: false } }, replicas: 9 };
    const many = snapshot({ pod: "zone-a-0", spec: { maxUnavailable: 5 }, zones: { a: down } });
    assert.equal(planDenialCheck("ingester-zone-a-0", findBlocking(many.zones, many, 0), MAX_READS), undefined);
    const well = snapshot({ pod: "zone-a-0" });
    assert.equal(planDenialCheck("ingester-zone-a-0", findBlocking(well.zones, well, 0), MAX_READS), undefined);
  });
});

it("missing pods are named by the ordinals that the zone wants", () => {
  const { zones: all } = snapshot({ pod: "zone-a-0", zones: { b: { statusReplicas: 5, pods: { 1: null } } } });
  const zone = all.find(({ name }) => name === "ingester-zone-b");
  assert.ok(zone);
  assert.deepEqual(missingPods(zone, zone.pods, 9), ["ingester-zone-b-1", "ingester-zone-b-3", "ingester-zone-b-4"]);
  assert.deepEqual(missingPods(zone, zone.pods, 2), ["ingester-zone-b-1", "ingester-zone-b-3"]);
  const from = { ...zone, firstOrdinal: 2 };
  assert.deepEqual(missingPods(from, zone.pods, 9), ["ingester-zone-b-3", "ingester-zone-b-4", "ingester-zone-b-5"]);
  assert.deepEqual(missingPods({ ...from, replicas: 2, status: { ...zone.status, replicas: 2 } }, zone.pods, 9), [
    "ingester-zone-b-3",
  ]);
});

it("a zone with more replicas than memory can hold is remembered by a few of its pods", () => {
  const here = snapshot({ pod: "zone-a-0" });
  const zones = here.zones.map((zone) =>
    zone.name === "ingester-zone-b" ? { ...zone, replicas: 2_147_483_647 } : zone,
  );
  const cached = findBlocking(zones, here, 0);
  assert.equal(cached.blocking.length, 100);
  const claim = planDenialCheck("ingester-zone-a-0", cached, MAX_READS);
  assert.ok(claim);
  assert.equal(
    checkDenial(claim, reread({ ...here, zones }, claim.blocking), here),
    "4 pods unknown in ingester-zone-b",
  );
});

it("a pod below the first ordinal of its zone is not missing", () => {
  const before = snapshot({ pod: "zone-a-0", zones: { b: { pods: { 0: null } } } });
  const zones = before.zones.map((zone) => (zone.name === "ingester-zone-b" ? { ...zone, firstOrdinal: 1 } : zone));
  assert.equal(denyAgain(before, { ...before, zones }), undefined);
});
