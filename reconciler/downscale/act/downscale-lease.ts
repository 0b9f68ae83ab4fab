/**
 * One downscale at a time in a rollout group, over all processes (§4.7e, §13.5): a Lease held by the UID of the
 * request. A StatefulSet without a group owns a Lease, which is deleted with it.
 *
 *   free --a request takes it and records its downscale in the same write--> held by its UID --released--> free
 *                                                                            held --expired--> free, the record remains
 */
import { createHash, randomUUID } from "node:crypto";
import { type Clock, startStopwatch } from "../../../infra/clock.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { type Lease } from "../../../infra/kubernetes/resources.ts";
import { isSuperseded, RolloutError } from "../../../infra/errors.ts";
import {
  changeLease,
  getLease,
  holdBy,
  isHeldByOther,
  type LeaseChange,
  type LeaseRef,
  writeLease,
} from "../../../infra/kubernetes/lease-object.ts";
import { retryOnConflict } from "../../../infra/kubernetes/retry-on-conflict.ts";
import type { DownscaleRefusal } from "../decide-admission.ts";
import { type PendingDownscales, readPending } from "../pending.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import type { Fence } from "../../../infra/kubernetes/lease.ts";
import type { Zone } from "../../model/zone.ts";

export interface DownscaleClaim {
  readonly namespace: string;
  readonly lease: string;
  readonly statefulSet: string;
  /** The owner of a Lease that belongs to no group. */
  readonly owner?: LeaseChange["owner"];
  /** The holder: the UID of the request, or another unique name. */
  readonly uid: string;
  readonly durationMs: number;
  /** Refuses to take the Lease because of the downscales that it records. */
  readonly refuse?: (found: PendingDownscales) => DownscaleRefusal | undefined;
  /** The pending downscales to record in the write that takes the Lease; they stay as they are without it. */
  readonly updatePending?: (found: PendingDownscales) => PendingDownscales;
}

export interface DownscaleLease {
  /** The pending downscales before the write that took the Lease. */
  readonly found: PendingDownscales;
  /** The pending downscales that this write recorded. */
  readonly recorded: PendingDownscales;
  /**
   * Releases the Lease and records these pending downscales. `recorded` itself changes nothing. Never rejects: after a failed release the Lease expires.
   */
  release(pending: PendingDownscales): Promise<void>;
}

const RELEASE_MS = 3000;
/**
 * Milliseconds for which the reconciler takes the Lease, and in which its work under it must end, so that it can still
 * be released.
 */
const RECONCILER_MS = 10_000;
export const RECONCILER_WORK_MS = RECONCILER_MS - RELEASE_MS;
const ANNOTATIONS = { holder: "statefulset", pending: "zonewise/pending-downscales" } as const;
const LABEL = "zonewise/downscale";
/** Selects the Leases that record a pending downscale. */
export const PENDING_SELECTOR = `${LABEL}=pending`;

/** Hashes the name of the group, a label value, which may not be a valid object name. Label values contain no slash. */
export function nameLease(group: string | undefined, statefulSet: string): string {
  const key = group || `statefulset/${statefulSet}`;
  return `zonewise-downscale-${createHash("sha256").update(key).digest("hex").slice(0, 16)}`;
}

/** Tells which downscale Leases belong to these groups, by their keys `<namespace>/<group>`. */
export function leasesOf(groups: ReadonlySet<string>): (lease: LeaseRef) => boolean {
  const names = new Set(
    [...groups].flatMap((key) => {
      const [namespace = "", group] = key.split("/");
      return group ? `${namespace}/${nameLease(group, "")}` : [];
    }),
  );
  return ({ namespace, name }) => names.has(`${namespace}/${name}`);
}

/** The reconciler's claim, which leaves the pending downscales as they are. */
export function claimForReconciler({ namespace, name }: LeaseRef, statefulSet: string): DownscaleClaim {
  const uid = `reconciler_${randomUUID()}`;
  return { namespace, lease: name, statefulSet, uid, durationMs: RECONCILER_MS };
}

export function pendingOf(lease: Lease | undefined): PendingDownscales {
  return readPending(textOf(lease));
}

const textOf = (lease: Lease | undefined): string | undefined => lease?.metadata?.annotations?.[ANNOTATIONS.pending];
const NOTHING = JSON.stringify({});

/**
 * Reads the pending downscales of a Lease; none if the Lease does not exist. Rejects with the error of the API server.
 */
export async function gatherPending(cluster: Cluster, ref: LeaseRef, call?: Call): Promise<PendingDownscales> {
  return pendingOf(await getLease(cluster, ref, call));
}

/**
 * Takes the Lease; otherwise resolves with its holder or the refusal. Rejects with the error of the API server, also if
 * others always wrote first.
 */
export async function takeDownscaleLease(
  { cluster, clock }: { readonly cluster: Cluster; readonly clock: Clock },
  claim: DownscaleClaim,
  call: Call,
): Promise<DownscaleLease | { readonly holder: string } | { readonly refusal: DownscaleRefusal }> {
  const attempt = async () => {
    const lease = await getLease(cluster, refOf(claim), call);
    if (lease && isHeldByOther(lease, claim.uid, clock.now())) return { holder: holderOf(lease) };
    const found = pendingOf(lease);
    const refusal = claim.refuse?.(found);
    if (refusal) return { refusal };
    const recorded = claim.updatePending?.(found) ?? found;
    const change = recorded === found ? {} : { pending: recorded };
    const taken = await writeLease(cluster, build(lease, claim, { ...change, now: clock.now() }), call);
    const release = async (pending: PendingDownscales): Promise<void> => {
      const last = pending === recorded ? {} : { pending };
      await writeLease(cluster, build(taken, claim, { ...last, now: "released" }), { deadlineMs: RELEASE_MS }).catch(
        () => {},
      );
    };
    return { found, recorded, release };
  };
  return await retryOnConflict(attempt, { clock, call, when: isSuperseded });
}

function holderOf(lease: Lease): string {
  return lease.metadata?.annotations?.[ANNOTATIONS.holder] || "another";
}

interface Change {
  /** The pending downscales to record; they stay as they are without it. */
  readonly pending?: PendingDownscales;
  /** When the holder takes it, milliseconds since the epoch. */
  readonly now: number | "released";
}

function build(found: Lease | undefined, claim: DownscaleClaim, { pending, now }: Change): Lease {
  const { [LABEL]: _, ...labels } = found?.metadata?.labels ?? {};
  const text = pending ? JSON.stringify(pending) : (textOf(found) ?? NOTHING);
  const isPending = text !== NOTHING;
  return changeLease(refOf(claim), found, {
    labels: { ...labels, ...(isPending && { [LABEL]: "pending" }) },
    annotations: { [ANNOTATIONS.holder]: claim.statefulSet, [ANNOTATIONS.pending]: text },
    owner: claim.owner,
    spec: now === "released" ? { holderIdentity: "" } : holdBy(claim.uid, claim.durationMs, now),
  });
}

const refOf = ({ namespace, lease }: DownscaleClaim): LeaseRef => ({ namespace, name: lease });

// The reconciler's work under the downscale Lease of a group: meanwhile no webhook admits a downscale of it.
//
//   take the Lease --held by another--> nothing is done
//     -> work; its writes end before the Lease may pass to another -> release the Lease, unless a write without an answer may still take effect

export interface HeldLease {
  /**
   * The fence for all writes of the work: `write` throws `Conflict` once the Lease may have passed to another holder,
   * and `LeaseLost` as the outer fence does.
   */
  readonly fence: Fence;
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
