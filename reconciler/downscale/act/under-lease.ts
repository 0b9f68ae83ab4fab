/**
 * The reconciler's work under the downscale Lease of a group: meanwhile no webhook admits a downscale of it.
 *
 *   take the Lease --held by another--> nothing is done
 *     -> work; its writes end before the Lease may pass to another -> release the Lease, unless a write without an answer may still take effect
 */
import { startStopwatch } from "../../../infra/clock.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import type { Fence } from "../../../infra/kubernetes/lease.ts";
import type { PendingDownscales } from "../pending.ts";
import type { Zone } from "../../model/zone.ts";
import { claimForReconciler, nameLease, RECONCILER_WORK_MS, takeDownscaleLease } from "./downscale-lease.ts";

export interface HeldLease {
  /**
   * The fence for all writes of the work: `write` throws `Conflict` once the Lease may have passed to another holder,
   * and `LeaseLost` as the outer fence does.
   */
  readonly fence: Fence;
  /** The pending downscales of the group. */
  readonly pending: PendingDownscales;
  /**
   * Leaves the Lease to expire: a write without an answer may still take effect, but no longer than the Lease lasts.
   */
  readonly leaveToExpire: () => void;
}

/**
 * Resolves with the result of the work, or with the holder of the Lease. Rejects with the error of the work or of the
 * API server.
 */
export async function underDownscaleLease<T>(
  { namespace, group, name }: Pick<Zone, "namespace" | "group" | "name">,
  actor: Pick<Context, "cluster" | "fence" | "clock">,
  work: (held: HeldLease) => Promise<T>,
): Promise<{ readonly result: T } | { readonly holder: string }> {
  const claim = claimForReconciler({ namespace, name: nameLease(group, name) }, name);
  // Starts before the write, as its answer may be late.
  const elapsed = startStopwatch(actor.clock);
  const lease = await takeDownscaleLease(actor, claim, actor.fence.write());
  if (!("release" in lease)) return { holder: "holder" in lease ? lease.holder : "another" };
  let expires = false;
  try {
    const fence = boundFence(actor.fence, () => RECONCILER_WORK_MS - elapsed());
    return { result: await work({ fence, pending: lease.found, leaveToExpire: () => (expires = true) }) };
  } finally {
    if (!expires) await lease.release(lease.recorded);
  }
}

function boundFence(fence: Fence, remainingMs: () => number): Fence {
  return {
    write() {
      const { deadlineMs = Infinity, ...call } = fence.write();
      const leftMs = Math.floor(remainingMs());
      if (leftMs <= 0)
        throw new RolloutError(
          "Conflict",
          "the last read took too long: a downscale of another zone may be admitted again",
        );
      return { ...call, deadlineMs: Math.min(deadlineMs, leftMs) };
    },
  };
}
