/**
 * One downscale at a time in a rollout group, over all processes [4.7e, 13.5]: a Lease held by the UID of the request.
 *
 *   free --taken by a request--> held by its UID --released--> free, and for a moment it knows who was admitted
 *                                held --never released, its time is over--> free
 *
 * A StatefulSet's new annotation is stored only after the answer; until then the Lease is where the next request reads of it.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../infra/clock.ts";
import type { Call, Cluster } from "../infra/cluster.ts";
import { absent, hasCode } from "../infra/errors.ts";
import { microTime } from "../infra/lease.ts";
import { type Lease, leases } from "../infra/resources.ts";
import { formatTimestamp, parseTimestamp } from "../infra/timestamp.ts";

export interface Claim {
  readonly namespace: string;
  readonly group: string;
  readonly statefulSet: string;
  /** UID of the request. */
  readonly uid: string;
  /** Milliseconds after which others may take it, should we never release it. */
  readonly durationMs: number;
}

export interface GroupLease {
  /** The StatefulSet that was admitted last, and when. */
  readonly admitted: { readonly statefulSet: string; readonly at: string } | undefined;
  /** Frees it for the next request and, for `admitted`, says that this one was let through. Never rejects: what fails is left to its time. */
  release(admitted: boolean): Promise<void>;
}

/** The clocks of two processes may differ by that; it only delays what a crash held up. */
const CLOCK_SKEW_MS = 5000;
const RELEASE_MS = 3000;
const TRIES = 3;
const NOTES = { group: "rollout-group", holder: "statefulset", admitted: "admitted", admittedAt: "admitted-at" } as const;

/** Takes the group's Lease, or says which StatefulSet has it; rejects with what the cluster said, after 3 lost races too. */
export async function takeGroupLease(
  cluster: Cluster,
  claim: Claim,
  clock: Clock,
  call: Call,
): Promise<GroupLease | { readonly holder: string }> {
  const ref = { namespace: claim.namespace, name: nameLease(claim.group) };
  let race: unknown;
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const found = await cluster.get(leases, ref, call).catch(absent);
    const notes = found?.metadata?.annotations ?? {};
    if (found && isHeld(found, claim.uid, clock.now())) return { holder: notes[NOTES.holder] || "another" };
    const version = await writeLease(cluster, ref, claim, found, clock.now(), call).catch((error: unknown) => {
      if (!hasCode(error, "Conflict", "AlreadyExists", "NotFound")) throw error;
      race = error;
    });
    if (version === undefined) continue;
    const { [NOTES.admitted]: statefulSet, [NOTES.admittedAt]: at } = notes;
    return {
      admitted: statefulSet !== undefined && at !== undefined ? { statefulSet, at } : undefined,
      async release(admitted) {
        const annotations = admitted ? { [NOTES.admitted]: claim.statefulSet, [NOTES.admittedAt]: formatTimestamp(clock.now()) } : {};
        const freed = { metadata: { resourceVersion: version, annotations }, spec: { holderIdentity: "" } };
        await cluster.patch(leases, ref, "merge", freed, { deadlineMs: RELEASE_MS }).catch(() => {});
      },
    };
  }
  throw race;
}

/** Group names are labels, which may be no names of objects. */
function nameLease(group: string): string {
  return `zonewise-downscale-${createHash("sha256").update(group).digest("hex").slice(0, 16)}`;
}

function isHeld({ spec }: Lease, uid: string, now: number): boolean {
  const { holderIdentity, renewTime, leaseDurationSeconds = 0 } = spec ?? {};
  if (!holderIdentity || holderIdentity === uid) return false;
  const since = parseTimestamp(renewTime ?? "") ?? 0;
  return now - since < leaseDurationSeconds * 1000 + CLOCK_SKEW_MS;
}

async function writeLease(
  cluster: Cluster,
  ref: { readonly namespace: string; readonly name: string },
  { group, statefulSet, uid, durationMs }: Claim,
  found: Lease | undefined,
  now: number,
  call: Call,
): Promise<string> {
  const time = microTime(now);
  const spec = { holderIdentity: uid, leaseDurationSeconds: Math.ceil(durationMs / 1000), acquireTime: time, renewTime: time };
  const annotations = { [NOTES.group]: group, [NOTES.holder]: statefulSet };
  const resourceVersion = found?.metadata?.resourceVersion;
  if (resourceVersion !== undefined) return cluster.patch(leases, ref, "merge", { metadata: { resourceVersion, annotations }, spec }, call);
  const created = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { ...ref, annotations }, spec };
  return (await cluster.create(leases, ref.namespace, created, call)).metadata?.resourceVersion ?? "";
}
