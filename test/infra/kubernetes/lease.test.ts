import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { connectCluster } from "../../../infra/kubernetes/connect-cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { acquireLease, type AcquiredLease } from "../../../infra/kubernetes/lease.ts";
import { leases } from "../../../infra/kubernetes/resources.ts";
import { createServerClock } from "../../../infra/server-clock.ts";
import { connectionOf } from "../../functions/connection.ts";
import { setStage, type Stage } from "../../reconciler/stage.ts";

const options = (identity: string) => ({
  namespace: "default",
  name: "zonewise-reconciler",
  identity,
  durationMs: 15_000,
});

describe("the lease", () => {
  let stage: Stage;
  beforeEach(async () => void (stage = await setStage()));
  afterEach(() => stage.close());

  const acquire = (identity: string, cluster: Cluster = stage.connect().cluster, clock: Clock = stage.clock) =>
    acquireLease({ cluster, clock }, options(identity), new AbortController().signal);
  const holder = (): unknown =>
    (
      stage.emulator.store.get("leases.coordination.k8s.io", "default", "zonewise-reconciler")?.["spec"] as {
        holderIdentity?: string;
      }
    ).holderIdentity;
  /** Moves the time on in small steps until the promise has settled. */
  async function meanwhile<T>(promise: Promise<T>, mostMs = 60_000): Promise<T> {
    let settled = false;
    void promise.finally(() => (settled = true)).catch(() => {});
    for (let ms = 0; ms < mostMs && !settled; ms += 250) await stage.time.advance(250);
    return await promise;
  }
  function held(lease: AcquiredLease | undefined): AcquiredLease {
    assert.ok(lease);
    return lease;
  }

  it("is taken when it does not exist, kept by renewing, and freed for the next at once", async () => {
    const first = held(await acquire("first"));
    assert.equal(holder(), "first");
    await stage.time.advance(120_000);
    assert.ok((first.write().deadlineMs ?? 0) > 0);
    await meanwhile(first.release());
    assert.equal(holder(), "");
    const second = held(await meanwhile(acquire("second")));
    assert.equal(holder(), "second");
    await second.release();
  });

  it("passes on only after the one who was cut off has stopped writing", async () => {
    const good = stage.connect().cluster;
    let cut = false;
    const flaky: Cluster = {
      ...good,
      replace: (...call) => (cut ? Promise.reject(new RolloutError("Unreachable", "cut off")) : good.replace(...call)),
      get: (...call) => (cut ? Promise.reject(new RolloutError("Unreachable", "cut off")) : good.get(...call)),
    };
    const first = held(await acquire("first", flaky));
    await stage.time.advance(20_000);
    cut = true;
    let taken = false;
    const second = acquire("second").then((lease) => {
      taken = true;
      return lease;
    });
    let stoppedAt: number | undefined;
    for (let ms = 0; !taken && ms < 60_000; ms += 100) {
      await stage.time.advance(100);
      if (stoppedAt !== undefined) continue;
      try {
        first.write();
        assert.equal(taken, false, "both may write");
      } catch {
        stoppedAt = ms;
      }
    }
    assert.ok(taken && stoppedAt !== undefined);
    assert.ok(first.lost.aborted);
    assert.throws(() => first.write(), { code: "LeaseLost" });
    await held(await second).release();
  });

  it("ends writes that still wait to be sent before it is freed", async () => {
    const first = held(await acquire("first"));
    const { signal } = first.write();
    let holderThen: unknown;
    signal?.addEventListener("abort", () => (holderThen = holder()));
    assert.equal(signal?.aborted, false);
    await meanwhile(first.release());
    assert.ok(signal?.aborted);
    assert.equal(holderThen, "first");
  });

  for (const delayed of ["request", "answer"] as const)
    it(`is freed only after a renewal under way has ended, whose ${delayed} is delayed: neither conflicts, nothing is lost, and it stays free`, async () => {
      const good = stage.connect().cluster;
      const arrived = Promise.withResolvers<void>();
      const letGo = Promise.withResolvers<void>();
      const written: string[] = [];
      let isDelayed = false;
      const slow: Cluster = {
        ...good,
        async replace(resource, replacement, call) {
          const { holderIdentity } = (replacement.body as { spec: { holderIdentity: string } }).spec;
          const waits = isDelayed && holderIdentity === "first";
          const wait = async (): Promise<void> => (arrived.resolve(), await letGo.promise);
          if (waits && delayed === "request") await wait();
          const stored = await good.replace(resource, replacement, call);
          if (waits && delayed === "answer") await wait();
          written.push(holderIdentity);
          return stored;
        },
      };
      const first = held(await acquire("first", slow));
      isDelayed = true;
      await meanwhile(arrived.promise);
      const releasing = first.release();
      assert.throws(() => first.write(), { code: "LeaseLost" });
      await stage.time.advance(1000);
      assert.deepEqual([holder(), written], ["first", []]);
      letGo.resolve();
      await meanwhile(releasing);
      assert.deepEqual([holder(), written, first.lost.aborted], ["", ["first", ""], false]);
      await stage.time.advance(20_000);
      assert.deepEqual([holder(), written.length], ["", 2]);
    });

  it("survives a renewal whose answer was lost", async () => {
    const first = held(await acquire("first"));
    stage.emulator.faults.inject({
      effect: { kind: "dropAfter" },
      verb: "update",
      resource: "leases.coordination.k8s.io",
      times: 1,
    });
    await stage.time.advance(60_000);
    assert.equal(first.lost.aborted, false);
    assert.equal(holder(), "first");
    await first.release();
  });

  it("lets nothing be written after the machine was suspended, whose monotonic clock stood still, until it has been renewed", async () => {
    let suspendedMs = 0;
    const lease = held(
      await acquire("first", undefined, { ...stage.clock, now: () => stage.clock.now() + suspendedMs }),
    );
    assert.ok(lease.write());
    suspendedMs = 3_600_000;
    assert.throws(() => lease.write(), { code: "LeaseLost" });
    await stage.time.advance(6000);
    assert.ok(lease.write(), "no other process has taken it: the renewal proves that");
    await lease.release();
  });

  it("lets one more write through after a suspend that stopped both clocks: its answer shows how late it is", async () => {
    const { clock: running, time, emulator } = stage;
    const suspendedAt = running.now();
    const machine: Clock = { now: () => suspendedAt, monotonic: () => suspendedAt, sleep: () => new Promise(() => {}) };
    const clock = createServerClock(machine);
    const cluster = connectCluster(connectionOf(emulator), { timeoutMs: 5000, clock: machine, onDate: clock.follow });
    const lease = held(await acquire("first", cluster, clock));
    await time.advance(3_600_000);
    assert.ok(lease.write(), "nothing shows that an hour has passed");
    await cluster.get(leases, options("first"));
    assert.throws(() => lease.write(), { code: "LeaseLost" });
  });

  it("is not held longer because the wall clock was set back", async () => {
    let setBackMs = 0;
    const lease = held(await acquire("first", undefined, { ...stage.clock, now: () => stage.clock.now() - setBackMs }));
    stage.emulator.faults.inject({ effect: { kind: "error" }, resource: "leases.coordination.k8s.io" });
    setBackMs = 3_600_000;
    await stage.time.advance(10_000);
    assert.throws(() => lease.write(), { code: "LeaseLost" });
    await lease.release();
  });

  it("is lost at once when another has taken it", async () => {
    const first = held(await acquire("first"));
    const { store } = stage.emulator;
    const lease = store.get("leases.coordination.k8s.io", "default", "zonewise-reconciler");
    assert.ok(lease);
    store.update("leases.coordination.k8s.io", {
      ...lease,
      spec: { ...(lease["spec"] as object), holderIdentity: "thief" },
    });
    await stage.time.advance(6000);
    assert.throws(() => first.write(), { code: "LeaseLost" });
    await first.release();
    assert.equal(holder(), "thief", "what is not ours is not released");
  });
});
