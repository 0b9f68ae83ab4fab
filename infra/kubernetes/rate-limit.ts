/** Client-side rate limiting (§8.4): one token bucket per API group, off unless a rate is set. */
import type { Clock } from "../clock.ts";
import { hasCode, messageOf, RolloutError } from "../errors.ts";

export interface Rate {
  /** Requests per second and API group; 0 or less means unlimited. */
  readonly qps: number;
  /** Burst: requests that may be sent at once after a quiet time; 0 or less means unlimited. */
  readonly burst: number;
}

export type RateLimiter = ReturnType<typeof createRateLimiter>;

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Users name API groups in mirror references: groups beyond this number share a bucket. */
const MAX_BUCKETS = 100;
const SHARED = "";

export function createRateLimiter({ qps, burst }: Rate, clock: Clock) {
  const buckets = new Map<string, Bucket>();

  // Tokens may become negative: the debt is the queue. A wait that exceeds its limit takes no token, as
  // callers that cancelled would starve later ones (§8.3).
  const reserve = (group: string, limitMs: number): number | undefined => {
    const now = clock.monotonic();
    const key = buckets.has(group) || buckets.size < MAX_BUCKETS ? group : SHARED;
    const bucket = buckets.get(key) ?? { tokens: burst, filledAt: now };
    buckets.set(key, bucket);
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.filledAt) / 1000) * qps);
    bucket.filledAt = now;
    const waitMs = Math.max(0, ((1 - bucket.tokens) / qps) * 1000);
    if (waitMs > limitMs) return undefined;
    bucket.tokens -= 1;
    return waitMs;
  };

  return {
    /** Waits for a token of the group, at most `limitMs`; rejects with `Throttled`, at once, when that is too short. */
    async take(group: string, limitMs: number, signal: AbortSignal): Promise<void> {
      if (qps <= 0 || burst <= 0) return;
      const waitMs = reserve(group, limitMs);
      if (waitMs === undefined)
        throw refusal(group, new Error(`a wait for a token would exceed the deadline of ${Math.round(limitMs)} ms`));
      if (waitMs > 0) await clock.sleep(waitMs, signal);
      if (waitMs > 0 && signal.aborted) throw refusal(group, signal.reason);
    },
  };
}

function refusal(group: string, cause: unknown): RolloutError {
  const code = hasCode(cause, "Cancelled") ? "Cancelled" : "Throttled";
  return new RolloutError(code, `client-side rate limiter for Kubernetes API group "${group}": ${messageOf(cause)}`, {
    cause,
  });
}
