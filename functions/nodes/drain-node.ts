/**
 * One round of a drain: cordon -> list the pods -> evict those that have to leave -> record the rest. Any replica may
 * run the next round; each round starts from the state that it finds. The node counts as drained only if a round finds
 * it cordoned by an earlier round, and no pod left.
 *
 *   cordoned now, or pods left --503, Retry-After--> again --> ... --> no pod left --200--> the agent may announce its reboot
 *
 * A node whose policy is frozen, or which no policy has in a slot, never counts as drained and does not reboot (§17.2),
 * even if it announced the reboot before and its host did not get the call.
 */
import { startDeadline } from "../../infra/deadline.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { type CustomObject, nodeUpdatePolicies } from "../../infra/kubernetes/custom-resources.ts";
import { type PodObject, pods } from "../../infra/kubernetes/resources.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { findEvictable } from "../../reconciler/nodes/node-pod.ts";
import { markNode } from "../../reconciler/nodes/node-marks.ts";
import { isInvalid, type Policy, readPolicy } from "../../reconciler/nodes/policy.ts";
import type { BlockedPod, DrainStatus } from "../../reconciler/nodes/shadow.ts";
import { evictPods } from "./evict-pods.ts";
import { type NodeAnswer, type NodeRequest, type NodeRoute, refuseNode } from "./node-answer.ts";
import { changeNode } from "./node-service.ts";
import { getShadow, isDrainWanted, patchStatus, readShadowStatus, type ShadowTools } from "./shadow-store.ts";

/** The fields of a policy that a drain uses. */
export type DrainPolicy = Pick<Policy, "name" | "drain" | "status">;

export interface DrainTools extends ShadowTools {
  /** The policy that has the node in one of its slots. */
  readonly policyOf: (nodeName: string, call: Call) => Promise<DrainPolicy | undefined>;
}

/** Seconds until the next round. */
const NEXT_ROUND_S = 5;
/** Seconds after the cordon until the list is complete: a scheduler that has not seen it yet may bind a pod. */
const AFTER_CORDON_S = 2;
/** Share of the request's time for evictions; the rest is for the record. */
const EVICTIONS_SHARE = 0.7;
const MAX_RECORDED = 20;

/**
 * 200 once the node is drained, or once its drain has timed out and the policy allows the reboot. 503 until then, and
 * while the policy is frozen or unknown. 409 if no reboot of the node is wanted.
 */
export function cordonAndDrain(tools: DrainTools): NodeRoute {
  return async (request) => {
    const shadow = await getShadow(tools, request);
    if (!isDrainWanted(shadow)) return refuseNode("Conflict", `${shadow.metadata.name} wants no reboot`);
    const uid = shadow.metadata.uid ?? "";
    const isNew = await changeNode(tools, request, (node) => markNode(node, { shadowUid: uid, exclude: false }));
    const left = findEvictable(await listPods(tools, request));
    const blocked = await evictAll(tools, request, left);
    const policy = await tools.policyOf(request.node.metadata?.name ?? "", request.call);
    const drain = describeRound({ now: tools.clock.now(), shadow, left, blocked, policy });
    if (!(await record(tools, request, { shadow, drain }))) return notYet(drain, NEXT_ROUND_S);
    if (isNew) return notYet(drain, AFTER_CORDON_S);
    return answerRound(drain, policy);
  };
}

function answerRound(drain: DrainStatus, policy: DrainPolicy | undefined): NodeAnswer {
  if (drain.remaining > 0 && drain["forced"] !== true) return notYet(drain, NEXT_ROUND_S);
  const why = whyNoReboot(policy);
  return why === undefined ? { status: 200, body: answerOf(drain) } : refuseNode("Unavailable", why);
}

/**
 * Why a drained node must not reboot now (§17.2). Without a policy nobody knows whether it is frozen: it may have been
 * deleted, or its status cannot be read. The reconciler gives the node another policy, or sends it back to `Idle`.
 */
export function whyNoReboot(policy: DrainPolicy | undefined): string | undefined {
  if (!policy) return "no NodeUpdatePolicy has the node in a slot for an update that goes on: it does not reboot";
  const { frozen } = policy.status;
  if (!frozen) return undefined;
  return `policy ${policy.name} is frozen, and reboots no node: ${frozen.message}`;
}

/** Evicts the pods within `EVICTIONS_SHARE` of the request's time. */
async function evictAll(
  { cluster, clock }: DrainTools,
  { call }: NodeRequest,
  pods: readonly PodObject[],
): Promise<BlockedPod[]> {
  using deadline = startDeadline(Math.floor((call.deadlineMs ?? 0) * EVICTIONS_SHARE), undefined, clock);
  return await evictPods(cluster, pods, { ...call, signal: deadline.signal });
}

async function listPods({ cluster }: DrainTools, { node, call }: NodeRequest): Promise<PodObject[]> {
  const found: PodObject[] = [];
  for await (const { items } of cluster.list(pods, { fieldSelector: `spec.nodeName=${node.metadata?.name}` }, call))
    found.push(...items);
  return found;
}

interface Round {
  readonly now: number;
  readonly policy: DrainPolicy | undefined;
  readonly shadow: CustomObject;
  readonly left: readonly PodObject[];
  readonly blocked: readonly BlockedPod[];
}

function describeRound({ now, policy, shadow, left, blocked }: Round): DrainStatus {
  const startedAt = readShadowStatus(shadow)?.drain?.started_at ?? formatTimestamp(now);
  const isForced = left.length > 0 && policy !== undefined && isOver(policy, parseTimestamp(startedAt) ?? now, now);
  return {
    started_at: startedAt,
    round_at: formatTimestamp(now),
    remaining: left.length,
    blocked: blocked.slice(0, MAX_RECORDED),
    ...(isForced && { forced: true }),
  };
}

/** True if the drain has timed out and its policy then lets the node reboot with the remaining pods. */
const isOver = ({ drain }: DrainPolicy, startedAt: number, now: number): boolean =>
  drain.onTimeout === "Reboot" && now >= startedAt + drain.timeoutSeconds * 1000;

/**
 * Writes the progress; resolves with false if that fails, for example because the shadow has changed: the next round
 * reads the shadow again.
 */
async function record(
  tools: DrainTools,
  { call, log }: NodeRequest,
  { shadow, drain }: { readonly shadow: CustomObject; readonly drain: DrainStatus },
): Promise<boolean> {
  try {
    await patchStatus(tools, { shadow, status: { drain } }, call);
    return true;
  } catch (error) {
    log.info("the progress of a drain was not recorded; the next round goes on", {
      shadow: shadow.metadata.name,
      error,
    });
    return false;
  }
}

const answerOf = ({ remaining, blocked }: DrainStatus) => ({ remaining, blocked });
const notYet = (drain: DrainStatus, retryAfterSeconds: number): NodeAnswer => ({
  status: 503,
  body: answerOf(drain),
  retryAfterSeconds,
});

/**
 * The policy that has the node in one of its slots, for an attempt that was not given up; undefined if none whose status
 * can be read has it.
 */
export async function findPolicy(cluster: Cluster, nodeName: string, call: Call): Promise<Policy | undefined> {
  for await (const { items } of cluster.list(nodeUpdatePolicies, {}, call))
    for (const policy of items.map(readPolicy))
      if (!isInvalid(policy) && policy.status.active.some(({ node, ending }) => node === nodeName && !ending))
        return policy;
  return undefined;
}
