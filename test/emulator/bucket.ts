/** The objects of one resource, in the order in which lists answer: by namespace, then name. */
import type { KubeObject } from "./objects.ts";

export interface Bucket {
  get(key: string): KubeObject | undefined;
  set(key: string, object: KubeObject): void;
  delete(key: string): void;
  /** Objects whose key starts with `prefix`, in order. */
  range(prefix: string): KubeObject[];
}

export function objectKey(namespace: string | undefined, name: string): string {
  return namespace ? `${namespace}/${name}` : name;
}

export function createBucket(): Bucket {
  const objects = new Map<string, KubeObject>();
  /** All keys in order; undefined since the last one came or went. */
  let sorted: readonly string[] | undefined;
  return {
    get: (key) => objects.get(key),
    set: (key, object) => {
      if (!objects.has(key)) sorted = undefined;
      objects.set(key, object);
    },
    delete: (key) => {
      if (objects.delete(key)) sorted = undefined;
    },
    range: (prefix) => {
      sorted ??= [...objects.keys()].toSorted();
      return sorted.filter((key) => key.startsWith(prefix)).flatMap((key) => objects.get(key) ?? []);
    },
  };
}
