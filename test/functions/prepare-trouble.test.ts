/** prepare-downscale with concurrent requests, dead processes, hanging pods and clients that disconnect. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Webhook } from "../../functions/http/webhook.ts";
import { createBackgroundTasks } from "../../functions/http/rim.ts";
import { systemClock } from "../../infra/clock.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { type PendingDownscales, readPending } from "../../reconciler/downscale/pending.ts";
import {
  callWebhook,
  createZone,
  playPods,
  reviewOf,
  type Script,
  setStage,
  type Stage,
  startPrepareDownscale,
} from "./stage.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

const [A, B] = ["ingester-zone-a", "ingester-zone-b"];

/** A process, and pods that answer by this script. */
async function play(t: TestContext, script?: Script) {
  const stage = await setStage(t);
  const pods = await playPods(t, script);
  const tasks = createBackgroundTasks();
  const tools = { cluster: stage.cluster, podHttp: pods.podHttp, clock: systemClock, tasks };
  return { ...stage, ...pods, tasks, webhook: startPrepareDownscale(tools) };
}

/** The pending downscales in the Leases. */
function pendingOf({ emulator }: Stage): PendingDownscales {
  const annotations = emulator.store
    .list("leases.coordination.k8s.io", "default")
    .map((lease) => readPending(lease.metadata.annotations?.["zonewise/pending-downscales"]));
  return Object.assign({}, ...annotations) as PendingDownscales;
}

/** Pods that were prepared and whose preparation was not cancelled. */
function leftPrepared(seen: readonly string[]): Set<string> {
  const prepared = new Set<string>();
  for (const [method, pod = ""] of seen.map((call) => call.split(" "))) {
    if (method === "POST") prepared.add(pod);
    else prepared.delete(pod);
  }
  return prepared;
}

const because = (zone: string, why: string, to = 1): string =>
  `downscale of statefulsets/${zone} in default from 3 to ${to} replicas is not allowed because ${why}`;

/** Stores a downscale to 2 replicas, whose pod is deleted. */
function shrink({ emulator: { store } }: Stage, zone: StatefulSet): void {
  const changed = store.update("statefulsets.apps", { ...zone, spec: { ...zone.spec, replicas: 2 } } as never);
  const counts = { replicas: 2, readyReplicas: 2, updatedReplicas: 2 };
  const status = { ...zone.status, ...counts, observedGeneration: changed.metadata.generation };
  store.update("statefulsets.apps", { ...changed, status });
  store.remove("pods", "default", `${zone.metadata?.name}-2`);
}

describe("prepare-downscale under errors", () => {
  it("of two concurrent zones exactly one is admitted; another group is not delayed, and the other zone follows", async (t) => {
    const held = Promise.withResolvers<number>();
    const arrived = Promise.withResolvers<void>();
    const stage = await play(t, (_method, pod) => {
      if (!pod.startsWith(A)) return 200;
      arrived.resolve();
      return held.promise;
    });
    const [a, b] = [createZone(stage, A), createZone(stage, B)];
    const unrelated = createZone(stage, "store-zone-a", { group: "store" });
    const first = callWebhook(stage.webhook, reviewOf(a, 2));
    await arrived.promise;
    const second = await callWebhook(stage.webhook, reviewOf(b, 2));
    assert.equal(second.message, because(B, `statefulset ${A} is already in process of updating replicas`, 2));
    assert.equal((await callWebhook(stage.webhook, reviewOf(unrelated, 2))).allowed, true);
    held.resolve(200);
    assert.equal((await first).allowed, true);
    // The downscale is stored, and its pod is deleted.
    shrink(stage, a);
    assert.equal((await callWebhook(stage.webhook, reviewOf(b, 2, { uid: "later" }))).allowed, true);
  });

  it("a Lease that was never released blocks no longer than its duration", async (t) => {
    const stage = await play(t);
    const [a, b] = [createZone(stage, A), createZone(stage, B)];
    const stopped = { ...systemClock, now: () => START };
    const webhook = startPrepareDownscale({ ...stage, clock: stopped, tasks: createBackgroundTasks() });
    await callWebhook(webhook, reviewOf(a, 2));
    shrink(stage, a);
    const { store } = stage.emulator;
    const [lease] = store.list("leases.coordination.k8s.io", "default");
    const left = (agoMs: number): void => {
      const renewTime = new Date(START - agoMs).toISOString().replace("Z", "000Z");
      const current = store.get("leases.coordination.k8s.io", "default", lease?.metadata.name ?? "");
      const spec = { holderIdentity: "crashed", leaseDurationSeconds: 10, acquireTime: renewTime, renewTime };
      store.update("leases.coordination.k8s.io", { ...current, spec } as never);
    };
    left(14_999);
    assert.equal((await callWebhook(webhook, reviewOf(b, 2))).allowed, false);
    left(15_000);
    assert.equal((await callWebhook(webhook, reviewOf(b, 2))).allowed, true);
  });

  it("a Lease that takes long to be freed does not make the answer late; the process stays until it is free", async (t) => {
    const stage = await play(t);
    const freed = Promise.withResolvers<never>();
    const cluster: typeof stage.cluster = {
      ...stage.cluster,
      replace: (resource, ...args) =>
        resource.plural === "leases" ? freed.promise : stage.cluster.replace(resource, ...args),
    };
    const slept: number[] = [];
    const clock = { ...systemClock, monotonic: () => 0, sleep: async (ms: number) => void slept.push(ms) };
    const work = createBackgroundTasks();
    const webhook = startPrepareDownscale({ ...stage, cluster, clock, tasks: work });
    assert.equal((await callWebhook(webhook, reviewOf(createZone(stage, A), 1), { clock })).allowed, true);
    assert.deepEqual(slept, [8900], "the answer waits until 100 ms before its deadline");
    let isSettled = false;
    const settled = work.settled().then(() => (isSettled = true));
    await new Promise(setImmediate);
    assert.equal(isSettled, false);
    freed.reject(new Error("too late"));
    await settled;
  });

  it("does not cancel its preparations after a freeze that is longer than its Lease: another process may have prepared the same pods", async (t) => {
    let later = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + later };
    const others: (boolean | undefined)[] = [];
    const stage = await play(t, async (_method, pod) => {
      if (later > 0 || !pod.endsWith("-1")) return 200;
      later = 30_000;
      others.push((await callWebhook(webhookOf(), reviewOf(zone, 1, { uid: "other" }))).allowed);
      return 503;
    });
    const zone = createZone(stage, A);
    const webhookOf = (): Webhook => startPrepareDownscale({ ...stage, clock, tasks: createBackgroundTasks() });
    others.push((await callWebhook(webhookOf(), reviewOf(zone, 1, { uid: "frozen" }))).allowed);
    assert.deepEqual(others, [true, false]);
    assert.deepEqual([...leftPrepared(stage.seen)].toSorted(), [`${A}-1`, `${A}-2`]);
    assert.equal(pendingOf(stage)[A]?.refused, undefined);
  });

  it("calls a pod that does not answer until shortly before the deadline, answers in time, and undoes the preparation after the answer", async (t) => {
    // A slow machine may need longer to call a pod at all.
    for (let timeoutMs = 500, isCalled = false; !isCalled; timeoutMs *= 2) {
      const stage = await play(t, (method) => (method === "POST" ? new Promise(() => {}) : 200));
      const answer = await callWebhook(stage.webhook, reviewOf(createZone(stage, A), 1), { timeoutMs });
      isCalled = stage.seen.filter((call) => call.startsWith("POST")).length === 2;
      if (!isCalled) continue;
      assert.match(
        answer.message ?? "",
        /failed to prepare for shutdown: ingester-zone-a-[12] at \S+: no answer in time\.$/,
      );
      await stage.tasks.settled();
      assert.deepEqual(stage.seen.slice(2).toSorted(), [`DELETE ${A}-1`, `DELETE ${A}-2`]);
      assert.deepEqual(pendingOf(stage), {});
    }
  });

  it("undoes the preparation if its caller disconnects", async (t) => {
    const gone = new AbortController();
    const stage = await play(t, (method) => {
      if (method === "DELETE") return 200;
      gone.abort();
      return new Promise(() => {});
    });
    const context = {
      path: "",
      signal: gone.signal,
      deadlineAt: systemClock.monotonic() + 9000,
      log: { warn() {} } as never,
    };
    const answer = await stage.webhook.handle(reviewOf(createZone(stage, A), 1), context);
    assert.equal(answer.allowed, false);
    assert.deepEqual(stage.seen.filter((request) => request.startsWith("DELETE")).toSorted(), [
      `DELETE ${A}-1`,
      `DELETE ${A}-2`,
    ]);
  });
});
