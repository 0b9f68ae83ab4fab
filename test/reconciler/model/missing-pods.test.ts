import assert from "node:assert/strict";
import { it } from "node:test";
import { missingPods } from "../../../reconciler/model/readiness.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { podObjects, statefulSetObject } from "../builders.ts";

it("missing pods are named by the ordinals that the zone wants", () => {
  const traits = { name: "ingester-zone-b", statusReplicas: 5, pods: { 1: null } };
  const zone = readZone(statefulSetObject(traits));
  const pods = podObjects(traits).map(({ metadata }) => ({ name: metadata?.name ?? "" }));
  assert.deepEqual(missingPods(zone, pods, 9), ["ingester-zone-b-1", "ingester-zone-b-3", "ingester-zone-b-4"]);
  assert.deepEqual(missingPods(zone, pods, 2), ["ingester-zone-b-1", "ingester-zone-b-3"]);
  const from = { ...zone, firstOrdinal: 2 };
  assert.deepEqual(missingPods(from, pods, 9), ["ingester-zone-b-3", "ingester-zone-b-4", "ingester-zone-b-5"]);
  assert.deepEqual(missingPods({ ...from, replicas: 2, status: { ...zone.status, replicas: 2 } }, pods, 9), [
    "ingester-zone-b-3",
  ]);
});
