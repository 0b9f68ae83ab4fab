/** The process's configuration, read from its environment. */
import type * as z from "zod";
import type { ConnectionSource } from "./connection.ts";
import { RolloutError } from "./errors.ts";
import type { LogLevel } from "./log.ts";
import type { Rate } from "./rate-limit.ts";
import { ENVIRONMENT, VARIABLE_ROWS, type VariableName } from "./variables.ts";

export interface Configuration {
  /** Our own namespace: where the Lease is. */
  readonly namespace: string;
  /** The namespaces whose groups are ours. */
  readonly namespaces: readonly string[] | "*";
  readonly reconcileIntervalMs: number;
  readonly timeBudgetMs: number;
  readonly lease: { readonly name: string; readonly durationSeconds: number };
  /** Name of this process in the Lease, where the environment tells. */
  readonly identity: string | undefined;
  readonly connection: ConnectionSource;
  readonly clientTimeoutMs: number;
  readonly rate: Rate;
  /** The domain at the end of pods' DNS names. */
  readonly clusterDomain: string;
  readonly podTimeoutMs: number;
  /** Name of the ConfigMap that tells when each zone was last scaled down. */
  readonly zoneTracker: string;
  readonly useZoneTracker: boolean;
  readonly webhooks: WebhookConfiguration;
  readonly logLevel: LogLevel;
  readonly pushgatewayUrl: string | undefined;
  readonly certificates: CertificateConfiguration;
}

export interface CertificateConfiguration {
  /** False: somebody else makes the certificate. */
  readonly selfSigned: boolean;
  readonly secretName: string;
  readonly dnsNames: readonly string[];
  readonly organization: string;
  readonly validityMs: number;
  /** Whether the CA is put into webhook configurations; never one that is not ours. */
  readonly inject: boolean;
}

export interface WebhookConfiguration {
  readonly requestTimeoutMs: number;
  /** Callers must show a token for it, where it is set. */
  readonly audience: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly tlsPort: number;
  readonly port: number;
  readonly address: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The configuration; throws `BadConfiguration` that names every wrong variable, its value and what is allowed. An empty variable counts as not set. */
export function readConfiguration(env: Environment): Configuration {
  const set: Environment = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = ENVIRONMENT.safeParse(complete(set));
  const wrong = new Set<unknown>([...(parsed.error?.issues ?? []).map((issue) => issue.path[0]), ...disagreements(set)]);
  if (!parsed.success || wrong.size > 0) throw refuse(wrong, set);
  return arrange(parsed.data);
}

function complete(set: Environment): Environment {
  return Object.fromEntries(VARIABLE_ROWS.map(([name, row]) => [name, set[name] ?? row.default ?? set[row.fallback ?? ""]]));
}

/** Variables that are wrong only together [8.2]. */
function disagreements(set: Environment): VariableName[] {
  const wrong: VariableName[] = [];
  const { KUBERNETES_API_URL: apiUrl, KUBERNETES_CONFIG_FILE: file, KUBERNETES_CLIENT_QPS: qps, KUBERNETES_CLIENT_BURST: burst } = set;
  if (apiUrl === undefined && file !== undefined) wrong.push("KUBERNETES_API_URL");
  if (apiUrl !== undefined && file === undefined) wrong.push("KUBERNETES_CONFIG_FILE");
  if (Number(qps) > 0 && Number(burst) < 1) wrong.push("KUBERNETES_CLIENT_BURST");
  return wrong;
}

function refuse(wrong: ReadonlySet<unknown>, set: Environment): RolloutError {
  const guilty = VARIABLE_ROWS.filter(([name, { fallback }]) => wrong.has(name) && !(set[name] === undefined && fallback !== undefined));
  const lines = guilty.map(([name, { allowed }]) => {
    const value = set[name];
    return `${name} ${value === undefined ? "is not set" : `is ${JSON.stringify(value)}`}, allowed is ${allowed}`;
  });
  return new RolloutError("BadConfiguration", `bad configuration: ${lines.join("; ")}`);
}

function arrange(given: z.output<typeof ENVIRONMENT>): Configuration {
  const { KUBERNETES_API_URL: apiUrl, KUBERNETES_CONFIG_FILE: configFile } = given;
  return {
    namespace: given.KUBERNETES_NAMESPACE,
    namespaces: given.NAMESPACES.includes("*") ? "*" : given.NAMESPACES,
    reconcileIntervalMs: given.RECONCILE_INTERVAL,
    timeBudgetMs: given.RECONCILE_TIME_BUDGET,
    lease: { name: given.LEASE_NAME, durationSeconds: Math.ceil(given.LEASE_DURATION / 1000) },
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
      requestTimeoutMs: given.REQUEST_TIMEOUT,
      audience: given.WEBHOOK_AUDIENCE,
      certFile: given.TLS_CERT_FILE,
      keyFile: given.TLS_KEY_FILE,
      tlsPort: given.TLS_PORT,
      port: given.SERVER_PORT,
      address: given.SERVER_ADDRESS,
    },
    logLevel: given.LOG_LEVEL,
    pushgatewayUrl: given.PUSHGATEWAY_URL,
    certificates: {
      selfSigned: given.SERVER_TLS_SELF_SIGNED_CERT_ENABLED,
      secretName: given.SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME,
      dnsNames: given.SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME ?? [`rollout-operator.${given.KUBERNETES_NAMESPACE}.svc`],
      organization: given.SERVER_TLS_SELF_SIGNED_CERT_ORG,
      validityMs: given.SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION,
      inject: given.SERVER_TLS_SELF_SIGNED_CERT_ENABLED && given.WEBHOOKS_UPDATE_CA_BUNDLE,
    },
  };
}
