/** The objects of one resource, kept in the order in which lists answer: by namespace, then name. */
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
  const keys: string[] = [];

  /** Index of the first key that is not before `key`. */
  const position = (key: string): number => {
    let low = 0;
    let high = keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((keys[middle] ?? "") < key) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  return {
    get: (key) => objects.get(key),
    set: (key, object) => {
      if (!objects.has(key)) keys.splice(position(key), 0, key);
      objects.set(key, object);
    },
    delete: (key) => {
      if (objects.delete(key)) keys.splice(position(key), 1);
    },
    range: (prefix) => {
      const found: KubeObject[] = [];
      for (let i = prefix ? position(prefix) : 0; i < keys.length; i++) {
        const key = keys[i] ?? "";
        if (!key.startsWith(prefix)) break;
        const object = objects.get(key);
        if (object) found.push(object);
      }
      return found;
    },
  };
}
