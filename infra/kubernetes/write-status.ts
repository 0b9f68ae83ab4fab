/**
 * Writes a decided status into an object:
 *
 *   equal to the stored status --> no call
 *   otherwise one write with the read version as precondition --another writer was faster--> `Conflict`
 *
 * After a `Conflict` the caller reads and decides again.
 */
import { hasCode, isSuperseded } from "../errors.ts";
import { isSameJson } from "../json.ts";
import type { Log, LogFields } from "../log.ts";
import type { Actor } from "./context.ts";
import type { ObjectMeta, Resource } from "./resources.ts";

export interface StatusChange<S extends object> {
  readonly kind: string;
  /** The object as it was read: its UID and resourceVersion are the precondition. */
  readonly object: {
    readonly namespace?: string;
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
  readonly before: S;
  /** Replaces the stored status. */
  readonly after: S;
  /** True if both mean the same to their readers; by default, if they are the same JSON. */
  readonly isSame?: (before: S, after: S) => boolean;
}

/**
 * Resolves with the stored object, without the fields that its definition does not know; with undefined if the status
 * was already the same. Rejects with `Conflict` if the object has changed since it was read, `LeaseLost`, or the error
 * of the API server.
 */
export async function writeStatus<T extends { readonly metadata: ObjectMeta }, S extends object>(
  resource: Resource<T>,
  { kind, object, before, after, isSame = isSameJson }: StatusChange<S>,
  { cluster, fence }: Pick<Actor, "cluster" | "fence">,
): Promise<T | undefined> {
  if (isSame(before, after)) return undefined;
  const { namespace, name, uid, resourceVersion } = object;
  const place = { ...(namespace && { namespace }), name };
  const body = {
    apiVersion: `${resource.group}/${resource.version}`,
    kind,
    metadata: { ...place, uid, resourceVersion },
    status: after,
  };
  const replacement = { ...place, subresource: "status", body: body as object as T } as const;
  return await cluster.replace(resource, replacement, fence.write());
}

/**
 * Logs why a status was not written. Two causes are ordinary: after a lost race the status is decided again, and a
 * process that ends writes nothing.
 */
export function logUnwritten(log: Log, message: string, fields: LogFields & { readonly error: unknown }): void {
  const isNoNews = isSuperseded(fields.error) || hasCode(fields.error, "LeaseLost", "Cancelled");
  log[isNoNews ? "debug" : "warn"](message, fields);
}
