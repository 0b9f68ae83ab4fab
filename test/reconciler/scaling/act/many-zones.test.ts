/** Groups of many zones: a few lists are in flight. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { limitLists } from "../../../../infra/kubernetes/limit-lists.ts";
import type { StatefulSet } from "../../../../infra/kubernetes/resources.ts";
import { MAX_ZONES } from "../../../../reconciler/model/refused-group.ts";
import { readZone } from "../../../../reconciler/model/zone.ts";
import { gatherGroup } from "../../../../reconciler/snapshot/gather.ts";
import { statefulSetObject } from "../../../builders/zones.ts";

const ZONES = Array.from({ length: MAX_ZONES }, (_, i) => `z${String(i).padStart(2, "0")}`);

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
