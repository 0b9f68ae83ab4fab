/** Groups of many zones: one shrinks or takes over a size at a time, and a few lists are in flight. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { limitLists } from "../../../../infra/kubernetes/limit-lists.ts";
import type { StatefulSet } from "../../../../infra/kubernetes/resources.ts";
import { MAX_ZONES } from "../../../../reconciler/model/refused-group.ts";
import { readZone } from "../../../../reconciler/model/zone.ts";
import { gatherGroup } from "../../../../reconciler/snapshot/gather.ts";
import { statefulSetObject } from "../../builders.ts";
import { MIRROR, mirrorStage } from "../mirror-stage.ts";
import { deploy, tickOnce } from "../../stage.ts";

const ZONES = Array.from({ length: MAX_ZONES }, (_, i) => `z${String(i).padStart(2, "0")}`);

it("of zones that mirror one resource, one at a time takes it over", async (t) => {
  const on = await mirrorStage();
  t.after(() => on.stage.close());
  await on.reference(2, 2);
  deploy(on.stage, "x:1", { zones: ["a", "b", "c"], replicas: 2, annotations: MIRROR });
  await on.stage.time.advance(3000);
  await on.reference(3, 3);
  await tickOnce(on.stage, on.stage.connect().cluster);
  const replicas = on.stage.emulator.store
    .list("statefulsets.apps")
    .map(({ spec }) => (spec as { replicas: number }).replicas);
  assert.deepEqual(replicas, [3, 2, 2]);
});

it("a zone that a read lets go is read again before the write", async (t) => {
  const on = await mirrorStage();
  t.after(() => on.stage.close());
  await on.reference(1);
  deploy(on.stage, "x:1", { zones: ["a", "b", "c"], replicas: 2, annotations: MIRROR });
  await on.stage.time.advance(3000);
  // Zone b is degraded: zone a waits for it, and zone b itself may shrink.
  on.stage.emulator.store.remove("pods", "default", "ingester-zone-b-0");
  const { cluster } = on.stage.connect();
  let reads = 0;
  const breaking: Cluster = {
    ...cluster,
    async *list(resource, query, call) {
      // Between the read for zone a and that for zone b, zone c loses a pod.
      if (resource.plural === "statefulsets" && ++reads === 3)
        on.stage.emulator.store.remove("pods", "default", "ingester-zone-c-0");
      yield* cluster.list(resource, query, call);
    },
  };
  const { outcomes } = await tickOnce(on.stage, breaking);
  assert.deepEqual(
    outcomes[0]?.scalingHolds.map(({ reason }) => reason),
    ["OtherZoneNotReady", "OtherZoneNotReady", "OtherZoneNotReady"],
  );
  assert.ok(reads >= 3);
});

it("zones whose selectors have nothing in common are read by 8 lists at a time", async () => {
  let [open, most, lists] = [0, 0, 0];
  const cluster = {
    async *list() {
      lists += 1;
      most = Math.max(most, ++open);
      await new Promise(setImmediate);
      yield { items: [], resourceVersion: "1" };
      open--;
    },
  } as unknown as Cluster;
  const zones = ZONES.map((name) => {
    const object = statefulSetObject({ name });
    const selector = { matchExpressions: [{ key: "name", operator: "In", values: [name] }] };
    return readZone({ ...object, spec: { ...object.spec, selector } as NonNullable<StatefulSet["spec"]> });
  });
  const { zones: found } = await gatherGroup(zones, {
    cluster,
  });
  assert.deepEqual([found.length, lists, most], [MAX_ZONES, MAX_ZONES, 8]);
});

it("lists of all groups together are limited, and a caller that gives up waits no longer", async () => {
  let [open, most] = [0, 0];
  const waiting: (() => void)[] = [];
  const cluster = {
    async *list() {
      most = Math.max(most, ++open);
      await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        yield { items: [], resourceVersion: "1" };
        await new Promise<void>((resolve) => waiting.push(resolve));
        yield { items: [], resourceVersion: "1" };
      } finally {
        open--;
      }
    },
  } as unknown as Cluster;
  const limited = limitLists(cluster, 4);
  const read = async (signal?: AbortSignal): Promise<void> => {
    for await (const _ of limited.list({ plural: "pods" } as never, {}, signal && { signal }));
  };
  const stop = new AbortController();
  const all = Array.from({ length: 20 }, () => read());
  const given = assert.rejects(read(stop.signal), /cancelled/);
  await Promise.resolve();
  stop.abort();
  await given;
  const done = Promise.all(all);
  for (let i = 0; i < 200; i++) {
    for (const end of waiting.splice(0)) end();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await done;
  assert.deepEqual([open, most], [0, 4]);

  // One that is left before its end makes room as well.
  for (let i = 0; i < 5; i++) {
    setImmediate(() => waiting.splice(0).forEach((end) => end()));
    for await (const _ of limited.list({ plural: "pods" } as never, {})) break;
  }
  assert.equal(open, 0);
});
