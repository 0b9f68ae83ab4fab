import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decideShrink, losesNothing, othersSteady } from "../../../reconciler/scaling/steady.ts";
import { group, PREVIOUS, type ZoneTraits } from "../builders.ts";

/** One minute after pods were created that never became ready. */
const NOW = Date.parse("2026-01-01T00:01:00Z");

const why = (...others: readonly (ZoneTraits | string)[]): string | undefined => {
  const snapshot = group({}, ...others);
  const [zone] = snapshot.zones;
  assert.ok(zone);
  return othersSteady({ zone, replicas: zone.replicas }, snapshot, NOW)?.message.replaceAll("ingester-", "");
};

it("each of two zones that shrink to one size is judged for itself, whichever was judged before", () => {
  const snapshot = group({ statusReady: 2, pods: { 2: { broken: "CrashLoopBackOff" } } }, {});
  const later = NOW + 600_000;
  const judge = (i: number): string | undefined => {
    const zone = snapshot.zones[i] ?? assert.fail();
    return othersSteady({ zone, replicas: 2 }, snapshot, later)?.message;
  };
  assert.deepEqual(
    [judge(0), judge(1)],
    [undefined, "ingester-zone-b waits to shrink: ingester-zone-a-2: CrashLoopBackOff"],
  );
});

describe("while another zone", () => {
  const cases: readonly [string, ZoneTraits | string, string | undefined][] = [
    ["is well", "nnn", undefined],
    ["has a pod that was ready and no longer is", "n?nn", undefined],
    [
      "has a pod that was ready and has crash-looped since",
      { statusReady: 2, pods: { 0: { broken: "CrashLoopBackOff", restarts: 9 } } },
      undefined,
    ],
    ["is not ready by its status, though its pods are", "nnn ready 2", undefined],
    ["lacks a pod", "nn. ready 3", "zone-a waits to shrink: 1 pod of zone-b missing"],
    ["has a pod beyond its replicas in place of one", ".nnn of 3", "zone-a waits to shrink: 1 pod of zone-b missing"],
    [
      "lacks a pod, which is also missing in its status",
      "nn. counts 2",
      "zone-a waits to shrink: 1 pod of zone-b missing",
    ],
    [
      "has a pod that has never been ready: a revert may just have replaced it",
      "n!nn",
      "zone-a waits to shrink: zone-b-0: not ready",
    ],
    [
      "has a pod that has crash-looped since it was created",
      "nxnn",
      "zone-a waits to shrink: zone-b-0: CrashLoopBackOff",
    ],
    [
      "has an unschedulable pod",
      { statusReady: 2, pods: { 0: { broken: "Unschedulable" } } },
      "zone-a waits to shrink: zone-b-0: Unschedulable",
    ],
    ["has a pod beyond its replicas that never served", "nnnn! of 3 counts 4", undefined],
    [
      "has such a pod beside one that was ready and no longer is: a fault of its own keeps nobody at their size",
      "n?nnn! of 3 counts 4",
      undefined,
    ],
    [
      "has one that terminates and never served",
      { statusReplicas: 4, statusReady: 3, pods: { 3: { ready: false, terminating: true } } },
      undefined,
    ],
    [
      "has a pod beyond its replicas that has served and crash-loops",
      { statusReplicas: 4, statusReady: 3, pods: { 3: { broken: "CrashLoopBackOff", restarts: 1 } } },
      "zone-a waits to shrink: zone-b-3: CrashLoopBackOff",
    ],
    ["has no replicas and no pods", { replicas: 0 }, undefined],
    ["has no replicas, no pods and a new template", { replicas: 0, currentRevision: PREVIOUS }, undefined],
    [
      "has no replicas, and its last pod terminates",
      "n- of 0 counts 1 ready 1",
      "zone-a waits to shrink: zone-b-0: terminating",
    ],
    ["has outdated pods, all ready", "ooo", undefined],
    ["has a terminating pod", "nnn- ready 3", "zone-a waits to shrink: zone-b-2: terminating"],
    ["has outdated pods and one that is not ready", "o!oo", "zone-a waits to shrink: zone-b-0: not ready"],
    [
      "is updated, but not yet ready or recorded as current",
      { currentRevision: PREVIOUS, pods: { 0: { ready: false } } },
      "zone-a waits to shrink: zone-b-0: not ready",
    ],
    [
      "has a spec that its controller has not observed",
      { generation: 2, observedGeneration: 1 },
      "zone-a waits to shrink: the StatefulSet controller has not observed the latest spec of zone-b",
    ],
  ];
  for (const [name, other, expected] of cases)
    it(`${name}: ${expected === undefined ? "a zone may shrink" : "it waits"}`, () =>
      assert.equal(why(other), expected));

  const JUDGED: ZoneTraits = { labels: { "grafana.com/prepare-downscale": "true" } };
  const refused = "zone-a waits to shrink: statefulset zone-b has 3 non-updated replicas and 0 non-ready replicas";
  for (const [name, own, expected] of [
    ["no webhook judges it: it may shrink", {}, undefined],
    ["a webhook would refuse it: it waits", JUDGED, refused],
    [
      "its own last one is that which goes: it may shrink, so that its rollout can end",
      { ...JUDGED, pods: { 2: { revision: PREVIOUS } } },
      undefined,
    ],
    [
      "another one of its own stays: it waits",
      { ...JUDGED, pods: { 1: { revision: PREVIOUS }, 2: { revision: PREVIOUS } } },
      refused,
    ],
    [
      "the other zone may wait for this one, which is not healthy: the webhook decides",
      { ...JUDGED, statusReady: 2 },
      undefined,
    ],
  ] as const)
    it(`has outdated pods, all ready, and ${name}`, () => {
      const snapshot = group(own, { at: PREVIOUS });
      const [zone] = snapshot.zones;
      assert.ok(zone);
      assert.equal(othersSteady({ zone, replicas: 2 }, snapshot, NOW)?.message.replaceAll("ingester-", ""), expected);
    });

  it("has pods beyond its replicas that do not terminate yet: it waits", () => {
    const snapshot = group({}, { replicas: 4, statusReplicas: 4 });
    const [zone, other] = snapshot.zones;
    assert.ok(zone && other);
    const shrinking = { ...snapshot, zones: [zone, { ...other, replicas: 2 }] };
    assert.match(
      othersSteady({ zone, replicas: 2 }, shrinking, NOW)?.message ?? "",
      /zone-b has 4 pods, 2 more than it should have/,
    );
  });

  it("terminates pods, the wait keeps its dedupKey", () => {
    const causes = [{ 2: { terminating: true } }, { 1: { terminating: true } }].map((pods) => {
      const snapshot = group({}, { pods });
      const [zone] = snapshot.zones;
      return zone && othersSteady({ zone, replicas: 2 }, snapshot, NOW)?.dedupKey;
    });
    assert.equal(causes[0], causes[1]);
  });
});

describe("a zone that is to shrink to 3 replicas", () => {
  const OTHER: ZoneTraits = { replicas: 4, statusReady: 3, pods: { 3: { ready: false } } };
  const at = (minutes: number): number => Date.parse("2026-01-01T01:00:00Z") + minutes * 60_000;

  /** What holds it beside a zone whose fourth pod was never ready. */
  function whyNot(own: ZoneTraits, now = NOW, other: ZoneTraits = {}): string | undefined {
    const snapshot = group({ replicas: 4, ...own }, { ...OTHER, ...other });
    const [zone] = snapshot.zones;
    assert.ok(zone);
    const why = decideShrink({ zone, replicas: 3 }, { zones: snapshot.zones, tracked: new Map(), now }, snapshot);
    return why === "outdated" ? why : why?.reason;
  }

  const CASES: readonly [string, ZoneTraits, string | undefined, number?][] = [
    ["its fourth pod serves", {}, "OtherZoneNotReady"],
    ["its fourth pod was never ready", OTHER, undefined],
    [
      "its fourth pod crash-loops",
      { statusReady: 3, pods: { 3: { broken: "CrashLoopBackOff", restarts: 3 } } },
      undefined,
    ],
    [
      "a container of it works",
      { statusReady: 3, pods: { 3: { broken: "CrashLoopBackOff", working: true } } },
      "OtherZoneNotReady",
    ],
    ["its fourth pod is missing", { statusReplicas: 3, statusReady: 3, pods: { 3: null } }, undefined],
    ["a pod that stays was never ready", { statusReady: 3, pods: { 0: { ready: false } } }, "OtherZoneNotReady"],
  ];
  for (const [name, own, expected, now] of CASES)
    it(`${name}: ${expected === undefined ? "it shrinks" : "it waits for the other zone"}`, () =>
      assert.equal(whyNot(own, now), expected));

  const FOLLOWS = { annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-a" } };
  const MIRRORS = {
    annotations: {
      "grafana.com/rollout-mirror-replicas-from-resource-name": "t",
      "grafana.com/rollout-mirror-replicas-from-resource-kind": "T",
    },
  };
  for (const [name, own, other, expected] of [
    ["is to follow it", {}, FOLLOWS, undefined],
    ["mirrors the same resource", MIRRORS, MIRRORS, undefined],
    ["mirrors another one", {}, MIRRORS, "OtherZoneNotReady"],
    ["keeps its size", {}, {}, "OtherZoneNotReady"],
  ] as const)
    it(`waits for no pod that is to go as well and does not come up: the other zone ${name}`, () => {
      const broken = { ...other, pods: { 3: { broken: "CrashLoopBackOff", working: true } } };
      // It is of the last revision, and recorded: what it waits for may be of our doing for an hour.
      assert.deepEqual([whyNot(own, at(-1), other), whyNot(own, at(0), other)], ["OtherZoneNotReady", expected]);
      assert.deepEqual([whyNot(own, NOW, broken), whyNot(own, at(-55), broken)], ["OtherZoneNotReady", expected]);
      const missing = { ...other, statusReplicas: 3, pods: { 3: null } };
      assert.equal(whyNot(own, NOW, missing), expected);
      assert.equal(
        whyNot(own, NOW, { ...missing, statusReplicas: 4 }),
        "OtherZoneNotReady",
        "its controller does not know",
      );
    });

  it("follows leaders to the end: of a chain, no zone waits for those after it", () => {
    const [first, second, third] = ["a", "b", "c"].map((letter) => `ingester-zone-${letter}`);
    const follows = (leader = ""): ZoneTraits => ({ annotations: { "grafana.com/rollout-downscale-leader": leader } });
    const snapshot = group({ replicas: 4 }, { ...OTHER, ...follows(first) }, { ...OTHER, ...follows(second) });
    const [zone] = snapshot.zones;
    assert.ok(zone && third);
    const times = { zones: snapshot.zones, tracked: new Map<string, string>(), now: at(0) };
    assert.equal(decideShrink({ zone, replicas: 3 }, times, snapshot), undefined);
  });

  it("loses nothing once its fourth pod, which was ready, has not been for 5 minutes", () => {
    const [zone] = group({ replicas: 4, statusReady: 3, pods: { 3: { ready: false, restarts: 0 } } }).zones;
    assert.deepEqual(
      [4.9, 5].map((minutes) => zone && losesNothing(zone, 3, at(minutes))),
      [false, true],
    );
  });

  for (const order of [
    ["4", "3"],
    ["3", "4"],
  ] as const)
    it(`is judged by its own size, in the order ${order.join(", ")} of one tick: the pod that ends a zone of 4 is given up at 3 only`, () => {
      const missing = { ...MIRRORS, replicas: 4, statusReplicas: 3, pods: { 3: null } };
      const snapshot = group({ replicas: 5, ...MIRRORS }, { replicas: 5, ...MIRRORS }, missing);
      const times = { zones: snapshot.zones, tracked: new Map<string, string>(), now: NOW };
      const reasons = order.map((size) => {
        const zone = snapshot.zones[size === "4" ? 0 : 1] ?? assert.fail();
        const why = decideShrink({ zone, replicas: Number(size) }, times, snapshot);
        return [size, why === "outdated" ? why : why?.reason];
      });
      assert.deepEqual(Object.fromEntries(reasons), { 4: "OtherZoneNotReady", 3: undefined });
    });
});
