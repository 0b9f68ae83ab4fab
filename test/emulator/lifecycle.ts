/** What counts as a generation, and how a deletion goes. */
import { isDeepStrictEqual } from "node:util";
import { conflict } from "./api-error.ts";
import { dig, listOf, numberOf, put, timestamp, type Fields, type KubeObject, type Metadata } from "./objects.ts";
import type { RemoveOptions } from "./store.ts";

/** What generations count. Binding a pod to its node is no change of its spec. */
export function specOf(object: KubeObject): Fields {
  const { metadata: _, status: __, apiVersion: ___, kind, ...rest } = object;
  return kind === "Pod" ? put(rest, ["spec", "nodeName"], undefined) : rest;
}

/** Whether nothing holds a deleted object any longer. A namespace is held by its spec's finalizers until it is empty. */
export function isDone({ kind, metadata, ...rest }: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers = [] } = metadata;
  const holders = kind === "Namespace" ? [...finalizers, ...listOf(dig(rest, "spec", "finalizers"))] : finalizers;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && holders.length === 0;
}

/** Throws Conflict. */
export function checkPreconditions({ apiVersion, kind, metadata }: KubeObject, { uid, resourceVersion }: RemoveOptions): void {
  const check = (what: string, wanted: string | undefined, is: string, how: string): void => {
    if (wanted === undefined || wanted === is) return;
    const why = `the ${what} in the precondition (${wanted}) does not match the ${what} in record (${is}). The object might have been ${how}`;
    // rest.BeforeDelete names the kind where others name the resource.
    throw conflict([kind, ...apiVersion.split("/").slice(0, -1)].join("."), metadata.name, why);
  };
  check("UID", uid, metadata.uid, "deleted and then recreated");
  check("ResourceVersion", resourceVersion, metadata.resourceVersion, "modified");
}

/** Seconds, as the pod strategy decides them: other objects need no grace, nor do pods that never ran or have ended. */
function graceOf(object: KubeObject, wanted: number | undefined): number {
  const phase = dig(object, "status", "phase");
  if (object.kind !== "Pod" || !dig(object, "spec", "nodeName") || phase === "Succeeded" || phase === "Failed") return 0;
  return wanted ?? numberOf(dig(object, "spec", "terminationGracePeriodSeconds")) ?? 30;
}

/** The object in deletion, or itself when nothing changes; a later delete can only shorten the grace. `now` in ms. */
export function markDeleted(current: KubeObject, options: RemoveOptions, now: number): KubeObject {
  const { finalizers: before = [], deletionTimestamp, deletionGracePeriodSeconds: running = Infinity, ...rest } = current.metadata;
  // No longer than there are dates for.
  const grace = Math.min(running, 1e9, Math.max(0, graceOf(current, options.gracePeriodSeconds)));
  const finalizers = finalizersAfter(before, options.propagationPolicy);
  if (grace === running && isDeepStrictEqual(finalizers, before)) return current;
  const start = deletionTimestamp === undefined ? now : Date.parse(deletionTimestamp) - running * 1000;
  const metadata: Metadata = {
    ...rest,
    ...(finalizers.length > 0 && { finalizers }),
    // rest.BeforeDelete counts the start of a deletion as a generation.
    ...(rest.generation !== undefined && { generation: rest.generation + (deletionTimestamp === undefined ? 1 : 0) }),
    deletionTimestamp: timestamp(start + grace * 1000),
    deletionGracePeriodSeconds: grace,
  };
  return current.kind === "Namespace" ? put({ ...current, metadata }, ["status", "phase"], "Terminating") : { ...current, metadata };
}

/** The garbage collector's own finalizers follow the propagation policy of the delete. */
function finalizersAfter(finalizers: readonly string[], policy: string | undefined): string[] {
  if (policy === undefined) return [...finalizers];
  const added = { Foreground: ["foregroundDeletion"], Orphan: ["orphan"] }[policy] ?? [];
  return [...finalizers.filter((name) => name !== "foregroundDeletion" && name !== "orphan"), ...added];
}
