/**
 * One downscale at a time in a rollout group, over all processes (§4.7e, §13.5): a Lease held by the UID of the request.
 * A StatefulSet without a group has a Lease of its own, which goes with it.
 *
 *   free --taken by a request, which notes its downscale in the same write--> held by its UID --released--> free
 *                                                                             held --its time is over--> free, the note stays
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../infra/clock.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { absent, isSuperseded } from "../../infra/errors.ts";
import { microTime } from "../../infra/kubernetes/lease.ts";
import { type Lease, leases } from "../../infra/kubernetes/resources.ts";
import { CLOCK_SKEW_MS } from "../../infra/server-clock.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import type { Refusal } from "../downscale/decide.ts";
import { type PendingDownscales, readPending } from "../downscale/pending.ts";

export interface Claim {
  readonly namespace: string;
  /** Name of the Lease. */
  readonly lease: string;
  readonly statefulSet: string;
  /** What the Lease goes with, if it is not a group's. */
  readonly owner?: Readonly<Record<"apiVersion" | "kind" | "name" | "uid", string>> | undefined;
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

type Ref = Pick<Claim, "namespace"> & { readonly name: string };

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
export async function gatherPending(cluster: Cluster, ref: Ref, call?: Call): Promise<PendingDownscales> {
  return pendingOf(await cluster.get(leases, ref, call).catch(absent));
}

/** Takes the Lease, or says which StatefulSet has it, or why it is refused; rejects with what the cluster said, after 3 lost races too. */
export async function takeDownscaleLease(
  cluster: Cluster,
  claim: Claim,
  clock: Clock,
  call: Call,
): Promise<DownscaleLease | { readonly holder: string } | { readonly refusal: Refusal }> {
  const ref = { namespace: claim.namespace, name: claim.lease };
  let race: unknown;
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const lease = await cluster.get(leases, ref, call).catch(absent);
    if (lease && isHeld(lease, claim.uid, clock.now())) return { holder: lease.metadata?.annotations?.[NOTES.holder] || "another" };
    const found = pendingOf(lease);
    const refusal = claim.refuse?.(found);
    if (refusal) return { refusal };
    const noted = claim.note(found);
    try {
      const taken = await writeLease(cluster, build(ref, lease, noted, claim, clock.now()), call);
      return {
        found,
        noted,
        async release(note) {
          const freed = build(ref, taken, note, undefined, clock.now());
          await writeLease(cluster, freed, { deadlineMs: RELEASE_MS }).catch(() => {});
        },
      };
    } catch (error) {
      if (!isSuperseded(error)) throw error;
      race = error;
    }
  }
  throw race;
}

function isHeld({ spec }: Lease, uid: string, now: number): boolean {
  const { holderIdentity, renewTime, leaseDurationSeconds = 0 } = spec ?? {};
  if (!holderIdentity || holderIdentity === uid) return false;
  const since = parseTimestamp(renewTime ?? "") ?? 0;
  return now - since < leaseDurationSeconds * 1000 + CLOCK_SKEW_MS;
}

/** The Lease as it is to be, held by `claim` or by nobody. */
function build(ref: Ref, found: Lease | undefined, note: PendingDownscales, claim: Claim | undefined, now: number): Lease {
  const { [LABEL]: _, ...labels } = found?.metadata?.labels ?? {};
  const isPending = Object.keys(note).length > 0;
  const time = microTime(now);
  const held = claim && { leaseDurationSeconds: Math.ceil(claim.durationMs / 1000), acquireTime: time, renewTime: time };
  return {
    ...found,
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      ...found?.metadata,
      ...ref,
      ...(claim?.owner && { ownerReferences: [claim.owner] }),
      labels: { ...labels, ...(isPending && { [LABEL]: "pending" }) },
      annotations: {
        ...found?.metadata?.annotations,
        ...(claim && { [NOTES.holder]: claim.statefulSet }),
        [NOTES.pending]: JSON.stringify(note),
      },
    },
    spec: { ...found?.spec, ...held, holderIdentity: claim?.uid ?? "" },
  };
}

/** With the resourceVersion that was read. */
async function writeLease(cluster: Cluster, lease: Lease, call: Call): Promise<Lease> {
  const { namespace = "", name = "", resourceVersion } = lease.metadata ?? {};
  return resourceVersion === undefined
    ? await cluster.create(leases, namespace, lease, call)
    : await cluster.replace(leases, { namespace, name }, lease, call);
}
