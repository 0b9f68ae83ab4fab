/**
 * ControllerRevisions: one per template, named after its hash, reused if a template returns. Source:
 * pkg/controller/history.
 */
import type { Change } from "../changes.ts";
import { isFields } from "../../objects.ts";
import { controllerReference, type Revision, type StatefulSet } from "../objects.ts";

export const REVISIONS = "controllerrevisions.apps";
const HASH_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

export interface Revisions {
  readonly current: Revision;
  readonly update: Revision;
}

/**
 * Finds or makes the revision of the set's template among those that `find` has by name. The current revision is the
 * one in the status.
 */
export function syncRevisions(
  set: StatefulSet,
  find: (name: string) => Revision | undefined,
): Revisions & { readonly changes: readonly Change[] } {
  const { name, namespace = "", annotations } = set.metadata;
  const latest = find(set.status?.updateRevision ?? "");
  const revision = (latest?.revision ?? 0) + 1;
  const { data, hash } = revisionOf(set.spec.template);
  const there = find(`${name}-${hash}`);
  const current = find(set.status?.currentRevision ?? "");
  if (there) {
    const isLatest = !latest || latest === there;
    const update = isLatest ? there : { ...there, revision };
    const changes = isLatest ? [] : [{ verb: "update", resource: REVISIONS, object: update } as const];
    return { current: current ?? update, update, changes };
  }
  const metadata = {
    name: `${name}-${hash}`,
    namespace,
    labels: { ...set.spec.template.metadata?.labels, "controller.kubernetes.io/hash": hash },
    ...(annotations && { annotations }),
    ownerReferences: [controllerReference(set)],
  };
  const object = { apiVersion: "apps/v1", kind: "ControllerRevision", metadata, data, revision };
  const update = object as unknown as Revision;
  return { current: current ?? update, update, changes: [{ verb: "create", resource: REVISIONS, object }] };
}

interface Content {
  readonly data: object;
  readonly hash: string;
}

/** Templates of stored objects never change: each is hashed once. */
const contents = new WeakMap<object, Content>();

/** What the revision of a template holds, and the hash that its name ends with. */
function revisionOf(template: object): Content {
  const known = contents.get(template);
  if (known) return known;
  const data = { spec: { template: { ...template, $patch: "replace" } } };
  const content = { data, hash: hashOf(JSON.stringify(data, sortKeys)) };
  contents.set(template, content);
  return content;
}

/**
 * FNV-1 (32 bits) of the JSON and a collision count of 0, in an alphabet without vowels. Source:
 * HashControllerRevision, rand.SafeEncodeString.
 */
function hashOf(json: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${json}0`)) hash = Math.imul(hash, 0x01000193) ^ byte;
  return Array.from(String(hash >>> 0), (digit) => HASH_ALPHABET[digit.charCodeAt(0) % HASH_ALPHABET.length]).join("");
}

/** A replacer that makes JSON.stringify sort keys, as Go does for maps. */
function sortKeys(_key: string, value: unknown): unknown {
  return isFields(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value;
}
