/** Generations, and the steps of a deletion. */
import { isDeepStrictEqual } from "node:util";
import { conflict } from "./api-error.ts";
import { dig, listOf, numberOf, put, timestamp, type Fields, type KubeObject, type Metadata } from "./objects.ts";

export type RemoveOptions = Partial<Record<"uid" | "resourceVersion" | "propagationPolicy", string>> & {
  gracePeriodSeconds?: number;
};

/** The part of an object whose changes metadata.generation counts. Binding a pod to a node does not count. */
export function specOf(object: KubeObject): Fields {
  const { metadata: _, status: __, apiVersion: ___, kind, ...rest } = object;
  return kind === "Pod" ? put(rest, ["spec", "nodeName"], undefined) : rest;
}

/**
 * Whether a deleted object has no finalizers and no grace period left. A Namespace also has finalizers in its
 * spec.
 */
export function isRemovable({ kind, metadata, ...rest }: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers = [] } = metadata;
  const remaining = kind === "Namespace" ? [...finalizers, ...listOf(dig(rest, "spec", "finalizers"))] : finalizers;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && remaining.length === 0;
}

/** Throws Conflict. */
export function checkDeletePreconditions(
  { apiVersion, kind, metadata }: KubeObject,
  { uid, resourceVersion }: RemoveOptions,
): void {
  const check = (field: string, expected: string | undefined, actual: string): void => {
    if (expected === undefined || expected === actual) return;
    const change = field === "UID" ? "deleted and then recreated" : "modified";
    const mismatch = `the ${field} in the precondition (${expected}) does not match the ${field} in record (${actual})`;
    // rest.BeforeDelete names the kind where other errors name the resource.
    const named = [kind, ...apiVersion.split("/").slice(0, -1)].join(".");
    throw conflict(named, metadata.name, `${mismatch}. The object might have been ${change}`);
  };
  check("UID", uid, metadata.uid);
  check("ResourceVersion", resourceVersion, metadata.resourceVersion);
}

/**
 * Seconds, by the rules of the pod strategy. It is 0 for other objects, and for pods that never ran or have
 * ended.
 */
function gracePeriodOf(object: KubeObject, requested: number | undefined): number {
  const phase = dig(object, "status", "phase");
  if (object.kind !== "Pod" || !dig(object, "spec", "nodeName") || phase === "Succeeded" || phase === "Failed")
    return 0;
  const seconds = requested ?? numberOf(dig(object, "spec", "terminationGracePeriodSeconds")) ?? 30;
  return seconds < 0 ? 1 : seconds;
}

/**
 * Returns the object marked for deletion, or `current` itself if nothing changes. A later delete can only
 * shorten the grace period. `now` in ms since the epoch.
 */
export function markDeleted(current: KubeObject, options: RemoveOptions, now: number): KubeObject {
  const {
    finalizers: before = [],
    deletionTimestamp,
    deletionGracePeriodSeconds: running = Infinity,
    ...rest
  } = current.metadata;
  // Dates end after 8.64e15 ms: bound the grace period.
  const grace = Math.min(running, 1e9, gracePeriodOf(current, options.gracePeriodSeconds));
  // Events have no dependents.
  const finalizers = finalizersAfter(before, current.kind === "Event" ? undefined : options.propagationPolicy);
  if (grace === running && isDeepStrictEqual(finalizers, before)) return current;
  const start = deletionTimestamp === undefined ? now : Date.parse(deletionTimestamp) - running * 1000;
  const metadata: Metadata = {
    ...rest,
    ...(finalizers.length > 0 && { finalizers }),
    // rest.BeforeDelete increments the generation when a deletion begins.
    ...(rest.generation !== undefined && { generation: rest.generation + (deletionTimestamp === undefined ? 1 : 0) }),
    deletionTimestamp: timestamp(start + grace * 1000),
    deletionGracePeriodSeconds: grace,
  };
  return current.kind === "Namespace"
    ? put({ ...current, metadata }, ["status", "phase"], "Terminating")
    : { ...current, metadata };
}

/** The garbage collector's own finalizers follow the propagation policy of the delete. */
function finalizersAfter(finalizers: readonly string[], policy: string | undefined): string[] {
  if (policy === undefined) return [...finalizers];
  const added = { Foreground: ["foregroundDeletion"], Orphan: ["orphan"] }[policy] ?? [];
  return [...finalizers.filter((name) => name !== "foregroundDeletion" && name !== "orphan"), ...added];
}
