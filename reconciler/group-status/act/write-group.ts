/** Writes one RolloutGroup; each write takes effect only on the version that was read. */
import { absent } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { rolloutGroups, type RolloutGroup } from "../../../infra/kubernetes/custom-resources.ts";
import { writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Zone } from "../../model/zone.ts";
import type { RolloutGroupStatus } from "../status.ts";
import { buildGroup, changeOwners, GROUP_KIND, readStoredGroup, type StoredGroup } from "./stored-group.ts";

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
  /** The status that was decided last, which the next one goes on from: it counts what has not been written yet. */
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
  const change = {
    object: { ...stored, namespace, name },
    before: stored.status,
    after: status,
    by: { kind: GROUP_KIND },
  };
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
