/** Asks the API server about evictions, by dry runs: whether a webhook judges them, and whether a pod may be evicted. */
import { once } from "../../infra/once.ts";
import { readHooks, seeGuard } from "../../reconciler/budget/act/see-guard.ts";
import type { Guard } from "../../reconciler/budget/guard.ts";
import type { Pod } from "../../reconciler/model/pod.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { explainError } from "../decide/explain-error.ts";
import type { Session } from "../session.ts";
import { hasCode, messageOf } from "../../infra/errors.ts";
import { evictions } from "../../infra/kubernetes/resources.ts";
import type { EvictionAnswer } from "../decide/explain-group.ts";

/** Milliseconds: until then, the port repeats calls that are answered with Retry-After. */
const PROBE_MS = 5000;

/** The guard of evictions in a namespace. Never rejects. */
export type Guards = (namespace: string) => Promise<Guard>;

/** Undefined for a pod that no budget selects, unless its eviction is refused all the same. */
export async function gatherGuard(guards: Guards, pod: Pod, world: World): Promise<Guard | undefined> {
  const guard = await guards(pod.namespace);
  const isSelected = judgeDisruption(world, pod).verdict.reason !== "PodNotInScope";
  return isSelected || isRefusing(guard) ? guard : undefined;
}

/** The webhook cannot be called, and fails closed: every eviction in the namespace is refused, with a budget or without. */
export const isRefusing = ({ reason }: Guard): boolean => reason === "WebhookDown";

/** Reads the registered webhooks once, and asks once in each namespace. */
export function createGuards({ cluster }: Session): Guards {
  const registered = once(async () => await readHooks({ cluster }));
  const asking = {
    cluster,
    call: { deadlineMs: PROBE_MS },
    describe: (error: unknown): string => explainError(error).message,
  };
  return once(async (namespace: string) => await seeGuard(namespace, await registered(), asking));
}

/**
 * Whether a pod may be evicted now, by all webhooks and PodDisruptionBudgets. Not to be asked beside the original: its
 * webhook counts a pod as evicted in a dry run, too. Never rejects: without an answer it says why there is none.
 */
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
    await cluster.create(evictions, { ...metadata, subresource: "eviction", body }, { deadlineMs: PROBE_MS });
    return { kind: "allowed" };
  } catch (error) {
    const { message, hint } = explainError(error);
    const isRefusal = hasCode(error, "Throttled", "Invalid") || (hasCode(error, "Forbidden") && hint === undefined);
    return isRefusal ? { kind: "refused", message: messageOf(error) } : { kind: "unknown", why: message };
  }
}
