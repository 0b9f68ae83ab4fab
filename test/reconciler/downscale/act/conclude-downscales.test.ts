/** The reconciler concludes pending downscales: its API calls, calls to pods, Events and log lines. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RolloutError } from "../../../../infra/errors.ts";
import { statefulSetObject, type ZoneTraits } from "../../../builders/zones.ts";
import { startConcluder } from "../adapter.ts";
import { HTTP, judged, LAST, NOW } from "../scene.ts";

const LEASE = "zonewise-downscale-x";
const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString();
const OLD = ago(130);
const [LIST, READ] = ["list leases", "get statefulsets"];
const fromFive = (name = "web", more: object = {}): object => ({
  [name]: { uid: `uid-${name}`, generation: 1, from: 5, to: 3, prepared: { start: 3, end: 5 }, at: OLD, ...more },
});
const zone = (replicas: number, { name = "web", ...traits }: ZoneTraits = {}) =>
  statefulSetObject(judged({ name, replicas, ...traits }));

/** The zone `web` with so many replicas, and what the Lease records. */
function start(
  replicas: number,
  pending: object = fromFive(),
  {
    traits = {},
    spec,
    ...more
  }: { traits?: ZoneTraits; spec?: object } & Partial<Parameters<typeof startConcluder>[0]> = {},
) {
  const notes = { [LEASE]: { pending, ...(spec && { spec }) } };
  return startConcluder({ now: NOW, statefulSets: [zone(replicas, traits)], notes, ...more });
}

describe("concluding pending downscales", () => {
  it("costs one list at the start, one every 30 s while nothing is pending, and no write", async () => {
    const on = start(3, {}, { notes: {} });
    const passes = [await on.conclude(), await on.conclude()];
    for (const ms of [29_999, 1]) {
      on.pass(ms);
      passes.push(await on.conclude());
    }
    assert.deepEqual(
      passes.map(({ calls }) => calls),
      [[LIST], [], [], [LIST]],
    );
  });

  it("checks in each tick while a downscale may still happen, and writes nothing", async () => {
    const on = start(5, fromFive("web", { at: ago(0) }));
    for (let i = 0; i < 2; i++) assert.deepEqual(await on.conclude(), { isLeft: true, calls: [LIST, READ] });
    assert.deepEqual(on.told, []);
  });

  it("writes the time of one that happened, removes it, and calls no pod", async () => {
    const on = start(3);
    const { calls } = await on.conclude();
    const writes = calls.filter((call) => !/^(list|get)/.test(call));
    assert.deepEqual(writes, ["replace leases", "patch statefulsets", "replace leases"]);
    assert.deepEqual([on.written("web"), on.isPending(LEASE), on.noted(LEASE)], [OLD, false, {}]);
    assert.deepEqual([on.told, on.events, (await on.conclude()).calls], [[], [], []]);
  });

  for (const written of [OLD, ago(1)])
    it(`does not write the time again if ${written === OLD ? "it is written" : "a later one is"}`, async () => {
      const on = start(3, fromFive(), { traits: { annotations: { [LAST]: written } } });
      const { calls } = await on.conclude();
      assert.ok(!calls.includes("patch statefulsets"));
      assert.deepEqual([on.written("web"), on.isPending(LEASE)], [written, false]);
    });

  it("tells the pods of one that never happened that they stay, and reports it", async () => {
    const on = start(5);
    await on.conclude();
    assert.deepEqual(on.told.toSorted(), ["DELETE web-3", "DELETE web-4"]);
    const message = `the downscale of web from 5 to 3 replicas, admitted at ${OLD}, is not in effect: the preparation of its 2 pods was cancelled`;
    assert.partialDeepStrictEqual(on.events, [
      { type: "Normal", reason: "DownscaleUndone", message, regarding: { name: "web" } },
    ]);
    assert.partialDeepStrictEqual(on.entries, [{ msg: message, level: "info" }]);
    assert.deepEqual([on.written("web"), on.isPending(LEASE)], [undefined, false]);
  });

  it("concludes that of a deleted StatefulSet beside others", async () => {
    const on = start(3, { ...fromFive(), ...fromFive("gone") });
    await on.conclude();
    assert.deepEqual([on.written("web"), on.isPending(LEASE)], [OLD, false]);
  });

  it("one whose time is refused, as by an admission policy of others, holds up no other of its group", async () => {
    let isRefused = true;
    const on = start(
      3,
      { ...fromFive(), ...fromFive("web-b") },
      {
        statefulSets: [zone(3), zone(5, { name: "web-b" })],
        through: (cluster) => ({
          ...cluster,
          patch: (...call) =>
            isRefused && call[1].name === "web"
              ? Promise.reject(new RolloutError("Forbidden", "no"))
              : cluster.patch(...call),
        }),
      },
    );
    await on.conclude();
    assert.deepEqual(on.told.toSorted(), ["DELETE web-b-3", "DELETE web-b-4"]);
    assert.deepEqual(Object.keys(on.noted(LEASE)), ["web"]);
    const failed = on.entries.map(({ msg }) => msg).filter((text) => text.includes("could not be concluded"));
    assert.deepEqual(failed, ["a pending downscale could not be concluded"]);
    isRefused = false;
    on.pass(30_000);
    await on.conclude();
    assert.deepEqual([on.noted(LEASE), on.told.length], [{}, 2]);
  });

  for (const [what, unreadable, written] of [
    ["an entry that cannot be read, and concludes the others", { ...fromFive(), api: { to: "3" } }, OLD],
    ["a Lease of which nothing can be read", [], undefined],
  ] as const)
    it(`drops ${what}`, async () => {
      const on = start(3, unreadable);
      await on.conclude();
      assert.deepEqual([on.isPending(LEASE), on.noted(LEASE), on.written("web")], [false, {}, written]);
    });

  it("does not touch a Lease that a webhook holds", async () => {
    const time = ago(0).replace("Z", "000Z");
    const spec = { holderIdentity: "request", leaseDurationSeconds: 12, acquireTime: time, renewTime: time };
    const on = start(5, fromFive(), { spec });
    const { calls } = await on.conclude();
    assert.ok(calls.every((call) => /^(list|get)/.test(call)));
    assert.deepEqual(on.told, []);
  });

  it("begins no further Lease once pods have answered slowly: the rest follows before the next tick", async () => {
    const names = Array.from({ length: 20 }, (_, i) => `web-${i}`);
    const one = { to: 4, prepared: { start: 4, end: 5 } };
    const on: ReturnType<typeof start> = start(
      5,
      {},
      {
        statefulSets: names.map((name) => zone(5, { name, group: name })),
        notes: Object.fromEntries(names.map((name) => [`${LEASE}-${name}`, { pending: fromFive(name, one) }])),
        // The first of each 8 answers slowly.
        answers: () => (on.pass(on.told.length % 8 === 1 ? 2000 : 0), 503),
      },
    );
    const told: number[] = [];
    for (let tick = 0; tick < 4; tick++) {
      await on.conclude();
      told.push(on.told.length);
    }
    assert.deepEqual([told, new Set(on.told).size], [[8, 16, 20, 20], 20]);
  });

  it("ends at once when it is stopped, and leaves the rest recorded", async () => {
    const stop = new AbortController();
    const on = start(
      5,
      { ...fromFive("gone"), ...fromFive("api") },
      {
        through: (cluster) => ({ ...cluster, get: (...call) => (stop.abort(), cluster.get(...call)) }),
      },
    );
    const { calls } = await on.conclude({ stop: stop.signal });
    assert.ok(calls.filter((call) => call === READ).length <= 1);
    assert.deepEqual([on.entries, on.isPending(LEASE)], [[], true]);
  });

  it("calls no pod once its Lease may have passed to a webhook, also if only the answer to its own write was late", async () => {
    const on = start(5, fromFive(), {
      through: (cluster, pass) => ({
        ...cluster,
        replace: (...call) => cluster.replace(...call).finally(() => pass(20_000)),
      }),
    });
    await on.conclude();
    assert.deepEqual([on.told, on.events, on.isPending(LEASE)], [[], [], true]);
  });

  it("logs that it may not list Leases of a namespace, continues as if a downscale were pending, and concludes those of others", async () => {
    const on = start(3, fromFive(), {
      through: (cluster) => ({
        ...cluster,
        list(resource, query, call) {
          if (query.namespace === "gone") throw new RolloutError("Forbidden", "no");
          return cluster.list(resource, query, call);
        },
      }),
    });
    assert.equal((await on.conclude({ namespaces: ["gone", "test"] })).isLeft, true);
    assert.equal(on.written("web"), OLD);
    const msg = "the Leases of pending downscales could not be listed";
    assert.partialDeepStrictEqual(on.entries, [{ level: "warn", msg }]);
  });

  it("leaves the time of a downscale in its Lease while a step of the group is under way, and moves it once none is", async () => {
    const on = start(3);
    const isLeftOut = ({ name }: { readonly name: string }): boolean => name === LEASE;
    for (let i = 0; i < 2; i++) assert.deepEqual((await on.conclude({ isLeftOut })).calls, [LIST]);
    assert.equal(on.written("web"), undefined);
    await on.conclude();
    assert.equal(on.written("web"), OLD);
  });
});

describe("cancelling the preparation of a pending downscale", () => {
  for (const [name, more, why] of [
    [
      "a pod answers with an error",
      { answers: () => 503 },
      /: http:\/\/web-4\.web\.test\.svc\.x:8080\/prepare: it answered 503$/,
    ],
    [
      "the annotations were removed",
      { traits: { annotations: { [`${HTTP}-port`]: "" } } },
      /annotation is not set or empty\.$/,
    ],
  ] as const)
    it(`is tried every 30 s at first while ${name}`, async () => {
      const on = start(5, fromFive("web", { to: 4, prepared: { start: 4, end: 5 }, at: ago(100) }), more);
      await on.conclude();
      assert.deepEqual((await on.conclude()).calls, []);
      on.pass(30_000);
      await on.conclude();
      const reasons = on.events.map(({ reason }) => reason);
      assert.deepEqual(reasons, ["DownscaleNotUndone", "DownscaleNotUndone"]);
      assert.match(on.events[0]?.message ?? "", why);
      assert.ok(on.isPending(LEASE));
    });

  it("is tried less and less often while a pod does not answer, at last every 5 min, and reads 2 objects every 30 s in between", async () => {
    const on = start(5, fromFive(), { answers: () => 503 });
    const hours: { tried: number; reads: number }[] = [];
    for (let hour = 0; hour < 2; hour++) {
      const before = on.events.length;
      let reads = 0;
      for (let s = 0; s < 3600; s += 5, on.pass(5000))
        reads += (await on.conclude()).calls.filter((call) => /^(list|get)/.test(call)).length;
      hours.push({ tried: on.events.length - before, reads });
    }
    const [first, later] = hours;
    assert.ok(first && first.tried >= 15 && first.tried <= 25, JSON.stringify(hours));
    assert.ok(later && later.tried >= 11 && later.tried <= 13 && later.reads < 120 * 3, JSON.stringify(hours));
  });

  it("leaves the record of a cancelled one until 120 s after its admission, and does nothing more for it", async () => {
    const on = start(5, fromFive("web", { at: ago(95), since: ago(95) }));
    await on.conclude();
    const [told, noted] = [[...on.told], on.noted(LEASE)];
    assert.deepEqual((await on.conclude()).calls, [LIST, READ]);
    assert.deepEqual([noted["web"]?.refused, on.noted(LEASE)], [true, noted]);
    on.pass(25_000);
    await on.conclude();
    assert.deepEqual([on.isPending(LEASE), on.told, on.events.length], [false, told, 1]);
  });
});
