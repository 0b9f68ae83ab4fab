/** The reconciler concludes pending downscales: its API calls, Events and log lines. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import type { PendingDownscales } from "../../../reconciler/downscale/pending.ts";
import type { Draft } from "../../../reconciler/report/events.ts";
import { createConcluder } from "../../../reconciler/pending-downscales/conclude-downscales.ts";
import { createZone, keepingLog, setStage } from "../../functions/stage.ts";

const LAST = "grafana.com/last-downscale";
const START = Date.parse("2026-01-01T00:00:00Z");
const OLD = new Date(START - 130_000).toISOString();
const LEASE = "zonewise-downscale-x";

async function set(
  t: TestContext,
  send: PodHttp["send"] = async () => ({ status: 200, body: "secret" }),
  onGet = () => {},
  onReplaced = () => {},
) {
  const stage = await setStage(t);
  const cluster: Cluster = {
    ...stage.cluster,
    get: (...call) => (onGet(), stage.cluster.get(...call)),
    replace: (...call) => stage.cluster.replace(...call).finally(onReplaced),
  };
  const { store } = stage.emulator;
  const notified: string[] = [];
  const events: Draft[] = [];
  const { log, entries } = keepingLog();
  let later = 0;
  const clock = { ...systemClock, now: () => START + later, monotonic: () => later };
  const podHttp: PodHttp = {
    send: (method, url, request) => {
      notified.push(`${method} ${new URL(url).hostname.split(".")[0]}`);
      return send(method, url, request);
    },
  };
  const conclude = createConcluder({ cluster, clock, log, podHttp, clusterDomain: "x", zoneTracker: "tracker" });
  return {
    ...stage,
    notified,
    events,
    entries,
    pass: (ms: number) => void (later += ms),
    /** Concludes once; resolves with the API calls. */
    async look(namespaces: readonly string[] = ["default"], signal = new AbortController().signal): Promise<string[]> {
      stage.calls.length = 0;
      const recorder = { record: (drafts: readonly Draft[]) => void events.push(...drafts) };
      await conclude({ namespaces, fence: { write: () => ({}) }, recorder, signal });
      return [...stage.calls];
    },
    note(pending: PendingDownscales, spec: object = { holderIdentity: "" }, name = LEASE): void {
      store.create("leases.coordination.k8s.io", {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: {
          name,
          namespace: "default",
          labels: { "zonewise/downscale": "pending" },
          annotations: { "zonewise/pending-downscales": JSON.stringify(pending) },
        },
        spec,
      });
    },
    leaseMetadata: () => store.get("leases.coordination.k8s.io", "default", LEASE)?.metadata,
    written: () => store.get("statefulsets.apps", "default", "web")?.metadata.annotations?.[LAST],
  };
}

const LIST = "GET coordination.k8s.io/v1/leases collection 200";
const FROM_5_GONE = { generation: 1, from: 5, to: 3, lowest: 3, at: OLD, uid: "gone" };
const FROM_5 = { generation: 1, from: 5, to: 3, lowest: 3, at: OLD };

describe("concluding pending downscales", () => {
  it("costs one list at the start, one every 30 s while nothing is pending, and no write", async (t) => {
    const on = await set(t);
    createZone(on, "web");
    const looks = [await on.look(), await on.look()];
    on.pass(29_999);
    looks.push(await on.look());
    on.pass(1);
    looks.push(await on.look());
    assert.deepEqual(looks, [[LIST], [], [], [LIST]]);
  });

  it("checks in each tick while a downscale may still happen, and writes nothing", async (t) => {
    const on = await set(t);
    const zone = createZone(on, "web", { replicas: 5 });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "", at: new Date().toISOString() } });
    for (let i = 0; i < 2; i++) assert.deepEqual(await on.look(), [LIST, "GET apps/v1/statefulsets object 200"]);
    assert.deepEqual(on.notified, []);
  });

  it("writes the time of one that happened, removes it, and calls no pod", async (t) => {
    const on = await set(t);
    const zone = createZone(on, "web", { replicas: 3 });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
    const calls = await on.look();
    assert.deepEqual(
      calls.filter((call) => !call.startsWith("GET")).map((call) => call.split(" ")[0]),
      ["PUT", "PATCH", "PUT"],
    );
    assert.equal(on.written(), OLD);
    assert.deepEqual([on.leaseMetadata()?.labels ?? {}, on.leaseMetadata()?.annotations?.["zonewise/pending-downscales"]], [{}, "{}"]);
    assert.deepEqual([on.notified, on.events, await on.look()], [[], [], []]);
  });

  it("does not write the time again if the webhook's patch of a whole StatefulSet has written it, or a later one", async (t) => {
    for (const written of [OLD, new Date().toISOString()]) {
      const on = await set(t);
      const zone = createZone(on, "web", { replicas: 3, annotations: { [LAST]: written } });
      on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
      assert.deepEqual(
        (await on.look()).filter((call) => call.startsWith("PATCH")),
        [],
      );
      assert.deepEqual([on.written(), on.leaseMetadata()?.labels ?? {}], [written, {}]);
    }
  });

  it("cancels the preparation of the pods of one that never happened, also in a zone without a group, and reports it", async (t) => {
    const on = await set(t);
    const zone = createZone(on, "web", { replicas: 5, group: "" });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
    await on.look();
    assert.deepEqual(on.notified.toSorted(), ["DELETE web-3", "DELETE web-4"]);
    const message = `the downscale of web from 5 to 3 replicas, admitted at ${OLD}, is not in effect: the preparation of its 2 pods was cancelled`;
    assert.partialDeepStrictEqual(on.events, [{ type: "Normal", reason: "DownscaleUndone", message, regarding: { name: "web" } }]);
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
      on.note({ web: { ...FROM_5, to: 4, lowest: 4, at, uid: zone.metadata?.uid ?? "" } });
      await on.look();
      assert.deepEqual(await on.look(), []);
      on.pass(30_000);
      await on.look();
      assert.deepEqual(
        on.events.map(({ reason }) => reason),
        ["DownscaleNotUndone", "DownscaleNotUndone"],
      );
      assert.match(on.events[0]?.message ?? "", why);
      assert.equal(on.leaseMetadata()?.labels?.["zonewise/downscale"], "pending");
    });

  it("tries less and less often while a pod does not answer, at last every 5 min, and reads 2 objects every 30 s in between", async (t) => {
    const on = await set(t, async () => ({ status: 503, body: "" }));
    const zone = createZone(on, "web", { replicas: 5 });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
    const hours: { tried: number; reads: number }[] = [];
    for (let hour = 0; hour < 2; hour++) {
      const before = on.events.length;
      let reads = 0;
      for (let s = 0; s < 3600; s += 5, on.pass(5000)) reads += (await on.look()).filter((call) => call.startsWith("GET")).length;
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
    on.note({ web: { ...FROM_5, at, uid: zone.metadata?.uid ?? "" } });
    await on.look();
    const notified = [...on.notified];
    const note = on.leaseMetadata()?.annotations?.["zonewise/pending-downscales"];
    assert.deepEqual(await on.look(), [LIST, "GET apps/v1/statefulsets object 200"]);
    assert.deepEqual([JSON.parse(note ?? "").web.refused, on.leaseMetadata()?.annotations?.["zonewise/pending-downscales"]], [true, note]);
    on.pass(25_000);
    await on.look();
    assert.deepEqual([on.leaseMetadata()?.labels ?? {}, on.notified, on.events.length], [{}, notified, 1]);
  });

  it("removes one whose StatefulSet was deleted or recreated", async (t) => {
    const on = await set(t);
    createZone(on, "web", { replicas: 5 });
    on.note({ web: { ...FROM_5, uid: "old" }, gone: { ...FROM_5, uid: "gone" } });
    await on.look();
    assert.deepEqual([on.notified, on.leaseMetadata()?.labels ?? {}], [[], {}]);
  });

  it("does not touch a Lease that a webhook holds", async (t) => {
    const on = await set(t);
    const zone = createZone(on, "web", { replicas: 5 });
    const time = new Date().toISOString().replace("Z", "000Z");
    on.note(
      { web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } },
      { holderIdentity: "request", leaseDurationSeconds: 12, acquireTime: time, renewTime: time },
    );
    assert.ok((await on.look()).every((call) => call.startsWith("GET")));
    assert.deepEqual(on.notified, []);
  });

  it("begins no further Lease once pods have answered slowly: the rest follows before the next tick", async (t) => {
    // The first of each 8 answers slowly.
    const take = (): void => on.pass(on.notified.length % 8 === 1 ? 2000 : 0);
    const on: Awaited<ReturnType<typeof set>> = await set(t, async () => (take(), { status: 503, body: "" }));
    for (let i = 0; i < 20; i++) {
      const zone = createZone(on, `web-${i}`, { replicas: 5, group: `${i}` });
      on.note({ [`web-${i}`]: { ...FROM_5, to: 4, lowest: 4, uid: zone.metadata?.uid ?? "" } }, undefined, `${LEASE}-${i}`);
    }
    const notified: number[] = [];
    for (let tick = 0; tick < 4; tick++) {
      await on.look();
      notified.push(on.notified.length);
    }
    assert.deepEqual(notified, [8, 16, 20, 20]);
    assert.equal(new Set(on.notified).size, 20);
  });

  it("ends at once when it is stopped, and leaves the rest recorded", async (t) => {
    const stop = new AbortController();
    const on = await set(t, undefined, () => stop.abort());
    on.note({ web: FROM_5_GONE, api: FROM_5_GONE });
    assert.equal((await on.look(["default"], stop.signal)).filter((call) => call.includes("statefulsets")).length, 0);
    assert.deepEqual([on.entries, on.leaseMetadata()?.labels?.["zonewise/downscale"]], [[], "pending"]);
  });

  it("concludes 100 downscales of a Lease at a time", async (t) => {
    const on = await set(t);
    on.note(Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`web-${i}`, FROM_5_GONE])));
    const looked = async () => (await on.look()).filter((call) => call.includes("statefulsets")).length;
    assert.deepEqual([await looked(), await looked(), on.leaseMetadata()?.labels ?? {}], [200, 100, {}]);
  });

  it("calls no pod once its Lease may have passed to a webhook, also if only the answer to its own write was late", async (t) => {
    const on: Awaited<ReturnType<typeof set>> = await set(t, undefined, undefined, () => on.pass(20_000));
    const zone = createZone(on, "web", { replicas: 5 });
    on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
    await on.look();
    assert.deepEqual([on.notified, on.events], [[], []]);
    assert.equal(on.leaseMetadata()?.labels?.["zonewise/downscale"], "pending");
  });

  it("logs that it may not list Leases, and continues", async (t) => {
    const on = await set(t);
    on.emulator.faults.inject({ verb: "list", resource: "leases.coordination.k8s.io", effect: { kind: "error" } });
    await on.look();
    assert.partialDeepStrictEqual(on.entries, [{ level: "warn", msg: "the Leases of pending downscales could not be listed" }]);
  });
});
