/**
 * One round of a drain: cordon -> list the pods -> evict those that have to leave -> record what remains. It may be
 * repeated by any replica; each round goes on from what it finds. Only a round that finds the node cordoned from
 * before, and no pod left, says that the node is drained.
 *
 *   cordoned now, or pods left --503, Retry-After--> again --> ... --> no pod left --200--> the agent may announce its reboot
 */
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { type CustomObject, nodeUpdatePolicies, type PodObject, pods } from "../../infra/kubernetes/resources.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { findEvictable } from "../../reconciler/nodes/node-pod.ts";
import { markNode } from "../../reconciler/nodes/node-marks.ts";
import { isInvalid, readPolicy } from "../../reconciler/nodes/policy.ts";
import type { BlockedPod, DrainStatus } from "../../reconciler/nodes/shadow.ts";
import { evictPods } from "./evict-pods.ts";
import { type NodeAnswer, type NodeRequest, type NodeRoute, refuse } from "./node-answer.ts";
import { changeNode } from "./node-service.ts";
import { getShadow, isDrainWanted, patchStatus, readShadowStatus, type ShadowTools } from "./shadow-store.ts";

export interface DrainTools extends ShadowTools {
  /** Milliseconds of draining after which the node reboots with the pods that remain; undefined for never. */
  readonly forceAfterMs: (nodeName: string, call: Call) => Promise<number | undefined>;
}

/** Seconds until the next round. */
const NEXT_ROUND_S = 5;
/** Seconds after the cordon until the list is complete: a scheduler that has not seen it yet may bind a pod. */
const AFTER_CORDON_S = 2;
/** Share of the request's time for evictions; the rest is for the record. */
const EVICTIONS_SHARE = 0.7;
const MAX_RECORDED = 20;

/**
 * 200 once the node is drained, or its drain has been given up as its policy says; otherwise 503. 409 if its reboot is
 * not wanted.
 */
export function cordonAndDrain(tools: DrainTools): NodeRoute {
  return async (request) => {
    const shadow = await getShadow(tools, request);
    if (!isDrainWanted(shadow)) return refuse("Conflict", `${shadow.metadata.name} wants no reboot`);
    const uid = shadow.metadata.uid ?? "";
    const isNew = await changeNode(tools, request, (node) => markNode(node, { shadowUid: uid, exclude: false }));
    const left = findEvictable(await listPods(tools, request));
    const signal = AbortSignal.timeout(Math.floor((request.call.deadlineMs ?? 0) * EVICTIONS_SHARE));
    const blocked = await evictPods(tools.cluster, left, { ...request.call, signal });
    const drain = await describeRound(tools, request, { shadow, left, blocked });
    if (!(await record(tools, request, { shadow, drain }))) return notYet(drain, NEXT_ROUND_S);
    if (isNew) return notYet(drain, AFTER_CORDON_S);
    return drain.remaining === 0 || drain["forced"] === true
      ? { status: 200, body: answerOf(drain) }
      : notYet(drain, NEXT_ROUND_S);
  };
}

async function listPods({ cluster }: DrainTools, { node, call }: NodeRequest): Promise<PodObject[]> {
  const found: PodObject[] = [];
  for await (const { items } of cluster.list(pods, { fieldSelector: `spec.nodeName=${node.metadata?.name}` }, call))
    found.push(...items);
  return found;
}

interface Round {
  readonly shadow: CustomObject;
  readonly left: readonly PodObject[];
  readonly blocked: readonly BlockedPod[];
}

async function describeRound(
  { clock, forceAfterMs }: DrainTools,
  { node, call }: NodeRequest,
  { shadow, left, blocked }: Round,
): Promise<DrainStatus> {
  const now = clock.now();
  const startedAt = readShadowStatus(shadow)?.drain?.started_at ?? formatTimestamp(now);
  const afterMs = left.length === 0 ? undefined : await forceAfterMs(node.metadata?.name ?? "", call);
  const isForced = afterMs !== undefined && now >= (parseTimestamp(startedAt) ?? now) + afterMs;
  return {
    started_at: startedAt,
    round_at: formatTimestamp(now),
    remaining: left.length,
    blocked: blocked.slice(0, MAX_RECORDED),
    ...(isForced && { forced: true }),
  };
}

/**
 * Writes the progress; resolves with false if the shadow has changed meanwhile: the next round looks at what it wants
 * now.
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
 * How long the drain of a node may take before its reboot is forced: milliseconds, or undefined if no policy has the
 * node in one of its slots and forces its reboot.
 */
export async function forceAfterMs(cluster: Cluster, nodeName: string, call: Call): Promise<number | undefined> {
  for await (const { items } of cluster.list(nodeUpdatePolicies, {}, call))
    for (const policy of items.map(readPolicy)) {
      if (isInvalid(policy) || policy.drain.onTimeout !== "Reboot") continue;
      if (policy.status.active.some(({ node }) => node === nodeName)) return policy.drain.timeoutSeconds * 1000;
    }
  return undefined;
}
