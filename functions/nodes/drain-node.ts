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
import { type PodObject, evictions, pods } from "../../infra/kubernetes/resources.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { findEvictable } from "../../reconciler/nodes/node-pod.ts";
import { markNode } from "../../reconciler/nodes/node-marks.ts";
import { type Policy, isInvalid, readPolicy } from "../../reconciler/nodes/policy.ts";
import type { BlockedPod, DrainStatus } from "../../reconciler/nodes/shadow.ts";
import { type NodeAnswer, type NodeRequest, type NodeRoute, refuseNode } from "./node-answer.ts";
import { changeNode } from "./node-service.ts";
import { type ShadowTools, getShadow, isDrainWanted, patchStatus, readShadowStatus } from "./shadow-store.ts";
import type { Status } from "../../infra/kubernetes/api-error.ts";
import { RolloutError, hasCode, messageOf } from "../../infra/errors.ts";
import { visitEach } from "../../infra/slots.ts";
import { readIdentity } from "../../infra/kubernetes/identity.ts";

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

/** Concurrent evictions: webhooks and budgets judge each of them. */
const AT_ONCE = 5;
/** Milliseconds of one eviction: webhooks may take 10 s. */
const MAX_MS = 15_000;

/**
 * Asks for the eviction of each pod once, pinned to the UID that was listed, until the signal of the call fires. Resolves with the pods that were refused or
 * are still terminating. A pod that is gone, or whose name belongs to another pod by now, needs none.
 */
async function evictPods(cluster: Cluster, pods: readonly PodObject[], call: Call): Promise<BlockedPod[]> {
  const blocked: BlockedPod[] = [];
  await visitEach(pods, { atOnce: AT_ONCE, ...(call.signal && { signal: call.signal }) }, async (pod) => {
    const reason = await evict(cluster, pod, call);
    const { namespace, name } = readIdentity(pod.metadata ?? {});
    if (reason) blocked.push({ namespace, name, ...reason });
  });
  return blocked;
}

type Refusal = Pick<BlockedPod, "reason" | "message">;

async function evict(cluster: Cluster, { metadata = {} }: PodObject, call: Call): Promise<Refusal | undefined> {
  if (metadata.deletionTimestamp !== undefined) return { reason: "Terminating" };
  const { namespace, name, uid } = readIdentity(metadata);
  const body = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { namespace, name },
    deleteOptions: { preconditions: { uid } },
  } as const;
  const bounds = { ...call, deadlineMs: Math.min(call.deadlineMs ?? MAX_MS, MAX_MS) };
  try {
    await cluster.create(evictions, { namespace, name, subresource: "eviction", body }, bounds);
    return undefined;
  } catch (error) {
    if (hasCode(error, "NotFound", "Conflict")) return undefined;
    return { reason: reasonOf(error), message: messageOf(error) };
  }
}

/**
 * A PodDisruptionBudget answers 429 with its own cause, a zone-aware budget answers 429 as an admission webhook; any
 * other 429 comes from the API server itself.
 */
function reasonOf(error: unknown): string {
  if (!(error instanceof RolloutError)) return "ServerError";
  const { message = "", details } = (error.cause ?? {}) as Partial<Status>;
  const isBudget = details?.causes?.some(({ reason }) => reason === "DisruptionBudget") ?? false;
  return error.code === "Throttled" && (isBudget || message.startsWith("admission webhook"))
    ? "DisruptionBudget"
    : error.code;
}
