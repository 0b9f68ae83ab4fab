/** Creates the shadow of the caller's node, and writes its status. */
import * as z from "zod";
import { type CustomObject, bottlerocketShadows } from "../../infra/kubernetes/custom-resources.ts";
import { retryOnConflict } from "../../infra/kubernetes/retry-on-conflict.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { readIdentity } from "../../infra/kubernetes/identity.ts";
import {
  MANAGED_LABEL,
  MANAGED_VALUE,
  type ShadowStatus,
  newShadow,
  shadowName,
  shadowStatus,
} from "../../reconciler/nodes/shadow.ts";
import { type DrainTools, whyNoReboot } from "./drain-node.ts";
import { type NodeAnswer, type NodeRequest, type NodeRoute, refuseNode } from "./node-answer.ts";
import { type ShadowTools, getShadow, patchStatus, readShadowStatus, wantedState } from "./shadow-store.ts";
import { hasCode } from "../../infra/errors.ts";

/**
 * Writes the status that the agent sends. Keys that the agent leaves out keep their values; we set the progress of the
 * drain and the time of the boot's first report. The precondition of the write is the version that the agent has seen,
 * or else the version read here.
 */
export function updateStatus(tools: DrainTools): NodeRoute {
  return async (request) => {
    const sent = shadowStatus.safeParse(request.body);
    if (!sent.success) return refuseNode("BadRequest", z.prettifyError(sent.error));
    const attempt = (): Promise<NodeAnswer> => writeOnce(tools, request, sent.data);
    // Without a version in the request, conflicts are retried: the controller writes the same object.
    return request.ifMatch === undefined
      ? retryOnConflict(attempt, { clock: tools.clock, call: request.call })
      : attempt();
  };
}

async function writeOnce(tools: DrainTools, request: NodeRequest, sent: ShadowStatus): Promise<NodeAnswer> {
  const { drain: _, boot_reported_at: __, ...status } = sent;
  const shadow = await getShadow(tools, request);
  const { resourceVersion } = readIdentity(shadow.metadata);
  if (request.ifMatch !== undefined && request.ifMatch !== resourceVersion)
    return refuseNode("Conflict", `${shadow.metadata.name} has changed since version ${request.ifMatch}`);
  const stored = readShadowStatus(shadow);
  const refused = status.rebooting && (await refuseReboot(tools, request, whyNotReboot(shadow, stored)));
  if (refused) return refused;
  const reported = isNewBoot(status, stored) && { boot_reported_at: formatTimestamp(tools.clock.now()) };
  // The drain of an attempt that is over says nothing about the next one.
  const over = status.current_state === "Idle" && stored?.drain && { drain: null };
  const version = await patchStatus(tools, { shadow, status: { ...status, ...reported, ...over } }, request.call);
  return { status: 200, body: sent, version };
}

const isNewBoot = ({ boot_id: id }: ShadowStatus, stored: ShadowStatus | undefined): boolean =>
  typeof id === "string" && id !== stored?.boot_id;

/** The announcement of a reboot: the update must still be wanted, the node drained, and its policy not frozen. */
async function refuseReboot(
  { policyOf }: DrainTools,
  { node, call }: NodeRequest,
  why: string | undefined,
): Promise<NodeAnswer | undefined> {
  if (why !== undefined) return refuseNode("Conflict", why);
  const held = whyNoReboot(await policyOf(node.metadata?.name ?? "", call));
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
export function createShadow({ cluster, namespace }: ShadowTools): NodeRoute {
  return async ({ node, call }) => {
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
    return { status: 200, body: shadow, version: shadow.metadata.resourceVersion ?? "" };
  };
}
