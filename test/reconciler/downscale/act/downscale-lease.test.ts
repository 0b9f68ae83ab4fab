/** The Lease of a rollout group passes from one request to another: a write on an older version of it has no effect. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../../infra/clock.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import type { PendingDownscales } from "../../../../reconciler/downscale/pending.ts";
import { leasesOf, nameLease, takeDownscaleLease } from "../../../../reconciler/downscale/act/downscale-lease.ts";
import { setStage, type Stage } from "../../../functions/stage.ts";

const LATE: PendingDownscales = {
  late: { uid: "u", generation: 1, from: 3, to: 2, prepared: { start: 2, end: 3 }, at: "2026-01-01T00:00:00Z" },
};

const START = Date.parse("2026-01-01T00:00:00Z");

/** Takes the Lease with a clock that is ahead by this many milliseconds. */
function take({ cluster }: Pick<Stage, "cluster">, uid: string, aheadMs = 0) {
  const clock = { ...systemClock, now: () => START + aheadMs };
  const updatePending = (found: PendingDownscales): PendingDownscales => found;
  const claim = {
    namespace: "default",
    lease: "lease",
    statefulSet: `zone-${uid}`,
    uid,
    durationMs: 1000,
    updatePending,
  };
  return takeDownscaleLease({ cluster, clock }, claim, {});
}

function holder({ emulator }: Stage): unknown {
  const [lease] = emulator.store.list("leases.coordination.k8s.io", "default");
  return (lease?.["spec"] as { holderIdentity?: string } | undefined)?.holderIdentity;
}

async function begin(t: TestContext) {
  const stage = await setStage(t);
  const first = await take(stage, "first");
  assert.ok("release" in first);
  return { stage, first };
}

describe("the Lease of a group", () => {
  it("is held by one request, and free for the next once it is released", async (t) => {
    const { stage, first } = await begin(t);
    assert.deepEqual(await take(stage, "second"), { holder: "zone-first" });
    await first.release({});
    assert.ok("release" in (await take(stage, "second")));
  });

  it("is not released by a request that held it too long and lost it to another", async (t) => {
    const { stage, first } = await begin(t);
    const second = await take(stage, "second", 60_000);
    assert.ok("release" in second);
    await first.release(LATE);
    assert.equal(holder(stage), "second");
    assert.deepEqual(await take(stage, "third", 60_000), { holder: "zone-second" });
    await second.release({});
    const third = await take(stage, "third", 60_000);
    assert.deepEqual("release" in third && third.found, {}, "the first one's late record is not stored");
  });

  it("keeps what cannot be read, as long as nobody records other downscales", async (t) => {
    const { stage, first } = await begin(t);
    await first.release({ ...LATE, odd: "odd" as never });
    const text = (): string | undefined =>
      stage.emulator.store.list("leases.coordination.k8s.io", "default")[0]?.metadata.annotations?.[
        "zonewise/pending-downscales"
      ];
    const recorded = text();
    const second = await take(stage, "second");
    assert.ok("release" in second);
    await second.release(second.recorded);
    assert.deepEqual([text(), second.recorded], [recorded, LATE]);
    const third = await take(stage, "third");
    assert.ok("release" in third);
    await third.release({});
    assert.equal(text(), "{}");
  });

  it("is taken by exactly one of two requests that saw it free", async (t) => {
    const { stage, first } = await begin(t);
    await first.release({});
    const bothRead = Promise.withResolvers<void>();
    let reads = 0;
    const cluster: Cluster = {
      ...stage.cluster,
      async get(...args) {
        const found = await stage.cluster.get(...args);
        if (++reads === 2) bothRead.resolve();
        await bothRead.promise;
        return found;
      },
    };
    const both = await Promise.all([take({ cluster }, "second"), take({ cluster }, "third")]);
    assert.equal(both.filter((one) => "release" in one).length, 1);
  });
});

describe("the Leases of groups", () => {
  const of = (...groups: string[]) => {
    const isOf = leasesOf(new Set(groups));
    return (namespace: string, name: string) => isOf({ namespace, name });
  };

  it("are those of their namespace and name", () => {
    const isOf = of("one/ingester");
    assert.deepEqual(
      [
        isOf("one", nameLease("ingester", "a")),
        isOf("two", nameLease("ingester", "a")),
        isOf("one", nameLease("store", "a")),
      ],
      [true, false, false],
    );
  });

  it("with an empty name are none: such a group is refused", () =>
    assert.equal(of("one/")("one", nameLease("", "zone-a")), false));

  it("are none for a step that is none of a group's", () => assert.equal(of("phased")("phased", "any"), false));
});
