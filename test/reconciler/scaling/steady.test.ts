import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { othersSteady } from "../../../reconciler/scaling/steady.ts";
import { group, PREVIOUS, type ZoneTraits } from "../builders.ts";

const why = (...others: readonly ZoneTraits[]): string | undefined => {
  const snapshot = group({}, ...others);
  const [zone] = snapshot.zones;
  assert.ok(zone);
  return othersSteady(zone, snapshot)?.message.replaceAll("ingester-", "");
};

describe("while another zone", () => {
  const cases: readonly [string, ZoneTraits, string | undefined][] = [
    ["is well", {}, undefined],
    ["is not ready, though nothing is done to it (L07)", { statusReady: 1, pods: { 0: { ready: false } } }, undefined],
    ["misses a pod, though nothing is done to it", { pods: { 2: null } }, undefined],
    ["has outdated pods, all ready", { at: PREVIOUS }, undefined],
    ["has a pod that ends", { pods: { 2: { terminating: true } } }, "zone-a waits to shrink: zone-b: zone-b-2 terminating"],
    [
      "has outdated pods and one that is not ready",
      { at: PREVIOUS, statusReady: 2, pods: { 0: { ready: false } } },
      "zone-a waits to shrink: zone-b: zone-b-0 not ready",
    ],
    [
      "is updated, but not yet ready or recorded as current",
      { currentRevision: PREVIOUS, pods: { 0: { ready: false } } },
      "zone-a waits to shrink: zone-b: zone-b-0 not ready",
    ],
    [
      "has a spec that its controller has not seen",
      { generation: 2, observedGeneration: 1 },
      "zone-a waits to shrink: the StatefulSet controller has not observed the latest spec of zone-b",
    ],
  ];
  for (const [name, other, expected] of cases)
    it(`${name}: ${expected === undefined ? "a zone may shrink" : "it waits"}`, () => assert.equal(why(other), expected));

  it("has pods beyond its replicas that do not end yet: it waits", () => {
    const snapshot = group({}, { replicas: 4, statusReplicas: 4 });
    const [zone, other] = snapshot.zones;
    assert.ok(zone && other);
    const shrinking = { ...snapshot, zones: [zone, { ...other, replicas: 2 }] };
    assert.match(othersSteady(zone, shrinking)?.message ?? "", /zone-b has 4 pods, 2 more than it is to have/);
  });

  it("ends pods, what it is told stays the same wait", () => {
    const causes = [{ 2: { terminating: true } }, { 1: { terminating: true } }].map((pods) => {
      const snapshot = group({}, { pods });
      const [zone] = snapshot.zones;
      return zone && othersSteady(zone, snapshot)?.cause;
    });
    assert.equal(causes[0], causes[1]);
  });
});
