/**
 * Reads and writes Leases. Each write has the version that was read as its precondition: one of two concurrent writers
 * gets a `Conflict`.
 *
 * Leases have four uses, each with its own states and rules: one for the reconciler (lease.ts), one per rollout group,
 * one per budget without a status, and one for the replica of the functions that shows the totals.
 */
import { absent, hasCode, RolloutError } from "../errors.ts";
import { CLOCK_SKEW_MS, parseTimestamp } from "../timestamp.ts";
import type { Call, Cluster } from "./cluster.ts";
import { type Lease, leases } from "./resources.ts";

export interface LeaseRef {
  readonly namespace: string;
  readonly name: string;
}

export interface LeaseChange {
  /** Merged into the existing annotations. */
  readonly annotations: Readonly<Record<string, string>>;
  /** Replaces the existing labels. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The Lease is garbage-collected with this object. */
  readonly owner?: Readonly<Record<"apiVersion" | "kind" | "name" | "uid", string>> | undefined;
  /** Merged into the existing spec. */
  readonly spec?: Lease["spec"];
}

/** Undefined if the Lease does not exist. Rejects with the error of the API server. */
export async function getLease(cluster: Cluster, ref: LeaseRef, call?: Call): Promise<Lease | undefined> {
  return await cluster.get(leases, ref, call).catch(absent);
}

/** The Lease to write: the change applied to the version that was read, or a new Lease if none was. */
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

/**
 * Resolves with the stored Lease. Rejects with `Conflict` if it was written or created since it was read, or with the
 * error of the API server.
 */
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

/** The spec of a Lease that `holder` holds from `now` on for `durationMs`; both in milliseconds. */
export function holdBy(holder: string, durationMs: number, now: number) {
  const time = microTime(now);
  return {
    holderIdentity: holder,
    leaseDurationSeconds: Math.ceil(durationMs / 1000),
    acquireTime: time,
    renewTime: time,
  };
}

/** True while another process holds the Lease, by its recorded times; clocks may differ by `CLOCK_SKEW_MS`. */
export function isHeldByOther({ spec }: Lease, holder: string, now: number): boolean {
  const { holderIdentity, renewTime, leaseDurationSeconds = 0 } = spec ?? {};
  if (!holderIdentity || holderIdentity === holder) return false;
  const since = parseTimestamp(renewTime ?? "") ?? 0;
  return now - since < leaseDurationSeconds * 1000 + CLOCK_SKEW_MS;
}

/** RFC 3339 with six fractional digits, the format of MicroTime (§13.2). */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
