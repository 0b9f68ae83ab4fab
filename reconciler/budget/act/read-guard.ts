/** Reads the facts that show whether an eviction webhook guards a namespace; the caller sends the probe. */
import { absent } from "../../../infra/errors.ts";
import { isInjected } from "../../../infra/certs/configurations.ts";
import { findIssuer, readCertificates } from "../../../infra/certs/x509.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { collect, noteUnread } from "../../../infra/kubernetes/collect.ts";
import {
  endpointSlices,
  mutatingWebhooks,
  services,
  validatingWebhooks,
  type WebhookConfiguration,
} from "../../../infra/kubernetes/resources.ts";
import { EVICTION_PATHS, type EvictionHook, type GuardFacts } from "../guard.ts";

export interface GuardSource {
  readonly cluster: Cluster;
  readonly call?: Call;
  /**
   * Reads the served certificate chain, in PEM, for callers that may read its Secret. It says nothing about
   * configurations whose CA bundle others maintain.
   */
  readonly readServed?: ((call: Call | undefined) => Promise<string | undefined>) | undefined;
  /** False for an entry that guards nothing that is asked about: its Service is not read. */
  readonly matters?: (hook: EvictionHook) => boolean;
}

type Webhook = NonNullable<WebhookConfiguration["webhooks"]>[number];

/** The facts that are read once for all namespaces. */
export type GuardReading = Pick<GuardFacts, "hooks" | "endpoints" | "unread">;

/** The webhooks to find: those of evictions, or those of deletions of pods. */
export interface Asked {
  readonly paths: readonly string[];
  readonly operation: "CREATE" | "DELETE";
  /** As rules name them. */
  readonly resources: readonly string[];
}

const EVICTIONS: Asked = {
  paths: EVICTION_PATHS,
  operation: "CREATE",
  resources: ["pods/eviction", "pods/*", "*/eviction", "*/*"],
};

/** The webhooks of evictions. Never rejects: `unread` names the parts that could not be read. */
export const readHooks = async (source: GuardSource): Promise<GuardReading> => await readHooksOf(EVICTIONS, source);

/** Never rejects: what cannot be read is said. */
export async function readHooksOf(asked: Asked, source: GuardSource): Promise<GuardReading> {
  const unread: string[] = [];
  const note = (what: string) => noteUnread(unread, what);
  const { cluster, call } = source;
  const mutatingPages = cluster.list(mutatingWebhooks, {}, call);
  const validatingPages = cluster.list(validatingWebhooks, {}, call);
  const [mutating, validating, served] = await Promise.all([
    collect(mutatingPages).catch(note("mutating webhook configurations")),
    collect(validatingPages).catch(note("validating webhook configurations")),
    readServed(source),
  ]);
  const all = [...(mutating ?? []), ...(validating ?? [])].flatMap((configuration) =>
    (configuration.webhooks ?? [])
      .filter((hook) => isFor(asked, hook))
      .map((hook) =>
        readHook(configuration.metadata?.name ?? "", hook, isInjected(configuration) ? served : undefined),
      ),
  );
  const endpoints = new Map<string, number>();
  const mattering = all.filter((hook) => source.matters?.(hook) ?? true);
  for (const service of new Set(mattering.flatMap((hook) => hook.service ?? []))) {
    const count = await countReady(source, service).catch(note(`Service ${service} and its endpointslices`));
    if (count !== undefined) endpoints.set(service, count);
  }
  return { hooks: mutating && validating ? all : all.length > 0 ? all : undefined, endpoints, unread };
}

/** True for an entry that the API server calls for every such request, at a path of ours. */
function isFor({ paths, operation, resources: named }: Asked, { clientConfig, rules = [] }: Webhook): boolean {
  const path = clientConfig.service ? (clientConfig.service.path ?? "") : pathOf(clientConfig.url);
  if (!paths.includes(path.replace(/\/$/, ""))) return false;
  const has = (among: readonly string[] = [], ...names: readonly string[]): boolean =>
    among.some((one) => one === "*" || names.includes(one));
  return rules.some(
    ({ operations, apiGroups, apiVersions, resources, scope = "*" }) =>
      has(operations, operation) &&
      has(apiGroups, "") &&
      has(apiVersions, "v1") &&
      (resources ?? []).some((one) => named.includes(one)) &&
      scope !== "Cluster",
  );
}

const pathOf = (url = ""): string => (URL.canParse(url) ? new URL(url).pathname : "");

function readHook(configuration: string, hook: Webhook, served: Served): EvictionHook {
  const { name, failurePolicy, clientConfig, namespaceSelector, objectSelector, matchConditions = [] } = hook;
  const { service, caBundle } = clientConfig;
  return {
    configuration,
    name,
    failsOpen: failurePolicy === "Ignore",
    namespaceSelector: namespaceSelector ?? {},
    objectSelector: objectSelector ?? {},
    hasConditions: matchConditions.length > 0,
    service: service && `${service.namespace}/${service.name}`,
    caProblem: service ? findCaProblem(caBundle, served) : undefined,
  };
}

type Served = ReturnType<typeof readCertificates> | undefined;

/** The chain in the Secret; undefined if it cannot be read. */
async function readServed({ readServed, call }: GuardSource): Promise<Served> {
  try {
    return readCertificates((await readServed?.(call)) ?? "");
  } catch {
    return undefined;
  }
}

function findCaProblem(caBundle: string | undefined, served: Served): string | undefined {
  if (!caBundle) return "it has no caBundle";
  try {
    const cas = readCertificates(Buffer.from(caBundle, "base64").toString());
    if (!served || findIssuer(served, cas)) return undefined;
    return "its caBundle does not verify the certificate of the functions";
  } catch {
    return "its caBundle is no certificate in PEM";
  }
}

async function countReady({ cluster, call }: GuardSource, service: string): Promise<number> {
  const [namespace = "", name = ""] = service.split("/");
  const found = await cluster.get(services, { namespace, name }, call).catch(absent);
  // The API server connects to its host, and it has no endpoints.
  if (found?.spec?.type === "ExternalName") return 1;
  const labelSelector = `kubernetes.io/service-name=${name}`;
  const slices = found ? await collect(cluster.list(endpointSlices, { namespace, labelSelector }, call)) : [];
  // Absent means ready: https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#conditions
  return slices.flatMap(({ endpoints }) => endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false)
    .length;
}
