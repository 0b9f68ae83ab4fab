/** Pods that a StatefulSet has left behind count as another zone (§1.15): in the rollout, and for zones that shrink. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { refuseByHealth } from "../../../reconciler/downscale/decide-admission.ts";
import { orphanedZone } from "../../../reconciler/model/orphans.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import type { GroupSnapshot } from "../../../reconciler/model/zone.ts";
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { decideShrink, othersSteady } from "../../../reconciler/scaling/steady.ts";
import { group, LAST, leftBehind, PREVIOUS, type ZoneTraits } from "../builders.ts";

const B = "ingester-zone-b";
const OLD: ZoneTraits = { at: PREVIOUS, updateRevision: LAST };
const C = { name: "ingester-zone-c" };

/** A group of zones a and c, and pods of zone b. */
function around(pods: NonNullable<ZoneTraits["pods"]>, a: ZoneTraits, c: ZoneTraits): GroupSnapshot {
  const { zones, ...rest } = group(a, { ...C, ...c });
  const left = leftBehind({ name: B, pods }).map(readPod);
  return { ...rest, zones, orphans: [orphanedZone(B, left, { owner: undefined, zones })] };
}

const TABLE: readonly (readonly [string, GroupSnapshot, string])[] = [
  ["a pod that is not ready keeps pods that serve", around({ 0: { ready: false } }, {}, OLD), "hold ZoneOrphaned"],
  ["so does one that ends", around({ 0: { terminating: true } }, {}, OLD), "hold ZoneOrphaned"],
  ["so does one that was gone before its successor was made", around({ 0: null }, {}, OLD), "hold ZoneOrphaned"],
  ["pods that are all ready keep nothing", around({}, {}, OLD), "deletePods c-0 c-1"],
  [
    "pods that serve nothing are replaced whatever is left of another zone",
    around({ 0: { ready: false } }, {}, { ...OLD, pods: { 1: { broken: "CrashLoopBackOff" } } }),
    "deletePods c-1",
  ],
  [
    "a zone that is updated is recorded",
    around({ 0: { ready: false } }, {}, { currentRevision: PREVIOUS }),
    "finishZone",
  ],
  ["a group without outdated pods is settled", around({ 0: { ready: false } }, {}, {}), "settled"],
];

describe("the rollout beside pods that a StatefulSet has left behind", () => {
  for (const [name, snapshot, expected] of TABLE)
    it(`${name}: ${expected}`, () => {
      const decision = decideRollout(snapshot);
      const what =
        decision?.action === "hold"
          ? decision.reason
          : decision?.action === "deletePods"
            ? decision.pods.map((pod) => pod.name.replace("ingester-zone-", "")).join(" ")
            : "";
      assert.equal(decision ? `${decision.action} ${what}`.trim() : "settled", expected);
    });

  it("says which pod it waits for, and what helps", () => {
    const decision = decideRollout(around({ 0: { broken: "ImagePullBackOff" } }, {}, OLD));
    assert.ok(decision?.action === "hold");
    assert.equal(
      decision.message,
      "ingester-zone-b-0: ImagePullBackOff i; StatefulSet ingester-zone-b is gone: create it again, or delete its pods; ingester-zone-c waits",
    );
    assert.deepEqual(
      decision.objects.map(({ kind, name }) => `${kind} ${name}`),
      ["StatefulSet ingester-zone-c", "Pod ingester-zone-b-0"],
    );
  });

  it("deletes none of them, however broken they are and whatever their revision is", () => {
    for (const broken of ["CrashLoopBackOff", "Failed", "Unschedulable"]) {
      const decision = decideRollout(around({ 0: { broken, revision: PREVIOUS } }, OLD, OLD));
      assert.equal(decision?.action, "hold");
    }
  });
});

describe("a zone that is to shrink beside pods that a StatefulSet has left behind", () => {
  const held = (pods: NonNullable<ZoneTraits["pods"]>) => {
    const snapshot = around(pods, {}, {});
    const [zone] = snapshot.zones;
    assert.ok(zone);
    return {
      reconciler: othersSteady({ zone, replicas: 2 }, snapshot, 0)?.reason,
      webhook: refuseByHealth(snapshot, { zone, size: 2, now: 0 })?.reason,
    };
  };
  it("waits for those that are not ready, or missing", () => {
    for (const pods of [{ 0: { ready: false } }, { 1: { terminating: true } }, { 2: null }])
      assert.deepEqual(held(pods), { reconciler: "ZoneOrphaned", webhook: "OtherZoneNotReady" });
  });
  it("waits for the minimum time after a downscale that the tracker remembers of them", () => {
    const minTime = { labels: { "grafana.com/min-time-between-zones-downscale": "12h" } };
    const snapshot = around({}, minTime, {});
    const [zone] = snapshot.zones;
    assert.ok(zone);
    const tracked = new Map([[B, "2026-01-01T00:00:00Z"]]);
    const reasonAt = (now: string, group: GroupSnapshot) => {
      const why = decideShrink({ zone, replicas: 2 }, { zones: group.zones, tracked, now: Date.parse(now) }, group);
      return typeof why === "object" ? why.reason : why;
    };
    assert.equal(reasonAt("2026-01-01T11:00:00Z", snapshot), "MinTimeBetweenZones");
    assert.equal(reasonAt("2026-01-01T13:00:00Z", snapshot), undefined);
    const [own] = snapshot.orphans ?? [];
    assert.ok(own);
    const again = { ...snapshot, orphans: [{ ...own, orphaned: "replaced" as const }] };
    assert.equal(reasonAt("2026-01-01T11:00:00Z", again), undefined, "it counts as the zone of that name");
  });
  it("does not wait for those that are ready", () =>
    assert.deepEqual(held({}), { reconciler: undefined, webhook: undefined }));
});
