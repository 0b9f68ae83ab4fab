/** A process that waits for the Lease asks its holder to hand over. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { type AcquiredLease, acquireLease } from "../../../infra/kubernetes/lease.ts";
import { changeLease } from "../../../infra/kubernetes/lease-object.ts";
import { SUCCESSOR, successorOf } from "../../../infra/kubernetes/lease-succession.ts";
import type { Lease } from "../../../infra/kubernetes/resources.ts";
import { setStage, type Stage } from "../../reconciler/stage.ts";

const REF = { namespace: "default", name: "zonewise-reconciler" };

describe("a waiting process", () => {
  let stage: Stage;
  let over: AbortController;
  beforeEach(async () => {
    over = new AbortController();
    stage = await setStage();
  });
  afterEach(async () => {
    over.abort();
    await stage.close();
  });

  function acquire(identity: string, signal = over.signal) {
    const { cluster, calls } = stage.connect();
    const options = { ...REF, identity, durationMs: 15_000, announces: true };
    return { calls, held: acquireLease({ cluster, clock: stage.clock }, options, signal) };
  }
  async function hold(identity: string): Promise<AcquiredLease> {
    const lease = await acquire(identity).held;
    assert.ok(lease);
    return lease;
  }
  const stored = (): Lease => stage.emulator.store.get("leases.coordination.k8s.io", "default", REF.name) as Lease;
  const successor = (): string | undefined => successorOf(stored());
  function edit(annotations: Record<string, string>): void {
    stage.emulator.store.update("leases.coordination.k8s.io", changeLease(REF, stored(), { annotations }) as never);
  }
  const writes = (calls: readonly string[]): number => calls.filter((call) => !call.startsWith("GET")).length;

  /** Moves the time on until it is so, for 30 s at most. */
  async function until(isSo: () => boolean): Promise<void> {
    for (let ms = 0; ms < 30_000 && !isSo(); ms += 100) await stage.time.advance(100);
    assert.ok(isSo());
  }

  it("announces itself once; the holder learns of it with its next renewal, keeps the Lease until it releases it, and the other has it at once", async () => {
    const first = await hold("first");
    const waiting = acquire("second");
    await until(() => successor() === "second");
    await until(() => first.awaited.aborted);
    assert.deepEqual([writes(waiting.calls), first.awaited.reason, first.lost.aborted], [1, "second", false]);
    await stage.time.advance(60_000);
    assert.ok((first.write().deadlineMs ?? 0) > 0, "a holder that is asked is still the holder");
    assert.equal(stored().spec?.holderIdentity, "first");
    await first.release();
    await until(() => stored().spec?.holderIdentity === "second");
    const second = await waiting.held;
    assert.ok(second);
    assert.deepEqual(
      [stored().spec?.holderIdentity, successor(), second.awaited.aborted],
      ["second", undefined, false],
    );
    await second.release();
  });

  it("does not lengthen the life of a Lease whose holder is dead: an announcement is no renewal", async () => {
    const dead = { ...(await hold("dead")) };
    stage.emulator.faults.inject({
      effect: { kind: "error" },
      resource: "leases.coordination.k8s.io",
      verb: "update",
      times: 1000,
    });
    await stage.time.advance(10_000);
    assert.ok(dead.lost.aborted);
    stage.emulator.faults.clear();
    const [second, third] = [acquire("second"), acquire("third")];
    await stage.time.advance(16_000);
    assert.ok(stored().spec?.holderIdentity !== "dead");
    const held = await Promise.race([second.held, third.held]);
    assert.ok(held);
    await held.release();
  });

  it("keeps silent while another waits, and speaks up once that one has the Lease", async () => {
    const first = await hold("first");
    const second = acquire("second");
    await until(() => successor() === "second");
    const stop = new AbortController();
    const third = acquire("third", stop.signal);
    await stage.time.advance(6000);
    assert.deepEqual([successor(), writes(third.calls)], ["second", 0]);
    await first.release();
    await until(() => stored().spec?.holderIdentity !== "");
    const holder = stored().spec?.holderIdentity;
    assert.ok(holder === "second" || holder === "third");
    const winner = await (holder === "second" ? second : third).held;
    assert.ok(winner);
    await until(() => winner.awaited.aborted);
    assert.equal(winner.awaited.reason, holder === "second" ? "third" : "second");
    stop.abort();
    await winner.release();
  });

  it("that died leaves an announcement to one holder only: the next one empties it and hears of nobody", async () => {
    const first = await hold("first");
    edit({ [SUCCESSOR]: "dead" });
    await until(() => first.awaited.aborted);
    await first.release();
    const second = await hold("second");
    await stage.time.advance(20_000);
    assert.deepEqual([successor(), second.awaited.aborted], [undefined, false]);
    assert.ok(second.write());
    await second.release();
  });

  it("does not keep a Lease from being released: the release is made again", async () => {
    const first = await hold("first");
    edit({ [SUCCESSOR]: "second" });
    await first.release();
    assert.equal(stored().spec?.holderIdentity, "");
  });

  it("that announces itself late overwrites no renewal and no other holder", async () => {
    const first = await hold("first");
    const { cluster } = stage.connect();
    let found: Lease | undefined;
    const slow = {
      ...cluster,
      // Between its look and its announcement the Lease passes to another.
      get: async (...call: Parameters<typeof cluster.get>) => {
        const lease = (await cluster.get(...call)) as Lease;
        if (!found && lease.spec?.holderIdentity === "first") {
          found = lease;
          const theirs = { ...stored(), spec: { ...stored().spec, holderIdentity: "thief" } };
          stage.emulator.store.update("leases.coordination.k8s.io", theirs as never);
        }
        return lease;
      },
    } as typeof cluster;
    const stop = new AbortController();
    const options = { ...REF, identity: "second", durationMs: 15_000, announces: true };
    const waiting = acquireLease({ cluster: slow, clock: stage.clock }, options, stop.signal).catch(() => undefined);
    await until(() => successor() === "second");
    assert.equal(stored().spec?.holderIdentity, "thief");
    stop.abort();
    await waiting;
    await first.release();
  });
});
