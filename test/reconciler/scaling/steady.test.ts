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
    ["has a pod that was ready and no longer is (L07)", { statusReady: 2, pods: { 0: { ready: false, restarts: 0 } } }, undefined],
    [
      "has a pod that was ready and has crash-looped since",
      { statusReady: 2, pods: { 0: { broken: "CrashLoopBackOff", restarts: 9 } } },
      undefined,
    ],
    ["is not ready by its status, though its pods are", { statusReady: 2 }, undefined],
    ["lacks a pod", { pods: { 2: null } }, "zone-a waits to shrink: zone-b: 1 missing"],
    ["has a pod beyond its replicas in place of one", { pods: { 0: null, 3: {} } }, "zone-a waits to shrink: zone-b: 1 missing"],
    [
      "lacks a pod, which is also missing in its status",
      { statusReplicas: 2, pods: { 2: null } },
      "zone-a waits to shrink: zone-b: 1 missing",
    ],
    [
      "has a pod that has never been ready: a revert may just have replaced it",
      { statusReady: 2, pods: { 0: { ready: false } } },
      "zone-a waits to shrink: zone-b: zone-b-0 not ready",
    ],
    [
      "has a pod that has crash-looped since it was created",
      { statusReady: 2, pods: { 0: { broken: "CrashLoopBackOff" } } },
      "zone-a waits to shrink: zone-b: zone-b-0 CrashLoopBackOff",
    ],
    [
      "has an unschedulable pod",
      { statusReady: 2, pods: { 0: { broken: "Unschedulable" } } },
      "zone-a waits to shrink: zone-b: zone-b-0 Unschedulable",
    ],
    ["has outdated pods, all ready", { at: PREVIOUS }, undefined],
    ["has a terminating pod", { pods: { 2: { terminating: true } } }, "zone-a waits to shrink: zone-b: zone-b-2 terminating"],
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
      "has a spec that its controller has not observed",
      { generation: 2, observedGeneration: 1 },
      "zone-a waits to shrink: the StatefulSet controller has not observed the latest spec of zone-b",
    ],
  ];
  for (const [name, other, expected] of cases)
    it(`${name}: ${expected === undefined ? "a zone may shrink" : "it waits"}`, () => assert.equal(why(other), expected));

  it("has pods beyond its replicas that do not terminate yet: it waits", () => {
    const snapshot = group({}, { replicas: 4, statusReplicas: 4 });
    const [zone, other] = snapshot.zones;
    assert.ok(zone && other);
    const shrinking = { ...snapshot, zones: [zone, { ...other, replicas: 2 }] };
    assert.match(othersSteady(zone, shrinking)?.message ?? "", /zone-b has 4 pods, 2 more than it should have/);
  });

  it("terminates pods, the wait keeps its dedupKey", () => {
    const causes = [{ 2: { terminating: true } }, { 1: { terminating: true } }].map((pods) => {
      const snapshot = group({}, { pods });
      const [zone] = snapshot.zones;
      return zone && othersSteady(zone, snapshot)?.dedupKey;
    });
    assert.equal(causes[0], causes[1]);
  });
});
