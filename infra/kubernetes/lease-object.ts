/**
 * How Leases are read and written, whatever they stand for: only as the version that was read, so that of two writers one gets `Conflict`.
 *
 * Three users, each with its own state and rules: the reconciler's (lease.ts), one per rollout group, and one per budget whose definition has no status.
 */
import { absent, hasCode, RolloutError } from "../errors.ts";
import { CLOCK_SKEW_MS } from "../server-clock.ts";
import { parseTimestamp } from "../timestamp.ts";
import type { Call, Cluster } from "./cluster.ts";
import { type Lease, leases } from "./resources.ts";

export interface LeaseRef {
  readonly namespace: string;
  readonly name: string;
}

export interface LeaseChange {
  /** Beside those that it has. */
  readonly annotations: Readonly<Record<string, string>>;
  /** In place of those that it has. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The Lease is collected with it. */
  readonly owner?: Readonly<Record<"apiVersion" | "kind" | "name" | "uid", string>> | undefined;
  /** Beside what it has. */
  readonly spec?: Lease["spec"];
}

/** Undefined if there is none. Rejects with what the cluster says. */
export async function getLease(cluster: Cluster, ref: LeaseRef, call?: Call): Promise<Lease | undefined> {
  return await cluster.get(leases, ref, call).catch(absent);
}

/** The Lease as it is to be written: a new one if none was found, otherwise the version that was found. */
export function changeLease({ namespace, name }: LeaseRef, found: Lease | undefined, change: LeaseChange): Lease {
  const { annotations, labels, owner, spec } = change;
  return {
    ...found,
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      ...found?.metadata,
      namespace,
      name,
      annotations: { ...found?.metadata?.annotations, ...annotations },
      ...(labels && { labels }),
      ...(owner && { ownerReferences: [owner] }),
    },
    ...(spec && { spec: { ...found?.spec, ...spec } }),
  };
}

/** Resolves with the Lease as it is stored. Rejects with `Conflict` if anybody has written or created it since it was read, or what the cluster says. */
export async function writeLease(cluster: Cluster, lease: Lease, call: Call): Promise<Lease> {
  const { namespace = "", name = "", resourceVersion } = lease.metadata ?? {};
  if (resourceVersion !== undefined) return await cluster.replace(leases, { namespace, name, body: lease }, call);
  try {
    return await cluster.create(leases, { namespace, body: lease }, call);
  } catch (error) {
    if (!hasCode(error, "AlreadyExists")) throw error;
    throw new RolloutError("Conflict", error.message, { cause: error });
  }
}

/** What the spec says while `holder` has the Lease, from `now` on and for so long. */
export function holdBy(holder: string, durationMs: number, now: number) {
  const time = microTime(now);
  return { holderIdentity: holder, leaseDurationSeconds: Math.ceil(durationMs / 1000), acquireTime: time, renewTime: time };
}

/** True while another than `holder` has it, by the times that are written, judged by a clock that may differ by `CLOCK_SKEW_MS`. */
export function isHeldByOther({ spec }: Lease, holder: string, now: number): boolean {
  const { holderIdentity, renewTime, leaseDurationSeconds = 0 } = spec ?? {};
  if (!holderIdentity || holderIdentity === holder) return false;
  const since = parseTimestamp(renewTime ?? "") ?? 0;
  return now - since < leaseDurationSeconds * 1000 + CLOCK_SKEW_MS;
}

/** RFC 3339 with six fractional digits, as MicroTime wants it (§13.2). */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
