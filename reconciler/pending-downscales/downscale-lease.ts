/**
 * One downscale at a time in a rollout group, over all processes (§4.7e, §13.5): a Lease held by the UID of the request.
 * A StatefulSet without a group has a Lease of its own, which goes with it.
 *
 *   free --taken by a request, which notes its downscale in the same write--> held by its UID --released--> free
 *                                                                             held --its time is over--> free, the note stays
 */
import { createHash } from "node:crypto";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { isSuperseded } from "../../infra/errors.ts";
import {
  changeLease,
  getLease,
  holdBy,
  isHeldByOther,
  type LeaseChange,
  type LeaseRef,
  writeLease,
} from "../../infra/kubernetes/lease-object.ts";
import type { LeaseTools } from "../../infra/kubernetes/lease.ts";
import type { Lease } from "../../infra/kubernetes/resources.ts";
import type { Refusal } from "../downscale/decide.ts";
import { type PendingDownscales, readPending } from "../downscale/pending.ts";

export interface Claim {
  readonly namespace: string;
  /** Name of the Lease. */
  readonly lease: string;
  readonly statefulSet: string;
  /** What the Lease goes with, if it is not a group's. */
  readonly owner?: LeaseChange["owner"];
  /** Unique for whoever takes it: the UID of the request. */
  readonly uid: string;
  /** Milliseconds after which others may take it, should we never release it. */
  readonly durationMs: number;
  /** Why it is not taken at all, from what is noted so far. */
  readonly refuse?: (found: PendingDownscales) => Refusal | undefined;
  /** What is to be noted in the write that takes it, from what is noted so far. */
  readonly note: (found: PendingDownscales) => PendingDownscales;
}

export interface DownscaleLease {
  /** What was noted before. */
  readonly found: PendingDownscales;
  /** What is noted now. */
  readonly noted: PendingDownscales;
  /** Frees it for the next request and leaves this note. Never rejects: what fails is left to its time. */
  release(note: PendingDownscales): Promise<void>;
}

const RELEASE_MS = 3000;
const TRIES = 3;
const NOTES = { holder: "statefulset", pending: "zonewise/pending-downscales" } as const;
const LABEL = "zonewise/downscale";
/** Finds the Leases in which a downscale is pending. */
export const PENDING_SELECTOR = `${LABEL}=pending`;

/** Names of groups are labels, which may be no names of objects; a slash is in none of them. */
export function nameLease(group: string | undefined, statefulSet: string): string {
  const key = group || `statefulset/${statefulSet}`;
  return `zonewise-downscale-${createHash("sha256").update(key).digest("hex").slice(0, 16)}`;
}

/** What a Lease notes. */
export function pendingOf(lease: Lease | undefined): PendingDownscales {
  return readPending(lease?.metadata?.annotations?.[NOTES.pending]);
}

/** Reads what the Lease of this name notes; nothing if there is none. Rejects with what the cluster says. */
export async function gatherPending(cluster: Cluster, ref: LeaseRef, call?: Call): Promise<PendingDownscales> {
  return pendingOf(await getLease(cluster, ref, call));
}

/** Takes the Lease, or says which StatefulSet has it, or why it is refused; rejects with what the cluster said, after 3 lost races too. */
export async function takeDownscaleLease(
  { cluster, clock }: LeaseTools,
  claim: Claim,
  call: Call,
): Promise<DownscaleLease | { readonly holder: string } | { readonly refusal: Refusal }> {
  let race: unknown;
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const lease = await getLease(cluster, refOf(claim), call);
    if (lease && isHeldByOther(lease, claim.uid, clock.now())) return { holder: holderOf(lease) };
    const found = pendingOf(lease);
    const refusal = claim.refuse?.(found);
    if (refusal) return { refusal };
    const noted = claim.note(found);
    try {
      const taken = await writeLease(cluster, build(lease, claim, { note: noted, now: clock.now() }), call);
      return {
        found,
        noted,
        async release(note) {
          await writeLease(cluster, build(taken, claim, { note, now: "freed" }), { deadlineMs: RELEASE_MS }).catch(() => {});
        },
      };
    } catch (error) {
      if (!isSuperseded(error)) throw error;
      race = error;
    }
  }
  throw race;
}

/** The StatefulSet that has the Lease. */
function holderOf(lease: Lease): string {
  return lease.metadata?.annotations?.[NOTES.holder] || "another";
}

interface Change {
  readonly note: PendingDownscales;
  /** From when on it is held, milliseconds since the epoch. */
  readonly now: number | "freed";
}

/** The Lease as it is to be, held by `claim` or by nobody. */
function build(found: Lease | undefined, claim: Claim, { note, now }: Change): Lease {
  const { [LABEL]: _, ...labels } = found?.metadata?.labels ?? {};
  const isPending = Object.keys(note).length > 0;
  return changeLease(refOf(claim), found, {
    labels: { ...labels, ...(isPending && { [LABEL]: "pending" }) },
    annotations: { [NOTES.holder]: claim.statefulSet, [NOTES.pending]: JSON.stringify(note) },
    owner: claim.owner,
    spec: now === "freed" ? { holderIdentity: "" } : holdBy(claim.uid, claim.durationMs, now),
  });
}

const refOf = ({ namespace, lease }: Claim): LeaseRef => ({ namespace, name: lease });
