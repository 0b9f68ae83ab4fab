/**
 * Writes what was decided into the status of an object:
 *
 *   says what is stored --> no call
 *   otherwise one write, bound to the version that was read --another writer was faster--> `Conflict`: the caller reads and decides again
 */
import { hasCode, isSuperseded } from "../errors.ts";
import { isSameJson, mergePatch } from "../json.ts";
import type { Log, LogFields } from "../log.ts";
import type { Actor } from "./actor.ts";
import type { ObjectMeta, Resource } from "./resources.ts";

export interface StatusChange<S extends object> {
  /** What was read: its resourceVersion, and in an update its UID as well, are the precondition. */
  readonly object: {
    readonly namespace?: string;
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
  /** As it is stored, as far as it is ours: fields that `after` lacks are removed. */
  readonly before: S;
  readonly after: S;
  /** The right that our roles give on this status: to patch it, or to update it, which names the kind. */
  readonly by: "patch" | { readonly kind: string };
  /** True if both say the same to whoever reads them; by default, if they are the same JSON. */
  readonly isSame?: (before: S, after: S) => boolean;
}

/** `freshness` is told of the version that was written, if lists of the kind are held to it. */
export type StatusWriter = Pick<Actor, "cluster" | "fence"> & Partial<Pick<Actor, "freshness">>;

/**
 * Resolves with the object as it was stored, which may lack what its definition does not know; with undefined if the
 * status says the same already. Rejects with `Conflict` if the object has changed since it was read, `LeaseLost`, or
 * the error of the API server.
 */
export async function writeStatus<T extends { readonly metadata: ObjectMeta }, S extends object>(
  resource: Resource<T>,
  { object, before, after, by, isSame = isSameJson }: StatusChange<S>,
  { cluster, fence, freshness }: StatusWriter,
): Promise<T | undefined> {
  if (isSame(before, after)) return undefined;
  const { namespace, name, uid, resourceVersion } = object;
  const place = { ...(namespace && { namespace }), name };
  const target = { ...place, subresource: "status" } as const;
  let stored: T;
  if (by === "patch") {
    // Without the UID: a wrong one would be answered with 422 before the versions are compared.
    const body = { metadata: { resourceVersion }, status: mergePatch(before, after) };
    stored = await cluster.change(resource, { ...target, type: "merge", body }, fence.write());
  } else {
    const { group, version } = resource;
    const body = {
      apiVersion: `${group}/${version}`,
      ...by,
      metadata: { ...place, uid, resourceVersion },
      status: after,
    };
    stored = await cluster.replace(resource, { ...target, body: body as object as T }, fence.write());
  }
  freshness?.noteWritten(resource, stored.metadata.resourceVersion ?? "");
  return stored;
}

/**
 * Logs why a status was not written. After a lost race it is read and decided again, and a process that ends writes
 * nothing: these are no news.
 */
export function logUnwritten(log: Log, message: string, fields: LogFields & { readonly error: unknown }): void {
  const isNoNews = isSuperseded(fields.error) || hasCode(fields.error, "LeaseLost", "Cancelled");
  log[isNoNews ? "debug" : "warn"](message, fields);
}
