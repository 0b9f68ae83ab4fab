/**
 * The shadow of the caller's node: creates it, and writes its status. A reboot is announced there: only while it is
 * wanted, the node is drained, and a policy that is not frozen has the node in a slot.
 */
import * as z from "zod";
import { absent, hasCode, RolloutError } from "../../infra/errors.ts";
import { type CustomObject, bottlerocketShadows, nodeUpdatePolicies } from "../../infra/kubernetes/custom-resources.ts";
import { readIdentity } from "../../infra/kubernetes/identity.ts";
import { retryOnConflict } from "../../infra/kubernetes/retry-on-conflict.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { type Policy, POLICY_NAME, readPolicy } from "../../reconciler/nodes/policy.ts";
import {
  MANAGED_LABEL,
  MANAGED_VALUE,
  newShadow,
  SHADOW_GROUP,
  SHADOW_KIND,
  shadowName,
  shadowSpec,
  type ShadowStatus,
  shadowStatus,
  type State,
} from "../../reconciler/nodes/shadow.ts";
import { moveFor } from "../../reconciler/nodes/state-machine.ts";
import { type NodeAnswer, type NodeRequest, refuseNode } from "./node-answer.ts";

/**
 * The shadow of the caller's node. Rejects with `NotFound` also if the shadow belongs to an earlier node of this name:
 * garbage collection deletes it soon.
 */
export async function getShadow({ cluster, namespace, node, call }: NodeRequest): Promise<CustomObject> {
  const { name, uid } = readIdentity(node.metadata ?? {});
  const shadow = await cluster.get(bottlerocketShadows, { namespace, name: shadowName(name) }, call);
  const owner = shadow.metadata.ownerReferences?.[0]?.uid ?? uid;
  if (owner !== uid) throw new RolloutError("NotFound", `${shadowName(name)} belongs to an earlier node`);
  return shadow;
}

/** Merges into the status of the shadow as it was read; rejects with `Conflict` if it has changed. */
export async function patchStatus(
  { cluster, namespace, call }: NodeRequest,
  shadow: CustomObject,
  status: object,
): Promise<void> {
  const { name, resourceVersion } = readIdentity(shadow.metadata);
  const body = { apiVersion: `${SHADOW_GROUP}/v2`, kind: SHADOW_KIND, metadata: { resourceVersion }, status };
  await cluster.patch(bottlerocketShadows, { namespace, name, subresource: "status", type: "merge", body }, call);
}

export const readShadowStatus = ({ status }: CustomObject): ShadowStatus | undefined =>
  shadowStatus.safeParse(status).data;

const wantedState = ({ spec }: CustomObject): State | undefined => shadowSpec.safeParse(spec).data?.state;

/** True between the staged update and its reboot: only then may an agent drain its node. */
export function isDrainWanted(shadow: CustomObject): boolean {
  const wanted = wantedState(shadow);
  const move = wanted && moveFor(wanted, readShadowStatus(shadow)?.current_state);
  return move?.by === "agent" && move.action === "reboot";
}

/** The policy, if it has the node in a slot for an attempt that was not given up. Rejects if its status cannot be read. */
export async function findPolicy({
  cluster,
  node: { metadata },
  call,
}: Pick<NodeRequest, "cluster" | "node" | "call">): Promise<Policy | undefined> {
  const object = await cluster.get(nodeUpdatePolicies, { name: POLICY_NAME }, call).catch(absent);
  const policy = object && readPolicy(object);
  const isActive = policy?.status.active.some(({ node, ending }) => node === metadata?.name && !ending);
  return isActive ? policy : undefined;
}

/**
 * Why a drained node must not reboot now (§17.2). Without a policy nobody knows whether it was frozen. The reconciler
 * sends the node back to `Idle`.
 */
export function whyNoReboot(policy: Policy | undefined): string | undefined {
  if (!policy) return "the NodeUpdatePolicy has the node in no slot for an update that goes on: it does not reboot";
  const { frozen } = policy.status;
  if (!frozen) return undefined;
  return `the policy is frozen, and reboots no node: ${frozen.message}`;
}

/**
 * Writes the status that the agent sends. Keys that the agent leaves out keep their values; the progress of the drain and
 * the time of the boot's first report are ours. The precondition of the write is the version that the agent has seen, or
 * else the version read here.
 */
export async function updateStatus(request: NodeRequest): Promise<NodeAnswer> {
  const sent = shadowStatus.safeParse(request.body);
  if (!sent.success) return refuseNode("BadRequest", z.prettifyError(sent.error));
  const attempt = (): Promise<NodeAnswer> => writeOnce(request, sent.data);
  // Without a version in the request, conflicts are retried: the controller writes the same object.
  return request.ifMatch === undefined ? await retryOnConflict(attempt, request) : await attempt();
}

async function writeOnce(request: NodeRequest, sent: ShadowStatus): Promise<NodeAnswer> {
  const { drain: _, boot_reported_at: __, ...status } = sent;
  const shadow = await getShadow(request);
  const { resourceVersion } = readIdentity(shadow.metadata);
  if (request.ifMatch !== undefined && request.ifMatch !== resourceVersion)
    return refuseNode("Conflict", `${shadow.metadata.name} has changed since version ${request.ifMatch}`);
  const stored = readShadowStatus(shadow);
  const refused = status.rebooting && (await refuseReboot(request, whyNotReboot(shadow, stored)));
  if (refused) return refused;
  const reported = isNewBoot(status, stored) && { boot_reported_at: formatTimestamp(request.clock.now()) };
  // The drain of an attempt that is over says nothing about the next one.
  const over = status.current_state === "Idle" && stored?.drain && { drain: null };
  await patchStatus(request, shadow, { ...status, ...reported, ...over });
  return { status: 200, body: sent };
}

const isNewBoot = ({ boot_id: id }: ShadowStatus, stored: ShadowStatus | undefined): boolean =>
  typeof id === "string" && id !== stored?.boot_id;

/** The announcement of a reboot: the update must still be wanted, the node drained, and its policy not frozen. */
async function refuseReboot(request: NodeRequest, why: string | undefined): Promise<NodeAnswer | undefined> {
  if (why !== undefined) return refuseNode("Conflict", why);
  const held = whyNoReboot(await findPolicy(request));
  return held === undefined ? undefined : refuseNode("Unavailable", held);
}

/** The reason against a reboot: the update must still be wanted, and the node drained. */
function whyNotReboot(shadow: CustomObject, stored: ShadowStatus | undefined): string | undefined {
  const { name } = shadow.metadata;
  const wanted = wantedState(shadow);
  if (wanted !== "RebootedIntoUpdate") return `${name} wants ${wanted ?? "nothing"}: no reboot`;
  const { drain } = stored ?? {};
  return drain && (drain.remaining === 0 || drain["forced"] === true)
    ? undefined
    : `the node of ${name} is not drained`;
}

/**
 * Resolves with the new or the existing shadow. 409 if the shadow belongs to an earlier node of this name, or if
 * the node has lost its label: then the reconciler has deleted the shadow, and the agent runs for a moment longer.
 */
export async function createShadow({ cluster, namespace, node, call }: NodeRequest): Promise<NodeAnswer> {
  const { name, uid } = readIdentity(node.metadata ?? {});
  if (node.metadata?.labels?.[MANAGED_LABEL] !== MANAGED_VALUE)
    return refuseNode("Conflict", `node ${name} is not managed`);
  const body = newShadow({ name, uid }, namespace);
  const shadow = await cluster
    .create<CustomObject>(bottlerocketShadows, { namespace, body }, call)
    .catch(async (error: unknown) => {
      if (!hasCode(error, "AlreadyExists")) throw error;
      return await cluster.get(bottlerocketShadows, { namespace, name: shadowName(name) }, call);
    });
  if (shadow.metadata.ownerReferences?.[0]?.uid !== uid)
    return refuseNode("Conflict", `${shadowName(name)} belongs to another node`);
  return { status: 200, body: shadow };
}
