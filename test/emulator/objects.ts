/** Kubernetes objects as plain JSON, and safe ways to look into them. Stored objects are frozen: change a copy. */
import type { V1ObjectMeta, V1OwnerReference } from "@kubernetes/client-node";
import type { Json } from "../../infra/kubernetes/resources.ts";

export type OwnerReference = Json<V1OwnerReference>;

/** As stored: with what the store fills in. */
export type Metadata = Json<V1ObjectMeta> & Record<"name" | "uid" | "resourceVersion" | "creationTimestamp", string>;

/** An object on its way in: the store fills what is missing. */
export interface Draft {
  apiVersion: string;
  kind: string;
  metadata: Partial<Metadata>;
  [field: string]: unknown;
}

export interface KubeObject extends Draft {
  metadata: Metadata;
}

export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `value` as an object or a list; an empty one when it is none. */
export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
export const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** Text, numbers and flags as text; "" for all else. */
export function plainText(value: unknown): string {
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : "";
}

/** The value at a path of field names, undefined where the path ends early. */
export function dig(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((at, step) => (isFields(at) ? at[step] : undefined), value);
}

/** Whether the condition of that type in the object's status is True. */
export function isTrue(object: unknown, type: string): boolean {
  return listOf(dig(object, "status", "conditions")).some((one) => dig(one, "type") === type && dig(one, "status") === "True");
}

/** A copy of `object` with the value at `path` set; objects on the way are copied, the rest is shared. `undefined` removes the field. */
export function put<T extends Fields>(object: T, [step, ...rest]: readonly string[], value: unknown): T {
  if (step === undefined) return object;
  const copy: Fields = { ...object, [step]: rest.length > 0 ? put(fieldsOf(object[step]), rest, value) : value };
  if (copy[step] === undefined) delete copy[step];
  return copy as T;
}

/** Freezes a whole tree; frozen subtrees are taken as done. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const child of Object.values(Object.freeze(value))) deepFreeze(child);
  return value;
}

/** RFC 3339 with whole seconds, as metav1.Time is written. */
export const timestamp = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
