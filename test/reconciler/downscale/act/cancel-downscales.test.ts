import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";
import { RolloutError } from "../../../../infra/errors.ts";
import { createZone } from "../../../functions/stage.ts";
import { FROM_5, LIST, OLD, set, START } from "./concluding.ts";

describe("cancelling the preparation of a pending downscale", () => {
  it("cancels the preparation of the pods of one that never happened, also in a zone without a group, and reports it", async (t) => {
    const on = await set(t);
    const zone = createZone(on, "web", { replicas: 5, group: "" });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
    await on.conclude();
    assert.deepEqual(on.notified.toSorted(), ["DELETE web-3", "DELETE web-4"]);
    const message = `the downscale of web from 5 to 3 replicas, admitted at ${OLD}, is not in effect: the preparation of its 2 pods was cancelled`;
    assert.partialDeepStrictEqual(on.events, [
      { type: "Normal", reason: "DownscaleUndone", message, regarding: { name: "web" } },
    ]);
    assert.partialDeepStrictEqual(on.entries, [{ msg: message, level: "info" }]);
    assert.deepEqual([on.written(), on.leaseMetadata()?.labels ?? {}], [undefined, {}]);
  });

  for (const [name, traits, send, why] of [
    [
      "a pod answers with an error",
      {},
      async () => ({ status: 503, body: "secret" }),
      /: http:\/\/web-4\.ingester\.default\.svc\.x:8080\/prepare: it answered 503$/,
    ],
    [
      "the annotations were removed",
      { annotations: { "grafana.com/prepare-downscale-http-port": undefined } },
      undefined,
      /annotation is not set or empty\.$/,
    ],
  ] as const)
    it(`keeps trying every 30 s at first while ${name}`, async (t) => {
      const on = await set(t, send);
      const zone = createZone(on, "web", { replicas: 5, ...traits });
      const at = new Date(START - 100_000).toISOString();
      on.note({ web: { ...FROM_5, to: 4, prepared: { start: 4, end: 5 }, at, uid: zone.metadata?.uid ?? "" } });
      await on.conclude();
      assert.deepEqual(await on.conclude(), []);
      on.pass(30_000);
      await on.conclude();
      assert.deepEqual(
        on.events.map(({ reason }) => reason),
        ["DownscaleNotUndone", "DownscaleNotUndone"],
      );
      assert.match(on.events[0]?.message ?? "", why);
      assert.equal(on.leaseMetadata()?.labels?.["zonewise/downscale"], "pending");
    });

  it("calls the pods that were prepared, also after spec.ordinals.start became smaller", async (t) => {
    const on = await set(t);
    const { metadata, spec } = createZone(on, "web", { replicas: 7 });
    on.emulator.store.update("statefulsets.apps", { metadata, spec: { ...spec, ordinals: { start: 3 } } } as never);
    // Pods 5 to 9 were to become pods 5 to 7.
    on.note({ web: { ...FROM_5, prepared: { start: 8, end: 10 }, uid: metadata?.uid ?? "" } });
    await on.conclude();
    assert.deepEqual(on.notified.toSorted(), ["DELETE web-8", "DELETE web-9"]);
  });

  it("reaches the 8 pods of 40 that answer, whichever 32 are silent", async (t) => {
    for (const isSilent of [(pod: number) => pod > 8, (pod: number) => pod <= 32]) {
      const haste = 5;
      const told = new Set<number>();
      const on = await set(
        t,
        async (_method, url, { signal, timeoutMs = 5000 }) => {
          const pod = Number(/web-(\d+)/.exec(url)?.[1]);
          if (!isSilent(pod)) return (told.add(pod), { status: 200, body: "" });
          await setTimeout(timeoutMs / haste, undefined, { signal });
          throw new RolloutError("Timeout", "no answer");
        },
        undefined,
        undefined,
        haste,
      );
      const zone = createZone(on, "web", { replicas: 41 });
      const prepared = { start: 1, end: 41 };
      on.note({ web: { ...FROM_5, from: 41, to: 1, prepared, uid: zone.metadata?.uid ?? "" } });
      await on.conclude();
      assert.equal(told.size, 8);
      assert.equal(on.leaseMetadata()?.labels?.["zonewise/downscale"], "pending");
    }
  });

  it("tries less and less often while a pod does not answer, at last every 5 min, and reads 2 objects every 30 s in between", async (t) => {
    const on = await set(t, async () => ({ status: 503, body: "" }));
    const zone = createZone(on, "web", { replicas: 5 });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
    const hours: { tried: number; reads: number }[] = [];
    for (let hour = 0; hour < 2; hour++) {
      const before = on.events.length;
      let reads = 0;
      for (let s = 0; s < 3600; s += 5, on.pass(5000))
        reads += (await on.conclude()).filter((call) => call.startsWith("GET")).length;
      hours.push({ tried: on.events.length - before, reads });
    }
    const [first, later] = hours;
    assert.ok(first && first.tried >= 15 && first.tried <= 25, JSON.stringify(hours));
    assert.ok(later && later.tried >= 11 && later.tried <= 13 && later.reads < 120 * 3, JSON.stringify(hours));
  });

  it("keeps the record of a cancelled one until 120 s after its admission, and does nothing more for it", async (t) => {
    const on = await set(t);
    const zone = createZone(on, "web", { replicas: 5 });
    const at = new Date(START - 95_000).toISOString();
    on.note({ web: { ...FROM_5, at, since: at, uid: zone.metadata?.uid ?? "" } });
    await on.conclude();
    const notified = [...on.notified];
    const note = on.leaseMetadata()?.annotations?.["zonewise/pending-downscales"];
    assert.deepEqual(await on.conclude(), [LIST, "GET apps/v1/statefulsets object 200"]);
    assert.deepEqual(
      [JSON.parse(note ?? "").web.refused, on.leaseMetadata()?.annotations?.["zonewise/pending-downscales"]],
      [true, note],
    );
    on.pass(25_000);
    await on.conclude();
    assert.deepEqual([on.leaseMetadata()?.labels ?? {}, on.notified, on.events.length], [{}, notified, 1]);
  });
});
