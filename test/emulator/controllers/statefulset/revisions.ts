/**
 * ControllerRevisions: one per template, named after its hash, reused if a template returns. Source:
 * pkg/controller/history.
 */
import { isFields } from "../../objects.ts";
import type { Store } from "../../store.ts";
import { controllerReference, type Revision, type StatefulSet } from "../objects.ts";

const REVISIONS = "controllerrevisions.apps";
const HASH_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

export interface Revisions {
  readonly current: Revision;
  readonly update: Revision;
}

/** Finds or creates the revision of the set's template. The current revision is the one in the status. */
export function syncRevisions(store: Store, set: StatefulSet): Revisions {
  const { name, namespace = "", annotations } = set.metadata;
  const find = (revisionName = "") => store.get(REVISIONS, namespace, revisionName) as Revision | undefined;
  const latest = find(set.status?.updateRevision);
  const revision = (latest?.revision ?? 0) + 1;
  const { data, hash } = revisionOf(set.spec.template);
  let update = find(`${name}-${hash}`);
  if (!update) {
    const labels = { ...set.spec.template.metadata?.labels, "controller.kubernetes.io/hash": hash };
    const ownerReferences = [controllerReference(set)];
    const metadata = {
      name: `${name}-${hash}`,
      namespace,
      labels,
      ...(annotations && { annotations }),
      ownerReferences,
    };
    update = store.create(REVISIONS, {
      apiVersion: "apps/v1",
      kind: "ControllerRevision",
      metadata,
      data,
      revision,
    }) as Revision;
  } else if (latest && latest !== update) update = store.update(REVISIONS, { ...update, revision }) as Revision;
  return { current: find(set.status?.currentRevision) ?? update, update };
}

/** What the revision of a template holds, and the hash that its name ends with. */
function revisionOf<T extends object>(template: T) {
  const data = { spec: { template: { ...template, $patch: "replace" } } };
  return { data, hash: hashOf(JSON.stringify(data, sortKeys)) };
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
