/**
 * Takes a node out of service and gives it back.
 *
 * A drain, one round a request: cordon -> list the pods -> evict those that have to leave -> record the rest. Any
 * replica may run the next round; each round starts from the state that it finds. The node counts as drained only if a
 * round finds it cordoned by an earlier round, and no pod left.
 *
 *   cordoned now, or pods left --503, Retry-After--> again --> ... --> no pod left --200--> the agent may announce its reboot
 *
 * A node whose policy is frozen, or which no policy has in a slot, never counts as drained and does not reboot (§17.2),
 * even if it announced the reboot before and its host did not get the call. Given back are only our own marks.
 */
import { startDeadline } from "../../infra/deadline.ts";
import { hasCode, messageOf, RolloutError } from "../../infra/errors.ts";
import type { Status } from "../../infra/kubernetes/api-error.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import type { CustomObject } from "../../infra/kubernetes/custom-resources.ts";
import { readIdentity } from "../../infra/kubernetes/identity.ts";
import { evictions, type Node, nodes, type PodObject, pods } from "../../infra/kubernetes/resources.ts";
import { retryOnConflict } from "../../infra/kubernetes/retry-on-conflict.ts";
import { visitEach } from "../../infra/slots.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { readNodeHealth } from "../../reconciler/nodes/node.ts";
import { isOurs, markNode, type NodePatch, unmarkNode } from "../../reconciler/nodes/node-marks.ts";
import { findEvictable } from "../../reconciler/nodes/node-pod.ts";
import type { Policy } from "../../reconciler/nodes/policy.ts";
import type { BlockedPod, DrainStatus } from "../../reconciler/nodes/shadow.ts";
import { type NodeAnswer, type NodeRequest, refuseNode } from "./node-answer.ts";
import { findPolicy, getShadow, isDrainWanted, patchStatus, readShadowStatus, whyNoReboot } from "./shadow.ts";

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
export async function cordonAndDrain(request: NodeRequest): Promise<NodeAnswer> {
  const shadow = await getShadow(request);
  if (!isDrainWanted(shadow)) return refuseNode("Conflict", `${shadow.metadata.name} wants no reboot`);
  const uid = shadow.metadata.uid ?? "";
  const isNew = await changeNode(request, (node) => markNode(node, { shadowUid: uid, exclude: false }));
  const left = findEvictable(await listPods(request));
  const blocked = await evictAll(request, left);
  const policy = await findPolicy(request);
  const drain = describeRound({ now: request.clock.now(), shadow, left, blocked, policy });
  if (!(await record(request, shadow, drain))) return notYet(drain, NEXT_ROUND_S);
  if (isNew) return notYet(drain, AFTER_CORDON_S);
  if (drain.remaining > 0 && drain["forced"] !== true) return notYet(drain, NEXT_ROUND_S);
  const why = whyNoReboot(policy);
  return why === undefined ? { status: 200, body: answerOf(drain) } : refuseNode("Unavailable", why);
}

async function listPods({ cluster, node, call }: NodeRequest): Promise<PodObject[]> {
  const found: PodObject[] = [];
  for await (const { items } of cluster.list(pods, { fieldSelector: `spec.nodeName=${node.metadata?.name}` }, call))
    found.push(...items);
  return found;
}

interface Round {
  readonly now: number;
  readonly policy: Policy | undefined;
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
const isOver = ({ drain }: Policy, startedAt: number, now: number): boolean =>
  drain.onTimeout === "Reboot" && now >= startedAt + drain.timeoutSeconds * 1000;

/**
 * Writes the progress; resolves with false if that fails, for example because the shadow has changed: the next round
 * reads the shadow again.
 */
async function record(request: NodeRequest, shadow: CustomObject, drain: DrainStatus): Promise<boolean> {
  try {
    await patchStatus(request, shadow, { drain });
    return true;
  } catch (error) {
    request.log.info("the progress of a drain was not recorded; the next round continues", {
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

/** Concurrent evictions: webhooks and budgets judge each of them. */
const AT_ONCE = 5;
/** Milliseconds of one eviction: webhooks may take 10 s. */
const MAX_MS = 15_000;

/**
 * Asks for the eviction of each pod once, pinned to the UID that was listed, within `EVICTIONS_SHARE` of the request's
 * time. Resolves with the pods that were refused or are still terminating. A pod that is gone, or whose name belongs to
 * another pod by now, needs none.
 */
async function evictAll({ cluster, clock, call }: NodeRequest, pods: readonly PodObject[]): Promise<BlockedPod[]> {
  using deadline = startDeadline(Math.floor((call.deadlineMs ?? 0) * EVICTIONS_SHARE), undefined, clock);
  const { signal } = deadline;
  const blocked: BlockedPod[] = [];
  await visitEach(pods, { atOnce: AT_ONCE, signal }, async (pod) => {
    const reason = await evict(cluster, pod, { ...call, signal });
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

/** Cordons the node and excludes it from load balancers, in one patch, if its reboot is wanted. */
export async function excludeFromLoadBalancers(request: NodeRequest): Promise<NodeAnswer> {
  const shadow = await getShadow(request);
  if (!isDrainWanted(shadow)) return refuseNode("Conflict", `${shadow.metadata.name} wants no reboot`);
  await changeNode(request, (node) => markNode(node, { shadowUid: shadow.metadata.uid ?? "", exclude: true }));
  return { status: 200 };
}

/** Undoes our exclusion alone: the agents of the original uncordon right afterwards. */
export const removeExclusion = (request: NodeRequest): Promise<NodeAnswer> => giveBack(request, "exclusion");

/** Undoes our cordon and our exclusion, and clears the progress of the drain. */
export const uncordon = (request: NodeRequest): Promise<NodeAnswer> => giveBack(request, "all");

/**
 * An announced reboot may happen at any moment: until the agent is back, the node keeps its marks. So does a node that
 * is not Ready.
 */
async function giveBack(request: NodeRequest, what: "all" | "exclusion"): Promise<NodeAnswer> {
  const shadow = await getShadow(request);
  const status = readShadowStatus(shadow);
  const { node } = request;
  if (status?.rebooting)
    return refuseNode("Conflict", `${shadow.metadata.name} is rebooting since ${status.rebooting.at}`);
  if (isOurs(node) && !isReady(node))
    return refuseNode("Conflict", `node ${node.metadata?.name} is not Ready: it stays cordoned until it is`);
  await changeNode(request, (now) => (isReady(now) ? unmarkNode(now, what) : undefined));
  if (what === "all" && status?.drain) await patchStatus(request, shadow, { drain: null });
  return { status: 200 };
}

const isReady = ({ status }: Node): boolean => readNodeHealth(status).ready;

/**
 * Patches the node until nothing is left to do; reads it again after a conflict. Resolves with true if there was
 * something to do.
 */
async function changeNode(request: NodeRequest, decide: (node: Node) => NodePatch | undefined): Promise<boolean> {
  const { cluster, node: first, call } = request;
  const name = first.metadata?.name ?? "";
  const attempt = async (number: number): Promise<boolean> => {
    const body = decide(number === 1 ? first : await cluster.get(nodes, { name }, call));
    if (!body) return number > 1;
    await cluster.patch(nodes, { name, type: "merge", body }, call);
    return true;
  };
  return await retryOnConflict(attempt, request);
}
