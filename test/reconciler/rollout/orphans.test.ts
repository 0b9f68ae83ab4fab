/** Pods that a StatefulSet has left behind count as another zone (§1.15): in the rollout, and for zones that shrink. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { refuseByHealth } from "../../../reconciler/downscale/decide-admission.ts";
import type { GatheredGroup } from "../../../reconciler/model/zone.ts";
import { decideShrink, othersSteady } from "../../../reconciler/scaling/steady.ts";
import { type GroupObjects, objectsOf } from "../../builders/groups.ts";
import { OLD, PREVIOUS, type ZoneTraits } from "../../builders/zones.ts";
import { decide, decideNext, readGroup } from "./adapter.ts";

const B = "ingester-zone-b";

/** A group of zones a and c, and pods of zone b. */
const around = (pods: NonNullable<ZoneTraits["pods"]>, a: ZoneTraits, c: ZoneTraits): GroupObjects =>
  objectsOf([a, { name: "ingester-zone-c", ...c }], { name: B, pods });

const UNREADY = { 0: { ready: false } };
const TABLE: readonly (readonly [string, GroupObjects, string])[] = [
  ["a pod that is not ready keeps pods that serve", around(UNREADY, {}, OLD), "hold ZoneOrphaned"],
  ["so does one that ends", around({ 0: { terminating: true } }, {}, OLD), "hold ZoneOrphaned"],
  ["so does one that was gone before its successor was made", around({ 0: null }, {}, OLD), "hold ZoneOrphaned"],
  ["pods that are all ready keep nothing", around({}, {}, OLD), "delete c-0 c-1"],
  [
    "pods that serve nothing are replaced whatever is left of another zone",
    around(UNREADY, {}, { ...OLD, pods: { 1: { broken: "CrashLoopBackOff" } } }),
    "delete c-1",
  ],
  ["a zone that is updated is recorded", around(UNREADY, {}, { currentRevision: PREVIOUS }), "finish c"],
  ["a group without outdated pods is settled", around(UNREADY, {}, {}), "settled"],
  ...["CrashLoopBackOff", "Failed", "Unschedulable"].map((broken): [string, GroupObjects, string] => [
    `a pod that is left is not deleted, however old it is, and broken by ${broken}`,
    around({ 0: { broken, revision: PREVIOUS } }, OLD, OLD),
    "hold ZoneOrphaned",
  ]),
];

describe("the rollout beside pods that a StatefulSet has left behind", () => {
  for (const [name, objects, expected] of TABLE)
    it(`${name}: ${expected}`, () => assert.equal(decide(objects), expected));

  it("says which pod it waits for, and what helps", () => {
    const decision = decideNext(around({ 0: { broken: "ImagePullBackOff" } }, {}, OLD));
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
});

describe("a zone that is to shrink beside pods that a StatefulSet has left behind", () => {
  const held = (pods: NonNullable<ZoneTraits["pods"]>) => {
    const snapshot = readGroup(around(pods, {}, {}));
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
    const snapshot = readGroup(around({}, minTime, {}));
    const [zone] = snapshot.zones;
    assert.ok(zone);
    const tracked = new Map([[B, "2026-01-01T00:00:00Z"]]);
    const reasonAt = (now: string, group: GatheredGroup) => {
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
