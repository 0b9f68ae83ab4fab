/** etcd is restored from a backup: resourceVersions go back under running processes. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { acquireLease, type AcquiredLease } from "../../../infra/kubernetes/lease.ts";
import { reserved, setBudgetStage, startProcess, writeBudget } from "../budget-stage.ts";
import type { Stage } from "../stage.ts";

const LEASES = "leases.coordination.k8s.io";

async function setStage(t: TestContext): Promise<Stage> {
  const stage = await setBudgetStage();
  t.after(() => stage.close());
  writeBudget(stage);
  return stage;
}

/** Writes of other clients, one per second, such as the renewals of the nodes' Leases. */
async function live(stage: Stage, seconds: number, meanwhile: () => Promise<void> = async () => {}): Promise<void> {
  const { store } = stage.emulator;
  for (let i = 0; i < seconds; i++) {
    const metadata = { name: "somebody", namespace: "default", annotations: { at: String(stage.time.now()) } };
    const node = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata };
    if (store.get(LEASES, "default", "somebody")) store.update(LEASES, node);
    else store.create(LEASES, node);
    await stage.time.advance(1000);
    await meanwhile();
  }
}

describe("after a restore of etcd", () => {
  it("a process that decides evictions goes on by what is stored, without a restart", async (t) => {
    const stage = await setStage(t);
    const webhook = startProcess(stage);
    const backup = stage.emulator.store.version();
    await live(stage, 60);
    assert.equal(await webhook.requestDisruption("zone-a-0"), "Allowed");
    stage.emulator.store.restore(backup);
    assert.equal(await webhook.requestDisruption("zone-b-0"), "Allowed");
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-b-0"]);
  });

  describe("the lease", () => {
    const acquire = async (stage: Stage, identity: string): Promise<AcquiredLease> => {
      const options = { namespace: "default", name: "zonewise-reconciler", identity, durationMs: 15_000 };
      const taking = acquireLease(
        { cluster: stage.connect().cluster, clock: stage.clock },
        options,
        new AbortController().signal,
      );
      let lease: AcquiredLease | undefined;
      void taking.then((taken) => (lease = taken));
      for (let i = 0; i < 120 && !lease; i++) await stage.time.advance(250);
      assert.ok(lease);
      return lease;
    };

    it("stays ours if it is ours in the backup", async (t) => {
      const stage = await setStage(t);
      const lease = await acquire(stage, "one");
      const backup = stage.emulator.store.version();
      await live(stage, 30);
      stage.emulator.store.restore(backup);
      await live(stage, 30);
      assert.ok(lease.write());
      assert.equal(lease.lost.aborted, false);
      await lease.release();
    });

    it("is lost if the backup is older than it, and can be taken again", async (t) => {
      const stage = await setStage(t);
      const backup = stage.emulator.store.version();
      const lease = await acquire(stage, "one");
      stage.emulator.store.restore(backup);
      await live(stage, 12);
      assert.throws(() => lease.write(), { code: "LeaseLost" });
      await lease.release();
      const next = await acquire(stage, "two");
      assert.ok(next.write());
      await next.release();
    });

    it("of a dead process in the backup is taken after one wait", async (t) => {
      const stage = await setStage(t);
      const dead = await acquire(stage, "dead");
      const backup = stage.emulator.store.version();
      await dead.release();
      await live(stage, 20);
      stage.emulator.store.restore(backup);
      const next = await acquire(stage, "next");
      assert.ok(next.write());
      await next.release();
    });
  });
});
