/** Reads which webhooks are registered, and asks the eviction webhook of a namespace whether it answers (guard.ts). */
import { hasCode, messageOf } from "../../../infra/errors.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { collect, noteUnread } from "../../../infra/kubernetes/collect.ts";
import {
  evictions,
  mutatingWebhooks,
  validatingWebhooks,
  type WebhookConfiguration,
} from "../../../infra/kubernetes/resources.ts";
import {
  EVICTION_PATHS,
  type Guard,
  type Hook,
  isUnregistered,
  judgeGuard,
  PROBE,
  PROBE_ANSWER,
  type Probe,
  type Registered,
} from "../guard.ts";

interface Source {
  readonly cluster: Cluster;
  readonly call?: Call | undefined;
}

/** The webhooks at our paths that get evictions. Never rejects. */
export async function readHooks({ cluster, call }: Source): Promise<Registered> {
  const unread: string[] = [];
  const [mutating, validating] = await Promise.all([
    collect(cluster.list(mutatingWebhooks, {}, call)).catch(noteUnread(unread, "mutating webhook configurations")),
    collect(cluster.list(validatingWebhooks, {}, call)).catch(noteUnread(unread, "validating webhook configurations")),
  ]);
  const found = [...(mutating ?? []), ...(validating ?? [])].flatMap(({ metadata, webhooks = [] }) =>
    webhooks.filter(getsEvictions).map((entry) => readHook(metadata?.name ?? "", entry)),
  );
  return { hooks: unread.length > 0 && found.length === 0 ? undefined : found, unread };
}

type Entry = NonNullable<WebhookConfiguration["webhooks"]>[number];

/** As rules name them. */
const EVICTIONS: ReadonlySet<string> = new Set(["pods/eviction", "pods/*", "*/eviction", "*/*"]);

function getsEvictions({ clientConfig, rules = [] }: Entry): boolean {
  const path = clientConfig.service
    ? (clientConfig.service.path ?? "")
    : (URL.parse(clientConfig.url ?? "")?.pathname ?? "");
  if (!EVICTION_PATHS.includes(path.replace(/\/$/, ""))) return false;
  const has = (among: readonly string[] = [], name: string): boolean => among.includes("*") || among.includes(name);
  return rules.some(
    ({ operations, apiGroups, apiVersions, resources = [], scope = "*" }) =>
      has(operations, "CREATE") &&
      has(apiGroups, "") &&
      has(apiVersions, "v1") &&
      resources.some((one) => EVICTIONS.has(one)) &&
      scope !== "Cluster",
  );
}

const readHook = (configuration: string, entry: Entry): Hook => ({
  configuration,
  name: entry.name,
  failsOpen: entry.failurePolicy === "Ignore",
  service: entry.clientConfig.service && `${entry.clientConfig.service.namespace}/${entry.clientConfig.service.name}`,
});

interface Asking extends Source {
  readonly call: Call;
  /** Words an error for the reader. */
  readonly describe?: (error: unknown) => string;
}

/** Judges the guard of a namespace; asks the webhook, unless none is registered. Never rejects. */
export async function seeGuard(namespace: string, registered: Registered, asking: Asking): Promise<Guard> {
  const probe = isUnregistered(registered) ? undefined : await askWebhook(namespace, registered, asking);
  return judgeGuard(namespace, registered, probe);
}

/**
 * No pod has this name: webhooks are asked before the API server looks for the pod. A webhook that does not know our
 * probe, such as the original's, would count an allowed pod as evicted, even in a dry run.
 */
const NO_POD = "zonewise-probe";
/** No pod has this UID. */
const NO_UID = "00000000-0000-0000-0000-000000000000";

/** The eviction is a dry run, bound to a UID, and our webhook refuses it, whatever the budget says. Never rejects. */
async function askWebhook(
  namespace: string,
  { hooks = [] }: Registered,
  { cluster, call, describe = messageOf }: Asking,
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

/** `User "system:serviceaccount:a:b" cannot create resource "pods/eviction" …`, as RBAC says it, and no webhook. */
const NO_RIGHT = /\bcannot create resource "pods\/eviction"/;

function readAnswer(error: unknown, hooks: readonly Hook[], describe: (error: unknown) => string): Probe {
  const why = messageOf(error);
  const by = /webhook "([^"]+)"/.exec(why)?.[1] ?? "the eviction webhook";
  const isOurs = hooks.some(({ name }) => name === by) && why.includes("denied the request");
  if (isOurs || why.includes(PROBE_ANSWER)) return { result: "answered", by };
  // Every webhook allowed it, and then the API server found no such pod.
  if (hasCode(error, "NotFound", "Conflict")) return { result: "allowed" };
  if (hasCode(error, "WebhookFailed")) return { result: "failed", by, why };
  return { result: isWithoutRight(error) ? "notTried" : "unclear", why: describe(error) };
}

const isWithoutRight = (error: unknown): boolean => hasCode(error, "Forbidden") && NO_RIGHT.test(messageOf(error));
