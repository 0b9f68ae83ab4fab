/** Asks the eviction webhook of a namespace whether it answers, by an eviction that evicts nothing. */
import { hasCode, messageOf } from "../../../infra/errors.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { evictions } from "../../../infra/kubernetes/resources.ts";
import { PROBE, PROBE_ANSWER, type EvictionHook, type Probe } from "../guard.ts";

/**
 * No pod has this name: webhooks are asked before the API server looks for the pod. A webhook that does not know our
 * probe, such as the original's, would count an allowed pod as evicted, even in a dry run.
 */
const NO_POD = "zonewise-probe";
/** No pod has this UID. */
const NO_UID = "00000000-0000-0000-0000-000000000000";

/** `User "system:serviceaccount:a:b" cannot create resource "pods/eviction" …`, as RBAC says it, and no webhook. */
const NO_RIGHT = /\bcannot create resource "pods\/eviction"/;

/**
 * The eviction is a dry run, bound to a UID, and our webhook refuses it, whatever the budget says. `describe` words an
 * error for its reader. Never rejects.
 */
export async function askWebhook(
  { cluster, call }: { readonly cluster: Cluster; readonly call: Call },
  namespace: string,
  { hooks, describe = messageOf }: { hooks: readonly EvictionHook[]; describe?: (error: unknown) => string },
): Promise<Probe> {
  const metadata = { namespace, name: NO_POD, annotations: { [PROBE]: "true" } };
  const deleteOptions = { preconditions: { uid: NO_UID }, dryRun: ["All"] } as const;
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions } as const;
  try {
    await cluster.create(evictions, { namespace, name: NO_POD, subresource: "eviction", body }, call);
    return { result: "allowed" };
  } catch (error) {
    return readAnswer(error, hooks, describe);
  }
}

function readAnswer(error: unknown, hooks: readonly EvictionHook[], describe: (error: unknown) => string): Probe {
  const why = messageOf(error);
  const isOurs = hooks.some(({ name }) => why.includes(`admission webhook "${name}" denied the request`));
  if (isOurs || why.includes(PROBE_ANSWER)) return { result: "answered" };
  // Every webhook allowed it, and then the API server found no such pod.
  if (hasCode(error, "NotFound", "Conflict")) return { result: "allowed" };
  if (hasCode(error, "WebhookFailed") || /failed calling webhook/.test(why)) return { result: "failed", why };
  return { result: hasCode(error, "Forbidden") && NO_RIGHT.test(why) ? "notTried" : "unclear", why: describe(error) };
}
