/** Kubernetes objects as plain JSON, and safe ways to look into them. Stored objects are frozen: change a copy. */

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface Metadata {
  name: string;
  namespace?: string;
  generateName?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
}

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  [field: string]: unknown;
}

/** An object on its way in: the store fills what is missing. */
export interface Draft {
  apiVersion: string;
  kind: string;
  metadata: Partial<Metadata>;
  [field: string]: unknown;
}

export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `value` as an object; an empty one when it is none. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Text, numbers and flags as text; `otherwise` for all else. */
export function plainText(value: unknown, otherwise = ""): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : otherwise;
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** The value at a path of field names, undefined where the path ends early. */
export function dig(value: unknown, ...path: readonly string[]): unknown {
  let at = value;
  for (const step of path) {
    if (!isFields(at)) return undefined;
    at = at[step];
  }
  return at;
}

/** Whether the condition of that type in the object's status is True. */
export function isTrue(object: unknown, type: string): boolean {
  return listOf(dig(object, "status", "conditions")).some((one) => dig(one, "type") === type && dig(one, "status") === "True");
}

/** A copy of `object` with the value at `path` set; objects on the way are copied, the rest is shared. `undefined` removes the field. */
export function put<T extends Fields>(object: T, path: readonly string[], value: unknown): T {
  const [step, ...rest] = path;
  if (step === undefined) return object;
  const copy: Fields = { ...object };
  if (rest.length > 0) copy[step] = put(fieldsOf(object[step]), rest, value);
  else if (value === undefined) delete copy[step];
  else copy[step] = value;
  return copy as T;
}

/** Freezes a whole tree; frozen subtrees are taken as done. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const child of Object.values(value)) deepFreeze(child);
  return value;
}

/** RFC 3339 with whole seconds, as metav1.Time is written. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
