/** Writes one RolloutGroup; each write takes effect only on the version that was read. */
import { absent, hasCode } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { rolloutGroups, type RolloutGroup } from "../../../infra/kubernetes/custom-resources.ts";
import { writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Entry } from "./entry.ts";
import { buildGroup, changeOwners, GROUP_KIND, readStoredGroup } from "./stored-group.ts";

export type GroupWriter = Pick<Context, "cluster" | "fence">;

/**
 * Writes the wanted status, and first the object or its owners if they are missing. False if another client was
 * faster: the object was read again. Throws `LeaseLost`, or the error of the API server.
 */
export async function writeGroup(entry: Entry, writer: GroupWriter): Promise<boolean> {
  try {
    await ensureObject(entry, writer);
    const { namespace, name, stored, wanted: status } = entry;
    if (!stored || !status) return false;
    const change = {
      object: { ...stored, namespace, name },
      before: stored.status,
      after: status,
      by: { kind: GROUP_KIND },
    };
    const written = await writeStatus(rolloutGroups, change, writer);
    // A definition that lacks a field drops it: the sent status counts as stored, or it would be sent again and again.
    if (written) entry.stored = { ...readStoredGroup(written), status };
    return true;
  } catch (error) {
    if (!hasCode(error, "Conflict", "NotFound", "AlreadyExists")) throw error;
    await readAgain(entry, writer);
    return false;
  }
}

async function ensureObject(entry: Entry, { cluster, fence }: GroupWriter): Promise<void> {
  const { namespace, name, stored, zones = [] } = entry;
  if (!stored) {
    const created = await cluster.create(
      rolloutGroups,
      { namespace, body: buildGroup(name, namespace, zones) },
      fence.write(),
    );
    entry.stored = readStoredGroup(created);
    // Only we can have written its spec so far.
    entry.confirmed = { uid: entry.stored.uid, generation: entry.stored.generation };
    return;
  }
  const ownerReferences = zones.length > 0 ? changeOwners(stored, zones) : undefined;
  if (!ownerReferences) return;
  const body = { metadata: { resourceVersion: stored.resourceVersion, ownerReferences } };
  const changed = await cluster.change<RolloutGroup>(
    rolloutGroups,
    { namespace, name, type: "merge", body },
    fence.write(),
  );
  entry.stored = { ...readStoredGroup(changed), status: stored.status };
}

/** The object may be younger than the zones of the tick, so only the next tick confirms its generation. */
async function readAgain(entry: Entry, { cluster, fence }: GroupWriter): Promise<void> {
  const { namespace, name, stored: before } = entry;
  const object = await cluster.get(rolloutGroups, { namespace, name }, fence.write()).catch(absent);
  entry.stored = object && readStoredGroup(object);
  if (entry.stored?.uid !== before?.uid) entry.confirmed = undefined;
}

/**
 * Removes the object of a group that is gone. Throws `LeaseLost`, or the error of the API server, `Conflict` if it has
 * changed.
 */
export async function removeGroup({ namespace, name, stored }: Entry, { cluster, fence }: GroupWriter): Promise<void> {
  if (!stored) return;
  const { uid, resourceVersion } = stored;
  await cluster
    .remove(rolloutGroups, { namespace, name, preconditions: { uid, resourceVersion } }, fence.write())
    .catch(absent);
}
