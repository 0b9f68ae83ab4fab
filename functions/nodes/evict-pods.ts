/** One round of evictions: each pod once, pinned to the UID that was listed. */
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import type { Status } from "../../infra/kubernetes/api-error.ts";
import { hasCode, messageOf, RolloutError } from "../../infra/errors.ts";
import { evictions, type PodObject } from "../../infra/kubernetes/resources.ts";
import { visitEach } from "../../infra/slots.ts";
import { readIdentity } from "../../reconciler/model/identity.ts";
import type { BlockedPod } from "../../reconciler/nodes/shadow.ts";

/** Concurrent evictions: webhooks and budgets judge each of them. */
const AT_ONCE = 5;
/** Milliseconds of one eviction: webhooks may take 10 s. */
const MAX_MS = 15_000;

/**
 * Asks for the eviction of each pod, until the signal of the call fires. Resolves with the pods that were refused or
 * are still terminating. A pod that is gone, or whose name belongs to another pod by now, needs none.
 */
export async function evictPods(cluster: Cluster, pods: readonly PodObject[], call: Call): Promise<BlockedPod[]> {
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
