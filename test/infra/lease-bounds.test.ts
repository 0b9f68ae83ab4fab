/** How long a holder may write, on a clock that only the test moves. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../infra/errors.ts";
import { acquireLease, type AcquiredLease } from "../../infra/kubernetes/lease.ts";

const DURATION_MS = 15_000;

/** A Lease taken by a request that took `tookMs` milliseconds; nobody renews it. */
async function take(tookMs: number): Promise<{ held: AcquiredLease; pass: (ms: number) => void }> {
  let now = 1_000_000;
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    sleep: (_ms, signal) =>
      new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true })),
  };
  const cluster: Pick<Cluster, "get" | "create" | "replace" | "watch"> = {
    watch: () => new Promise(() => {}),
    get: () => Promise.reject(new RolloutError("NotFound", "no lease yet")),
    replace: (async () => ({ metadata: { resourceVersion: "2" } })) as Cluster["replace"],
    create: (async () => {
      now += tookMs;
      return { metadata: { resourceVersion: "1" } };
    }) as Cluster["create"],
  };
  const options = { namespace: "default", name: "lease", identity: "one", durationMs: DURATION_MS };
  const held = await acquireLease({ cluster: cluster as Cluster, clock }, options, new AbortController().signal);
  assert.ok(held);
  return { held, pass: (ms) => void (now += ms) };
}

describe("a holder", () => {
  it("may write for two thirds of the duration, counted from before the request was sent", async () => {
    const { held, pass } = await take(3000);
    assert.ok(
      (held.write().deadlineMs ?? Infinity) <= 7000,
      "a challenger may take the Lease at 15 s, and clocks run differently",
    );
    pass(6000);
    const { deadlineMs = Infinity } = held.write();
    assert.ok(deadlineMs > 0 && deadlineMs <= 1000, String(deadlineMs));
    pass(1000);
    assert.throws(() => held.write(), { code: "LeaseLost" });
  });

  it("never gets a bound of 0, which an API server would read as none", async () => {
    const { held, pass } = await take(0);
    pass(9999);
    for (let step = 0; step < 20; step++, pass(0.25)) {
      try {
        assert.ok((held.write().deadlineMs ?? 0) >= 1);
      } catch (error) {
        assert.equal((error as RolloutError).code, "LeaseLost");
      }
    }
  });
});
