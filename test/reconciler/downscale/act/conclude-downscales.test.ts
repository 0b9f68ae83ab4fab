/** The reconciler concludes pending downscales: its API calls, Events and log lines. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createZone } from "../../../functions/stage.ts";
import { FROM_5, LAST, LEASE, LIST, OLD, set } from "./concluding.ts";

const FROM_5_GONE = { generation: 1, from: 5, to: 3, prepared: { start: 3, end: 5 }, at: OLD, uid: "gone" };

describe("concluding pending downscales", () => {
  it("costs one list at the start, one every 30 s while nothing is pending, and no write", async (t) => {
    const on = await set(t);
    createZone(on, "web");
    const passes = [await on.conclude(), await on.conclude()];
    on.pass(29_999);
    passes.push(await on.conclude());
    on.pass(1);
    passes.push(await on.conclude());
    assert.deepEqual(passes, [[LIST], [], [], [LIST]]);
  });

  it("checks in each tick while a downscale may still happen, and writes nothing", async (t) => {
    const on = await set(t);
    const zone = createZone(on, "web", { replicas: 5 });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "", at: new Date().toISOString() } });
    for (let i = 0; i < 2; i++) assert.deepEqual(await on.conclude(), [LIST, "GET apps/v1/statefulsets object 200"]);
    assert.deepEqual(on.notified, []);
  });

  it("writes the time of one that happened, removes it, and calls no pod", async (t) => {
    const on = await set(t);
    const zone = createZone(on, "web", { replicas: 3 });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
    const calls = await on.conclude();
    assert.deepEqual(
      calls.filter((call) => !call.startsWith("GET")).map((call) => call.split(" ")[0]),
      ["PUT", "PATCH", "PUT"],
    );
    assert.equal(on.written(), OLD);
    assert.deepEqual(
      [on.leaseMetadata()?.labels ?? {}, on.leaseMetadata()?.annotations?.["zonewise/pending-downscales"]],
      [{}, "{}"],
    );
    assert.deepEqual([on.notified, on.events, await on.conclude()], [[], [], []]);
  });

  it("does not write the time again if the webhook's patch of a whole StatefulSet has written it, or a later one", async (t) => {
    for (const written of [OLD, new Date().toISOString()]) {
      const on = await set(t);
      const zone = createZone(on, "web", { replicas: 3, annotations: { [LAST]: written } });
      on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
      assert.deepEqual(
        (await on.conclude()).filter((call) => call.startsWith("PATCH")),
        [],
      );
      assert.deepEqual([on.written(), on.leaseMetadata()?.labels ?? {}], [written, {}]);
    }
  });
});

describe("concluding pending downscales", () => {
  it("tells the pods of a recreated StatefulSet, and removes it, as that of a deleted one", async (t) => {
    const on = await set(t);
    createZone(on, "web", { replicas: 5 });
    on.note({ web: { ...FROM_5, uid: "old" }, gone: { ...FROM_5, uid: "gone" } });
    await on.conclude();
    assert.deepEqual(on.notified.toSorted(), ["DELETE web-3", "DELETE web-4"]);
    assert.deepEqual([on.leaseMetadata()?.labels ?? {}, on.written()], [{}, undefined]);
  });

  it("one whose time is refused, as by an admission policy of others, holds up no other of its group", async (t) => {
    const on = await set(t);
    const [happened, refused] = [createZone(on, "web-a", { replicas: 3 }), createZone(on, "web-b", { replicas: 5 })];
    on.note({
      "web-a": { ...FROM_5, uid: happened.metadata?.uid ?? "" },
      "web-b": { ...FROM_5, uid: refused.metadata?.uid ?? "" },
    });
    const patch = { verb: "patch", resource: "statefulsets.apps", name: "web-a" } as const;
    const heal = on.emulator.faults.inject({ ...patch, effect: { kind: "forbidden" } });
    await on.conclude();
    assert.deepEqual(on.notified.toSorted(), ["DELETE web-b-3", "DELETE web-b-4"]);
    const left = (): string[] =>
      Object.keys(JSON.parse(on.leaseMetadata()?.annotations?.["zonewise/pending-downscales"] ?? "") as object);
    assert.deepEqual(left(), ["web-a"]);
    assert.deepEqual(
      on.entries.map(({ msg }) => msg).filter((text) => text.includes("could not be concluded")),
      ["a pending downscale could not be concluded"],
    );
    heal();
    on.pass(30_000);
    await on.conclude();
    assert.deepEqual([left(), on.notified.length], [[], 2]);
  });

  const UNREADABLE: readonly [what: string, note: object][] = [
    ["an entry that cannot be read, and concludes the others", { api: { ...FROM_5, uid: "u", to: "3" } }],
    ["a Lease of which nothing can be read", [] as object],
  ];
  for (const [what, unreadable] of UNREADABLE)
    it(`drops ${what}`, async (t) => {
      const on = await set(t);
      const zone = createZone(on, "web", { replicas: 3 });
      const readable = Array.isArray(unreadable) ? {} : { web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } };
      on.note((Array.isArray(unreadable) ? unreadable : { ...readable, ...unreadable }) as never);
      await on.conclude();
      const { labels = {}, annotations } = on.leaseMetadata() ?? {};
      assert.deepEqual([labels, annotations?.["zonewise/pending-downscales"]], [{}, "{}"]);
      assert.equal(on.written(), "web" in readable ? OLD : undefined);
    });

  it("does not touch a Lease that a webhook holds", async (t) => {
    const on = await set(t);
    const zone = createZone(on, "web", { replicas: 5 });
    const time = new Date().toISOString().replace("Z", "000Z");
    on.note(
      { web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } },
      { holderIdentity: "request", leaseDurationSeconds: 12, acquireTime: time, renewTime: time },
    );
    assert.ok((await on.conclude()).every((call) => call.startsWith("GET")));
    assert.deepEqual(on.notified, []);
  });

  it("begins no further Lease once pods have answered slowly: the rest follows before the next tick", async (t) => {
    // The first of each 8 answers slowly.
    const take = (): void => on.pass(on.notified.length % 8 === 1 ? 2000 : 0);
    const on: Awaited<ReturnType<typeof set>> = await set(t, async () => (take(), { status: 503, body: "" }));
    for (let i = 0; i < 20; i++) {
      const zone = createZone(on, `web-${i}`, { replicas: 5, group: `${i}` });
      on.note(
        { [`web-${i}`]: { ...FROM_5, to: 4, prepared: { start: 4, end: 5 }, uid: zone.metadata?.uid ?? "" } },
        undefined,
        `${LEASE}-${i}`,
      );
    }
    const notified: number[] = [];
    for (let tick = 0; tick < 4; tick++) {
      await on.conclude();
      notified.push(on.notified.length);
    }
    assert.deepEqual(notified, [8, 16, 20, 20]);
    assert.equal(new Set(on.notified).size, 20);
  });

  it("ends at once when it is stopped, and leaves the rest recorded", async (t) => {
    const stop = new AbortController();
    const on = await set(t, undefined, () => stop.abort());
    on.note({ web: FROM_5_GONE, api: FROM_5_GONE });
    assert.equal(
      (await on.conclude(["default"], stop.signal)).filter((call) => call.includes("statefulsets")).length,
      0,
    );
    assert.deepEqual([on.entries, on.leaseMetadata()?.labels?.["zonewise/downscale"]], [[], "pending"]);
  });

  it("calls no pod once its Lease may have passed to a webhook, also if only the answer to its own write was late", async (t) => {
    const on: Awaited<ReturnType<typeof set>> = await set(t, undefined, undefined, () => on.pass(20_000));
    const zone = createZone(on, "web", { replicas: 5 });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
    await on.conclude();
    assert.deepEqual([on.notified, on.events], [[], []]);
    assert.equal(on.leaseMetadata()?.labels?.["zonewise/downscale"], "pending");
  });

  it("logs that it may not list Leases, and continues as if a downscale were pending", async (t) => {
    const on = await set(t);
    on.emulator.faults.inject({ verb: "list", resource: "leases.coordination.k8s.io", effect: { kind: "error" } });
    await on.conclude();
    assert.equal(on.left.isPending, true);
    assert.partialDeepStrictEqual(on.entries, [
      { level: "warn", msg: "the Leases of pending downscales could not be listed" },
    ]);
  });

  it("concludes those of other namespaces than one that it may not list", async (t) => {
    const on = await set(t);
    const resource = "leases.coordination.k8s.io";
    on.emulator.faults.inject({ verb: "list", resource, namespace: "gone", effect: { kind: "forbidden" } });
    const zone = createZone(on, "web", { replicas: 3 });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
    await on.conclude(["gone", "default"]);
    assert.equal(on.written(), OLD);
  });
});

it("the time of a downscale stays in its Lease while a step of the group is under way, and moves once none is", async (t) => {
  const on = await set(t);
  const zone = createZone(on, "web", { replicas: 3 });
  on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
  const isLeftOut = ({ name }: { readonly name: string }): boolean => name === LEASE;
  for (let i = 0; i < 2; i++) assert.deepEqual(await on.conclude(["default"], undefined, isLeftOut), [LIST]);
  assert.equal(on.written(), undefined);
  await on.conclude();
  assert.equal(on.written(), OLD);
});
