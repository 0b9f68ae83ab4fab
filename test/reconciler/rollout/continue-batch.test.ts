import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { whyLessRoom, whyStopBatch, zonesToList, type BatchView } from "../../../reconciler/rollout/continue-batch.ts";
import { group, LAST, PREVIOUS, type ZoneTraits } from "../builders.ts";
import { goneHealth } from "../../../reconciler/model/health.ts";

/** Zone a loses pods while zones b and c wait; `changes` of a, b and c since. */
function view(...changes: readonly ZoneTraits[]): BatchView {
  const judged = group({ at: PREVIOUS }, {}, {}).zones;
  const now = group({ at: PREVIOUS, ...changes[0] }, { ...changes[1] }, { ...changes[2] }).zones;
  const [zone] = judged;
  const pod = zone?.pods[1];
  assert.ok(zone && pod);
  return { judged, zone, pod, now, servesNothing: false, at: Date.parse("2026-06-01T12:00:00Z") };
}

describe("a batch of deletions", () => {
  const TABLE: readonly [string, BatchView, string | undefined][] = [
    ["nothing has changed", view(), undefined],
    ["its own deletions are visible", view({ statusReady: 2 }), undefined],
    ["its zone is paused", view({ annotations: { "grafana.com/rollout-paused": "true" } }), "zone-a was paused"],
    ["its zone has another spec", view({ generation: 2 }), "zone-a was changed"],
    [
      "its zone's bypass of gates is taken back or set",
      view({ annotations: { "zonewise.dev/bypass-gates-until": "2026-06-01T13:00:00Z" } }),
      "zone-a was changed",
    ],
    ["its zone may lose fewer pods", view({ annotations: { "rollout-max-unavailable": "1" } }), "zone-a was changed"],
    [
      "the maximum of its zone's pods is unavailable",
      view({ statusReady: 1 }),
      "zone-a has 2 unavailable pods already",
    ],
    [
      "pods of its zone are missing",
      view({ statusReady: 1, statusReplicas: 1 }),
      "zone-a has 2 unavailable pods already",
    ],
    ["its zone is being deleted", view({ terminating: true }), "zone-a is being deleted"],
    ["another zone is being deleted", view({}, {}, { terminating: true }), "zone-c is being deleted"],
    ["another zone has fewer ready pods", view({}, { statusReady: 2 }), "zone-b is no longer healthy"],
    [
      "another zone has fewer available pods",
      view({}, { minReadySeconds: 9, available: 2 }),
      "zone-b is no longer healthy",
    ],
    [
      "another zone has fewer ready pods than replicas beside one that goes",
      view({}, { statusReplicas: 4, statusReady: 2 }),
      "zone-b is no longer healthy",
    ],
    [
      "it serves nothing, and another zone has lost pods",
      { ...view({}, { statusReady: 0 }), servesNothing: true },
      undefined,
    ],
    [
      "it serves nothing, and its zone was paused",
      { ...view({ annotations: { "grafana.com/rollout-paused": "true" } }), servesNothing: true },
      "zone-a was paused",
    ],
    ["another zone lacks a pod", view({}, { statusReplicas: 2 }), "zone-b is no longer healthy"],
    [
      "another zone has another spec",
      view({}, {}, { generation: 2, observedGeneration: 1 }),
      "zone-c is no longer healthy",
    ],
    [
      "another zone was recreated under its name",
      { ...view(), judged: group({}, {}, { name: "x" }).zones },
      "the group has other zones than before",
    ],
    [
      "another zone was removed",
      { ...view(), now: group({ at: PREVIOUS }, {}).zones },
      "the group has other zones than before",
    ],
  ];
  for (const [name, given, expected] of TABLE)
    it(`${name}: ${expected ?? "it goes on"}`, () =>
      assert.equal(whyStopBatch(given)?.replaceAll("ingester-", ""), expected));

  const LESS: readonly [string, ZoneTraits["pods"], string | undefined][] = [
    ["its pods are as before", {}, undefined],
    ["one of its pods terminates", { 2: { terminating: true } }, "zone-a has 1 unavailable pods now"],
    ["one of its pods is no longer ready", { 2: { ready: false } }, "zone-a has 1 unavailable pods now"],
  ];
  for (const [name, pods, expected] of LESS)
    it(`${name} before the first deletion: ${expected ?? "it goes on"}`, () => {
      const [decided, current] = [{}, pods].map((of = {}) => group({ at: PREVIOUS, pods: of }).zones[0]);
      assert.ok(decided && current);
      assert.equal(whyLessRoom(decided, current)?.replaceAll("ingester-", ""), expected);
    });

  it("has less room once an updated pod fails in place of an outdated one, or a row of healthy pods has ended", () => {
    const [one, other] = [{ 0: { ready: false } }, { 0: {}, 2: { revision: LAST, ready: false } }].map(
      (pods) => group({ at: PREVIOUS, annotations: { "rollout-max-unavailable": "2" }, pods }).zones[0],
    );
    assert.ok(one && other);
    assert.match(whyLessRoom(one, other) ?? "", /1 unavailable pods now/);
    const annotations = { "rollout-max-unavailable": "8", "zonewise.dev/rollout-accelerate": "true" };
    const [grown, ended] = [0, 1].map((restarts) => {
      const updated = { revision: LAST, restarts };
      return group({ at: PREVIOUS, replicas: 9, annotations, pods: { 0: updated, 1: updated, 2: updated } }).zones[0];
    });
    assert.ok(grown && ended);
    assert.deepEqual([whyLessRoom(grown, grown), typeof whyLessRoom(grown, ended)], [undefined, "string"]);
  });

  it("takes a pod that is not ready although the maximum is unavailable: it is one of them", () => {
    const given = view({ statusReady: 1 });
    assert.equal(
      whyStopBatch({ ...given, pod: { ...given.pod, health: goneHealth(given.pod.health, undefined) } }),
      undefined,
    );
  });

  it("reads the pods of zones with more pods than replicas, unless the pod serves nothing", () => {
    const given = view({}, { statusReplicas: 4 });
    const names = (one: BatchView): string[] => zonesToList(one).map(({ name }) => name);
    assert.deepEqual([names(given), names({ ...given, servesNothing: true })], [["ingester-zone-b"], []]);
  });

  it("has room beside a pod of its zone that never served and is about to go", () => {
    const given = view({ statusReplicas: 5, statusReady: 2 });
    const zone = group({ at: PREVIOUS, pods: { 3: { ready: false }, 4: { ready: false, terminating: true } } })
      .zones[0];
    assert.ok(zone);
    assert.equal(whyStopBatch({ ...given, zone }), undefined);
    assert.match(whyStopBatch(given) ?? "", /3 unavailable pods already/);
  });

  it("reads the pods of zones whose status may hide a terminating one", () => {
    const { zones } = group({ at: PREVIOUS }, {}, {}, {}, {});
    const counted = [
      [0, 3],
      [3, 0],
      [2, 0],
      [1, 1],
      [1, 2],
    ].map(([updated = 0, current = 0], i) => {
      const zone = zones[i];
      assert.ok(zone);
      return { ...zone, status: { ...zone.status, updated, current, currentRevision: "old", updateRevision: "new" } };
    });
    const given = { ...view(), now: counted };
    assert.deepEqual(
      zonesToList(given).map(({ name }) => name),
      ["ingester-zone-c", "ingester-zone-d"],
    );
    const equal = counted.map((zone) => ({
      ...zone,
      status: { ...zone.status, updated: 2, current: 2, updateRevision: "old" },
    }));
    assert.equal(zonesToList({ ...given, now: equal }).length, 4, "of one revision each pod is counted twice");
  });
});
