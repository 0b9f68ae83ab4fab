/**
 * Asks the API server, with all its webhooks and PodDisruptionBudgets, whether a pod may be evicted now. Nothing is
 * evicted. Not to be asked beside the original: its webhook counts a pod as evicted in a dry run, too.
 */
import { hasCode, messageOf } from "../../infra/errors.ts";
import { evictions } from "../../infra/kubernetes/resources.ts";
import type { Pod } from "../../reconciler/model/pod.ts";
import { explainError } from "../decide/explain-error.ts";
import type { EvictionAnswer } from "../decide/explain-group.ts";
import type { Session } from "../session.ts";

/** Milliseconds: until then, the port repeats calls that are answered with Retry-After. */
const ASK_MS = 5000;

/** Sends an Eviction as a dry run. Never rejects: without an answer it says why there is none. */
export async function askEviction(
  { cluster }: Session,
  { namespace, name, uid }: Pick<Pod, "namespace" | "name" | "uid">,
): Promise<EvictionAnswer> {
  const metadata = { namespace, name };
  const body = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata,
    deleteOptions: { preconditions: { uid }, dryRun: ["All"] },
  } as const;
  try {
    await cluster.create(evictions, { ...metadata, subresource: "eviction", body }, { deadlineMs: ASK_MS });
    return { kind: "allowed" };
  } catch (error) {
    const { message, hint } = explainError(error);
    const isRefusal = hasCode(error, "Throttled", "Invalid") || (hasCode(error, "Forbidden") && hint === undefined);
    return isRefusal ? { kind: "refused", message: messageOf(error) } : { kind: "unknown", why: message };
  }
}
