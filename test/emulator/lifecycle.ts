/** What becomes of an object's metadata: what clients cannot change, when it is gone, what a delete asks first. */
import { isDeepStrictEqual } from "node:util";
import { conflict } from "./api-error.ts";
import { dig, listOf, numberOf, put, timestamp } from "./objects.ts";
import type { KubeObject, Metadata } from "./objects.ts";
import type { RemoveOptions } from "./store.ts";

const SYSTEM_OWNED = [
  "name",
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "namespace",
  "generateName",
  "generation",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
] as const;

/** The metadata that no client can change. */
export function systemOwned(current: Metadata): Pick<Metadata, (typeof SYSTEM_OWNED)[number]> {
  const owned = SYSTEM_OWNED.filter((field) => current[field] !== undefined).map((field) => [field, current[field]]);
  return Object.fromEntries(owned) as Pick<Metadata, (typeof SYSTEM_OWNED)[number]>;
}

/** What generations count. Binding a pod to its node is no change of its spec. */
export function specOf(object: KubeObject): Record<string, unknown> {
  const { metadata: _, status: __, apiVersion: ___, kind, ...rest } = object;
  return kind === "Pod" ? put(rest, ["spec", "nodeName"], undefined) : rest;
}

export function isDone(object: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && finalizers.length === 0 && heldBySpec(object).length === 0;
}

/** A namespace is held by its spec's finalizers until it is empty. */
export function heldBySpec(object: KubeObject): readonly unknown[] {
  return object.kind === "Namespace" ? listOf(dig(object, "spec", "finalizers")) : [];
}

export function checkPreconditions({ apiVersion, kind, metadata }: KubeObject, wanted: RemoveOptions): void {
  const group = apiVersion.includes("/") ? `.${apiVersion.split("/")[0]}` : "";
  const mismatch = (what: string, inPrecondition: string, inMeta: string, how: string): never => {
    const why = `the ${what} in the precondition (${inPrecondition}) does not match the ${what} in record (${inMeta}). The object might have been ${how}`;
    // rest.BeforeDelete names the kind where others name the resource.
    throw conflict(`${kind}${group}`, metadata.name, why);
  };
  const { uid, resourceVersion } = metadata;
  if (wanted.uid !== undefined && wanted.uid !== uid) mismatch("UID", wanted.uid, uid, "deleted and then recreated");
  if (wanted.resourceVersion !== undefined && wanted.resourceVersion !== resourceVersion)
    mismatch("ResourceVersion", wanted.resourceVersion, resourceVersion, "modified");
}

/** Seconds, as the pod strategy decides them: pods that never ran, or have ended, need no grace. */
export function podGrace(pod: KubeObject, wanted: number | undefined): number {
  const phase = dig(pod, "status", "phase");
  if (!dig(pod, "spec", "nodeName") || phase === "Succeeded" || phase === "Failed") return 0;
  return wanted ?? numberOf(dig(pod, "spec", "terminationGracePeriodSeconds")) ?? 30;
}

/** The object in deletion, or itself when nothing changes; a later delete can only shorten the grace. Times in ms, graces in seconds. */
export function markDeleted(current: KubeObject, grace: number, finalizers: readonly string[], now: number): KubeObject {
  const { finalizers: before = [], deletionTimestamp, deletionGracePeriodSeconds: running = Infinity, ...rest } = current.metadata;
  const isShorter = grace < running && current.kind !== "Namespace";
  if (deletionTimestamp !== undefined && !isShorter && isDeepStrictEqual(finalizers, before)) return current;
  const start = deletionTimestamp === undefined ? now : Date.parse(deletionTimestamp) - running * 1000;
  const metadata: Metadata = {
    ...rest,
    ...(finalizers.length > 0 && { finalizers: [...finalizers] }),
    // rest.BeforeDelete counts the start of a deletion as a generation.
    ...(rest.generation !== undefined && { generation: rest.generation + (deletionTimestamp === undefined ? 1 : 0) }),
    deletionTimestamp: deletionTimestamp !== undefined && !isShorter ? deletionTimestamp : timestamp(start + grace * 1000),
    deletionGracePeriodSeconds: Math.min(grace, running),
  };
  if (current.kind !== "Namespace") return { ...current, metadata };
  const { deletionGracePeriodSeconds: _, ...ofNamespace } = metadata;
  return put({ ...current, metadata: ofNamespace }, ["status", "phase"], "Terminating");
}

/** The garbage collector's own finalizers follow the propagation policy of the delete. */
export function finalizersAfter(finalizers: readonly string[], policy: string | undefined): string[] {
  const kept = finalizers.filter((name) => policy === undefined || (name !== "foregroundDeletion" && name !== "orphan"));
  if (policy === "Foreground") kept.push("foregroundDeletion");
  if (policy === "Orphan") kept.push("orphan");
  return kept;
}
