/** ControllerRevisions: one a template, named by its hash, found again when a template comes back. Source: pkg/controller/history. */
import type { Store } from "../../store.ts";
import { controllerReference, type Pod, type Revision, type StatefulSet } from "../objects.ts";
import { revisionOf } from "./identity.ts";

const HASH_LABEL = "controller.kubernetes.io/hash";
const HASH_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
const HISTORY_LIMIT = 10;

export interface Revisions {
  readonly current: Revision;
  readonly update: Revision;
  readonly collisionCount: number;
  /** What there was before, oldest first. */
  readonly history: readonly Revision[];
}

/** Finds or writes the revision of the set's template; the current one is the one that the status names. */
export function syncRevisions(store: Store, set: StatefulSet, owned: readonly Revision[]): Revisions {
  const history = owned.toSorted((a, b) => a.revision - b.revision || a.metadata.name.localeCompare(b.metadata.name));
  const latest = history.at(-1);
  const data = { spec: { template: { ...set.spec.template, $patch: "replace" as const } } };
  const json = canonicalJson(data);
  const number = (latest?.revision ?? 0) + 1;
  const equal = history.findLast((revision) => canonicalJson(revision.data) === json);
  let collisionCount = set.status?.collisionCount ?? 0;
  let update = equal;
  if (equal && equal !== latest) update = store.update("controllerrevisions.apps", { ...equal, revision: number }) as Revision;
  while (!update) {
    const hash = hashOf(json, collisionCount);
    const name = `${set.metadata.name}-${hash}`;
    const taken = store.get("controllerrevisions.apps", set.metadata.namespace, name) as Revision | undefined;
    if (taken && canonicalJson(taken.data) !== json) collisionCount += 1;
    else update = taken ?? create(store, set, { name, hash, data, number });
  }
  const current = history.find((revision) => revision.metadata.name === set.status?.currentRevision) ?? update;
  return { current, update, collisionCount, history };
}

/** Deletes the oldest revisions beyond the set's history limit that neither the status nor a pod names. */
export function trimHistory(store: Store, set: StatefulSet, { current, update, history }: Revisions, pods: readonly Pod[]): void {
  const live = new Set([current.metadata.name, update.metadata.name, ...pods.map(revisionOf)]);
  const idle = history.filter((revision) => !live.has(revision.metadata.name));
  const surplus = Math.max(0, idle.length - (set.spec.revisionHistoryLimit ?? HISTORY_LIMIT));
  for (const { metadata } of idle.slice(0, surplus)) store.remove("controllerrevisions.apps", metadata.namespace, metadata.name);
}

interface NewRevision {
  readonly name: string;
  readonly hash: string;
  readonly data: Revision["data"];
  readonly number: number;
}

function create(store: Store, set: StatefulSet, { name, hash, data, number }: NewRevision): Revision {
  const { namespace = "", annotations } = set.metadata;
  const labels = { ...set.spec.template.metadata?.labels, [HASH_LABEL]: hash };
  const metadata = { name, namespace, labels, ...(annotations && { annotations }), ownerReferences: [controllerReference(set)] };
  return store.create("controllerrevisions.apps", {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata,
    data,
    revision: number,
  }) as Revision;
}

/** FNV-1 (32 bits) of the JSON and the collision count, in letters that make no bad words. Source: HashControllerRevision, rand.SafeEncodeString. */
function hashOf(json: string, collisionCount: number): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${json}${collisionCount}`)) hash = Math.imul(hash, 0x01000193) ^ byte;
  return Array.from(String(hash >>> 0), (digit) => HASH_ALPHABET[digit.charCodeAt(0) % HASH_ALPHABET.length]).join("");
}

/** JSON with sorted keys, as Go writes maps. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  fields.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`).join(",")}}`;
}
