/** Token buckets, by a clock that is moved by hand. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { RolloutError } from "../../../infra/errors.ts";
import { createRateLimiter, type Rate } from "../../../infra/kubernetes/rate-limit.ts";
import { skippingClock } from "../stage.ts";

const open = new AbortController().signal;
const PATIENT_MS = 3_600_000;

function limiter(rate: Rate) {
  const waits: number[] = [];
  const clock = skippingClock(waits);
  const { take } = createRateLimiter(rate, clock);
  return { take, waits, clock };
}

describe("the rate limiter", () => {
  it("lets a burst go at once, then one each 1/qps seconds", async () => {
    const { take, waits } = limiter({ qps: 5, burst: 3 });
    for (let at = 0; at < 6; at++) await take("core", PATIENT_MS, open);
    assert.deepEqual(waits.map(Math.round), [200, 200, 200]);
  });

  it("keeps one bucket a group, reused within it and independent of the others", async () => {
    const { take, waits } = limiter({ qps: 1, burst: 1 });
    for (const group of ["core", "apps", "coordination.k8s.io", "/version"]) await take(group, 0, open);
    assert.deepEqual(waits, []);
    for (const group of ["core", "apps"]) await assert.rejects(take(group, 0, open), { code: "Throttled" });
  });

  for (const rate of [
    { qps: 0, burst: 10 },
    { qps: 5, burst: 0 },
  ]) {
    it(`is unlimited at qps ${rate.qps} and burst ${rate.burst}, even for a caller who gave up`, async () => {
      const { take } = limiter(rate);
      for (let at = 0; at < 100; at++) await take("core", 0, AbortSignal.abort());
    });
  }

  it("names itself and the group when it refuses, and keeps the cause", async () => {
    const { take } = limiter({ qps: 1, burst: 1 });
    await take("apps", 0, open);
    await assert.rejects(take("apps", 500, open), (error: RolloutError) => {
      assert.equal(error.code, "Throttled");
      assert.match(error.message, /^client-side rate limiter for Kubernetes API group "apps": /);
      assert.match((error.cause as Error).message, /exceed the deadline of 500 ms/);
      return true;
    });
  });

  for (const code of ["Timeout", "Cancelled"] as const) {
    it(`says which group a wait was for that ended with ${code}`, async () => {
      const { take } = limiter({ qps: 1, burst: 1 });
      await take("apps", 0, open);
      const cause = new RolloutError(code, "enough");
      await assert.rejects(take("apps", PATIENT_MS, AbortSignal.abort(cause)), {
        code: code === "Cancelled" ? "Cancelled" : "Throttled",
        message: 'client-side rate limiter for Kubernetes API group "apps": enough',
        cause,
      });
    });
  }
});

describe("callers with a deadline", () => {
  it("who do not get a token take none from those who still have time: throughput stays at the rate", async () => {
    const workers = fc.record({
      qps: fc.integer({ min: 1, max: 50 }),
      burst: fc.integer({ min: 1, max: 20 }),
      crowd: fc.integer({ min: 2, max: 60 }),
    });
    await fc.assert(
      fc.asyncProperty(workers, async ({ qps, burst, crowd }) => {
        const period = 1000 / qps;
        const { take, clock } = limiter({ qps, burst });
        for (let at = 0; at < burst; at++) await take("core", 0, open);
        // The impatient callers come first at each step; one token per period goes to the caller that waits for it.
        for (let step = 0; step < 20; step++) {
          const start = clock.monotonic();
          for (let at = 0; at < crowd; at++)
            await assert.rejects(take("core", period / 2, open), { code: "Throttled" });
          await take("core", period * 1.001, open);
          assert.ok(clock.monotonic() - start <= period * 1.001);
        }
      }),
    );
  });
});
