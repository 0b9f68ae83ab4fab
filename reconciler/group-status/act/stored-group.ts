/** A RolloutGroup as the cluster has it, and its writes: each takes effect only on the version that was read. */
import { rolloutGroups, type RolloutGroup } from "../../../infra/kubernetes/custom-resources.ts";
import type { ObjectMeta } from "../../../infra/kubernetes/resources.ts";
import type { RolloutGroupStatus } from "../status.ts";
import type { Zone } from "../../model/zone.ts";
import { absent } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { writeStatus } from "../../../infra/kubernetes/write-status.ts";

export interface StoredGroup {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  /** Created by Zonewise: it is deleted with its group. An object that a user has created stays. */
  readonly isOurs: boolean;
  readonly owners: readonly Owner[];
  readonly deadlineMs: number;
  /** As it was read, or as we have sent it. */
  readonly status: Partial<RolloutGroupStatus>;
}

type Owner = NonNullable<ObjectMeta["ownerReferences"]>[number];

const MADE_BY = { "app.kubernetes.io/managed-by": "zonewise" } as const;
/** A pod of a large store may take long to become ready, but seldom half an hour. */
const DEADLINE_SECONDS = 1800;
export const DEFAULT_DEADLINE_MS = DEADLINE_SECONDS * 1000;

export function readStoredGroup({ metadata, spec, status }: RolloutGroup): StoredGroup {
  const { uid = "", resourceVersion = "", generation = 0, labels, ownerReferences = [] } = metadata;
  return {
    uid,
    resourceVersion,
    generation,
    isOurs: Object.entries(MADE_BY).every(([key, value]) => labels?.[key] === value),
    owners: ownerReferences,
    deadlineMs: (spec?.progressDeadlineSeconds ?? DEADLINE_SECONDS) * 1000,
    // The schema of the definition keeps it valid.
    status: status ?? {},
  };
}

const { group, version } = rolloutGroups;
const GROUP_KIND = "RolloutGroup";
const TYPE = { apiVersion: `${group}/${version}`, kind: GROUP_KIND } as const;

/** A new object, which the garbage collector removes with the last of the zones. */
function buildGroup(name: string, namespace: string, zones: readonly Zone[]): RolloutGroup {
  return { ...TYPE, metadata: { name, namespace, labels: MADE_BY, ownerReferences: ownersOf(zones) } };
}

const ownersOf = (zones: readonly Zone[]): Owner[] =>
  zones.map(({ name, uid }) => ({ apiVersion: "apps/v1", kind: "StatefulSet", name, uid }));

/** The owners that the object should have; undefined if it has them, or if a user created it. */
function changeOwners({ isOurs, owners }: StoredGroup, zones: readonly Zone[]): Owner[] | undefined {
  const uids = new Set(zones.map(({ uid }) => uid));
  const others = owners.filter(({ kind }) => kind !== "StatefulSet");
  const isSame =
    owners.length - others.length === uids.size &&
    owners.every(({ kind, uid }) => kind !== "StatefulSet" || uids.has(uid));
  return !isOurs || isSame ? undefined : [...others, ...ownersOf(zones)];
}

type GroupWriter = Pick<Context, "cluster" | "fence">;

/** A RolloutGroup as this process knows it. */
export interface KnownGroup {
  readonly namespace: string;
  readonly name: string;
  /** As it was listed, or as we have written it since; undefined if there is none. */
  stored?: StoredGroup | undefined;
  /** What was read before the StatefulSets of the group were listed: its status may state this generation (§11.2). */
  confirmed?: Pick<StoredGroup, "uid" | "generation"> | undefined;
  /** The zones at the last decision, its owners. */
  zones?: readonly Zone[];
  /** The last decided status, from which the next one continues: it counts what has not been written yet. */
  decided?: RolloutGroupStatus;
  /** A write is under way. */
  isBusy: boolean;
  /** Monotonic milliseconds of the last write; -Infinity before the first. */
  writtenAt: number;
}

/**
 * Writes the status that was decided last, and first the object or its owners if they are missing. Throws `Conflict` or
 * `AlreadyExists` if somebody else was faster, `NotFound` if it is gone, `LeaseLost`, or the error of the API server.
 */
export async function writeGroup(known: KnownGroup, writer: GroupWriter): Promise<void> {
  const stored = await ensureObject(known, writer);
  const { namespace, name, decided: status } = known;
  if (!status) return;
  const object = { ...stored, namespace, name };
  const change = { kind: GROUP_KIND, object, before: stored.status, after: status };
  const written = await writeStatus(rolloutGroups, change, writer);
  // A definition that lacks a field drops it: the sent status counts as stored, or it would be sent again and again.
  if (written) known.stored = { ...readStoredGroup(written), status };
}

async function ensureObject(known: KnownGroup, { cluster, fence }: GroupWriter): Promise<StoredGroup> {
  const { namespace, name, stored, zones = [] } = known;
  if (!stored) {
    const body = buildGroup(name, namespace, zones);
    const created = readStoredGroup(await cluster.create(rolloutGroups, { namespace, body }, fence.write()));
    known.stored = created;
    // Only we can have written its spec so far.
    known.confirmed = created;
    return created;
  }
  const ownerReferences = zones.length > 0 ? changeOwners(stored, zones) : undefined;
  if (!ownerReferences) return stored;
  const body = { metadata: { resourceVersion: stored.resourceVersion, ownerReferences } };
  const target = { namespace, name, type: "merge", body } as const;
  const changed = await cluster.change<RolloutGroup>(rolloutGroups, target, fence.write());
  return (known.stored = { ...readStoredGroup(changed), status: stored.status });
}

/**
 * Removes the object of a group that is gone. Throws `LeaseLost`, or the error of the API server, `Conflict` if it has
 * changed.
 */
export async function removeGroup(
  { namespace, name, stored }: KnownGroup,
  { cluster, fence }: GroupWriter,
): Promise<void> {
  if (!stored) return;
  const { uid, resourceVersion } = stored;
  await cluster
    .remove(rolloutGroups, { namespace, name, preconditions: { uid, resourceVersion } }, fence.write())
    .catch(absent);
}
