/** Reads the configuration of a process from its environment. */
import type * as z from "zod";
import { parseGoDuration } from "../duration.ts";
import { RolloutError } from "../errors.ts";
import { ENVIRONMENT, VARIABLE_ROWS, type VariableName } from "./variables.ts";
import { countEdits } from "../edit-distance.ts";

export type Configuration = ReturnType<typeof arrange>;
export type WebhookSettings = Configuration["webhooks"];

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ConfigurationOptions {
  /** True in the process that ticks under the Lease: its Lease must be shorter than a run. */
  readonly holdsLease?: boolean;
}

/**
 * The configuration; throws `BadConfiguration`, which names each wrong variable, its value and the allowed values. An
 * empty variable counts as unset.
 */
export function readConfiguration(env: Environment, { holdsLease = false }: ConfigurationOptions = {}): Configuration {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const values = complete(set);
  const parsed = ENVIRONMENT.safeParse(values);
  const wrong = new Set<unknown>([
    ...(parsed.error?.issues ?? []).map((issue) => issue.path[0]),
    ...disagreements(set),
    ...(holdsLease ? findLongLease(values) : []),
  ]);
  const problems = [...describeWrong(wrong, set), ...describeUnknown(set)];
  if (!parsed.success || problems.length > 0)
    throw new RolloutError("BadConfiguration", `bad configuration: ${problems.join("; ")}`);
  return arrange(parsed.data);
}

function complete(set: Environment): Environment {
  return Object.fromEntries(
    VARIABLE_ROWS.map(([name, row]) => [name, set[name] ?? row.default ?? set[row.fallback ?? ""]]),
  );
}

/** Problems of combinations of variables (§8.2). */
function disagreements(set: Environment): VariableName[] {
  const wrong: VariableName[] = [];
  const {
    KUBERNETES_API_URL: apiUrl,
    KUBERNETES_CONFIG_FILE: file,
    KUBERNETES_CLIENT_QPS: qps,
    KUBERNETES_CLIENT_BURST: burst,
  } = set;
  if (apiUrl === undefined && file !== undefined) wrong.push("KUBERNETES_API_URL");
  if (apiUrl !== undefined && file === undefined) wrong.push("KUBERNETES_CONFIG_FILE");
  if (Number(qps) > 0 && Number(burst) < 1) wrong.push("KUBERNETES_CLIENT_BURST");
  return wrong;
}

/** With a Lease as long as a run, every run after a killed one would only wait for the Lease and never tick. */
function findLongLease(values: Environment): VariableName[] {
  const [leaseMs, budgetMs] = [
    parseGoDuration(values["LEASE_DURATION"] ?? ""),
    parseGoDuration(values["RECONCILE_TIME_BUDGET"] ?? ""),
  ];
  const isLong = leaseMs !== undefined && budgetMs !== undefined && wholeSeconds(leaseMs) * 1000 >= budgetMs;
  return isLong ? ["LEASE_DURATION", "RECONCILE_TIME_BUDGET"] : [];
}

const wholeSeconds = (ms: number): number => Math.ceil(ms / 1000);

function describeWrong(wrong: ReadonlySet<unknown>, set: Environment): string[] {
  const guilty = VARIABLE_ROWS.filter(
    ([name, { fallback }]) => wrong.has(name) && !(set[name] === undefined && fallback !== undefined),
  );
  return guilty.map(([name, row]) => {
    const value = set[name];
    const unset = row.default === undefined ? "is not set" : `is ${row.default} by default`;
    return `${name} ${value === undefined ? unset : `is ${JSON.stringify(hidePassword(value))}`}, allowed is ${row.allowed}`;
  });
}

function hidePassword(value: string): string {
  return value.replace(/\/\/.*@/, "//***@");
}

function arrange(given: z.output<typeof ENVIRONMENT>) {
  const { KUBERNETES_API_URL: apiUrl, KUBERNETES_CONFIG_FILE: configFile } = given;
  return {
    /** The namespace of this process; the Lease is in it. */
    namespace: given.KUBERNETES_NAMESPACE,
    /** The namespaces whose groups this process manages. */
    namespaces: given.NAMESPACES.includes("*") ? ("*" as const) : given.NAMESPACES,
    reconcileIntervalMs: given.RECONCILE_INTERVAL,
    timeBudgetMs: given.RECONCILE_TIME_BUDGET,
    lease: { name: given.LEASE_NAME, durationSeconds: wholeSeconds(given.LEASE_DURATION) },
    /** Name of this process in the Lease. */
    identity: given.POD_NAME,
    connection: {
      explicit: apiUrl !== undefined && configFile !== undefined ? { apiUrl, configFile } : undefined,
      kubeconfig: given.KUBECONFIG,
    },
    clientTimeoutMs: given.KUBERNETES_CLIENT_TIMEOUT,
    rate: { qps: given.KUBERNETES_CLIENT_QPS, burst: given.KUBERNETES_CLIENT_BURST },
    clusterDomain: given.KUBERNETES_CLUSTER_DOMAIN,
    podTimeoutMs: given.PODS_CLIENT_TIMEOUT,
    zoneTracker: given.ZONE_TRACKER_CONFIG_MAP_NAME,
    useZoneTracker: given.USE_ZONE_TRACKER,
    webhooks: {
      requestTimeoutMs: given.SERVER_TLS_REQUEST_TIMEOUT,
      /** If set, callers must present a token for this audience. */
      audience: given.WEBHOOK_AUDIENCE,
      certFile: given.SERVER_TLS_CERT_FILE,
      keyFile: given.SERVER_TLS_KEY_FILE,
      tlsPort: given.SERVER_TLS_PORT,
      port: given.SERVER_PORT,
      address: given.SERVER_ADDRESS,
    },
    log: { level: given.LOG_LEVEL, format: given.LOG_FORMAT },
    pushgatewayUrl: given.PUSHGATEWAY_URL,
    nodeUpdates: {
      enabled: given.NODE_UPDATES,
      namespace: given.NODE_UPDATES_NAMESPACE,
      maxConcurrent: given.MAX_CONCURRENT_UPDATE,
      cron: given.SCHEDULER_CRON_EXPRESSION,
      ownNode: given.MY_NODE_NAME,
    },
    phasedSuccessWhen: given.PHASED_SUCCESS_WHEN,
    /** Empty for all. */
    prometheusAllowedHosts: given.PROMETHEUS_ALLOWED_HOSTS ?? [],
    statusPageHosts: given.STATUS_PAGE_HOSTS ?? [],
    clusterName: given.CLUSTER_NAME ?? "",
    certificates: {
      /** False if another tool makes the certificate. */
      selfSigned: given.SERVER_TLS_SELF_SIGNED_CERT_ENABLED,
      secretName: given.SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME,
      dnsNames: given.SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME ?? [`rollout-operator.${given.KUBERNETES_NAMESPACE}.svc`],
      organization: given.SERVER_TLS_SELF_SIGNED_CERT_ORG,
      validityMs: given.SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION,
      /** Only our own CA is injected into webhook configurations. */
      inject: given.SERVER_TLS_SELF_SIGNED_CERT_ENABLED && given.WEBHOOKS_UPDATE_CA_BUNDLE,
    },
  };
}

/** Prefixes that only we use: an unknown variable with one of them is refused. */
const OWN_PREFIXES = [
  "SERVER_TLS_",
  "SERVER_CLUSTER_VALIDATION_",
  "KUBERNETES_CLIENT_",
  "NODE_UPDATE",
  "PODS_CLIENT_",
  "PROMETHEUS_ALLOWED_",
  "RECONCILE_",
  "STATUS_PAGE_",
  "USE_ZONE_TRACKER",
  "WEBHOOK_AUDIENCE",
  "WEBHOOKS_UPDATE_",
  "ZONE_TRACKER_",
];

const NAMES = VARIABLE_ROWS.map(([name]) => name);
const KNOWN = new Set(NAMES);

/** The problems of unknown names with a prefix of ours or the original's, each with the nearest name of that prefix. */
function describeUnknown(set: Environment): string[] {
  return Object.keys(set).flatMap((name) => {
    const prefix = KNOWN.has(name) ? undefined : OWN_PREFIXES.find((prefix) => name.startsWith(prefix));
    if (prefix === undefined) return [];
    const alike = NAMES.filter((known) => known.startsWith(prefix));
    const [nearest] = alike.toSorted((one, other) => countEdits(name, one) - countEdits(name, other));
    const hint = nearest === undefined ? "" : `the nearest is ${nearest}, and `;
    return [`${name} is not known; ${hint}docs/reference/variables.md lists all`];
  });
}
