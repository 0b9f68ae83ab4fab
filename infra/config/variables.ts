/** The environment variables, one row each: for the parser, the error messages and the documentation. */
import * as z from "zod";
import { AGENT_VARIABLES, LABEL, PORT } from "./agent.ts";
import { parseGoDuration, parsePrometheusDuration } from "../duration.ts";

/** One environment variable: for the parser, the error messages and the documentation. */
interface Variable {
  readonly meaning: string;
  /** The allowed values, as the end of an error message. */
  readonly allowed: string;
  readonly default?: string;
  /** The variable that gives the default value. */
  readonly fallback?: string;
  readonly schema: z.core.$ZodType;
}

// Long enough for every period here. It must stay below 24.8 days, above which a timer of Node overflows and fires at
// once.
const MAX_MS = 24 * 3_600_000;

const duration = (leastMs: number) =>
  z.string().transform((text, context) => {
    const ms = parseGoDuration(text);
    if (ms !== undefined && ms > 0 && ms >= leastMs && ms <= MAX_MS) return ms;
    context.addIssue("not allowed");
    return z.NEVER;
  });

const durationText = (least: string): string =>
  `a duration in Go's grammar (300ms, 5s, 1m30s), ${least} and at most 24h`;

const MIN_VALIDITY_MS = 3_600_000;
// selfsigned and Go support years of four digits.
const MAX_VALIDITY_MS = 100 * 365 * 24 * 3_600_000;

const validity = z.string().transform((text, context) => {
  const ms = parsePrometheusDuration(text);
  if (ms !== undefined && ms >= MIN_VALIDITY_MS && ms <= MAX_VALIDITY_MS) return ms;
  context.addIssue("not allowed");
  return z.NEVER;
});

const flag = {
  schema: z.enum(["true", "false"]).transform((value) => value === "true"),
  allowed: "true or false",
};

const aboveZero = { schema: duration(0), allowed: durationText("above 0") };
const text = z.string().optional();
const url = z.url({ protocol: /^https?$/ }).optional();

// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

const port = { schema: PORT, allowed: "a port; 0 takes a free one" };

const wholeNumber = z
  .string()
  .regex(/^\d{1,9}$/)
  .transform(Number);

const namespaces = z
  .string()
  .transform((list) => [...new Set(list.split(",").map((name) => name.trim()))])
  .refine((names) => names.every((name) => LABEL.test(name)) || names.join() === "*");

// Host names of RFC 1123, as in certificates.
const dnsNames = z
  .string()
  .transform((list) => [...new Set(list.split(",").map((name) => name.trim()))])
  .refine((names) => names.every((name) => SUBDOMAIN.test(name)))
  .optional();

// In the form of URLs: a name, an IPv4 address or an IPv6 address in brackets, in lower case.
const hosts = z
  .string()
  .transform((list) => [...new Set(list.split(",").map((host) => host.trim().toLowerCase()))])
  .refine((all) => all.every((host) => /^(?:[-a-z0-9_.]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/.test(host)))
  .optional();

const NODE_VARIABLES = {
  NODE_UPDATES: {
    ...flag,
    meaning: "Whether this installation updates the operating systems of nodes; one installation a cluster does",
    default: "false",
  },
  NODE_UPDATES_NAMESPACE: {
    schema: z.string().regex(LABEL),
    meaning: "The namespace of the BottlerocketShadows and of the agents",
    allowed: "the name of a namespace",
    default: "brupop-bottlerocket-aws",
  },
  MAX_CONCURRENT_UPDATE: {
    schema: z.string().regex(/^(?:\d{1,6}|(?:100|[1-9]?\d)%|unlimited)$/i),
    meaning: "`maxConcurrent` of the NodeUpdatePolicy `default`, which is made if there is no policy",
    allowed: "a whole number, a percentage or unlimited",
    default: "1",
  },
  SCHEDULER_CRON_EXPRESSION: {
    schema: text,
    meaning: "The window of that policy, in UTC; always open when not set",
    allowed: "a cron expression of six or seven fields",
  },
  APISERVER_SERVICE_PORT: AGENT_VARIABLES.APISERVER_SERVICE_PORT,
  EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC: AGENT_VARIABLES.EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC,
  MY_NODE_NAME: AGENT_VARIABLES.MY_NODE_NAME,
} as const;

const CERTIFICATE_VARIABLES = {
  SERVER_TLS_SELF_SIGNED_CERT_ENABLED: {
    ...flag,
    meaning: "Whether Zonewise makes the certificate; with false you bring your own",
    default: "true",
  },
  SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME: {
    schema: z.string().regex(SUBDOMAIN),
    meaning: "Name of the Secret with the certificate, its key and the CA",
    allowed: "a DNS-1123 subdomain",
    default: "rollout-operator-self-signed-certificate",
  },
  SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME: {
    schema: dnsNames,
    meaning: "The names that the certificate is for; when it is not set, rollout-operator.KUBERNETES_NAMESPACE.svc",
    allowed: "DNS names separated by commas",
  },
  SERVER_TLS_SELF_SIGNED_CERT_ORG: {
    schema: z.string().regex(/^[\x20-\x7e]{1,64}$/),
    meaning: "The organization in the certificate",
    allowed: "1 to 64 printable ASCII characters",
    default: "Zonewise",
  },
  SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION: {
    schema: validity,
    meaning: "Validity of a certificate; its successor is made after two thirds of it",
    allowed: "a duration in Prometheus' grammar (365d, 12w, 36h), at least 1h and at most 100y",
    default: "365d",
  },
  WEBHOOKS_UPDATE_CA_BUNDLE: {
    ...flag,
    meaning: "Whether the webhook configurations that are labelled for it get the CA",
    default: "true",
  },
} as const satisfies Readonly<Record<string, Variable>>;

export const VARIABLES = {
  KUBERNETES_NAMESPACE: AGENT_VARIABLES.KUBERNETES_NAMESPACE,
  NAMESPACES: {
    schema: namespaces,
    meaning: "The namespaces whose rollout groups are handled",
    allowed: "names of namespaces separated by commas, or * alone for all",
    fallback: "KUBERNETES_NAMESPACE",
  },
  RECONCILE_INTERVAL: { ...aboveZero, meaning: "Time from one tick to the next when nothing happens", default: "5s" },
  RECONCILE_TIME_BUDGET: {
    schema: duration(0),
    meaning: "Time after which a run starts no further tick; the next run takes over before, unless it is missing",
    allowed: `${durationText("above 0")}, and above LEASE_DURATION`,
    default: "110s",
  },
  LEASE_NAME: {
    schema: z.string().regex(SUBDOMAIN),
    meaning: "Name of the Lease that keeps two runs apart",
    allowed: "a DNS-1123 subdomain",
    default: "zonewise-reconciler",
  },
  LEASE_DURATION: {
    schema: duration(1000),
    meaning: "Time after which a Lease that is not renewed may be taken over; rounded up to whole seconds",
    allowed: `${durationText("at least 1s")}, and below RECONCILE_TIME_BUDGET`,
    default: "30s",
  },
  POD_NAME: {
    schema: text,
    meaning: "Name of this process in Leases, reservations and Events",
    allowed: "any text",
    fallback: "HOSTNAME",
  },
  KUBERNETES_API_URL: {
    schema: url,
    meaning: "The API server, instead of the one that KUBERNETES_CONFIG_FILE names",
    allowed: "an http or https URL, together with KUBERNETES_CONFIG_FILE",
  },
  KUBERNETES_CONFIG_FILE: {
    schema: text,
    meaning: "The kubeconfig file to use with KUBERNETES_API_URL",
    allowed: "a path, together with KUBERNETES_API_URL",
  },
  KUBECONFIG: {
    schema: text,
    meaning:
      "Kubeconfig files, when the two above are not set; without any of the three it is the pod's ServiceAccount",
    allowed: "paths separated by colons",
  },
  KUBERNETES_CLIENT_TIMEOUT: {
    ...aboveZero,
    meaning: "Time that a call of the Kubernetes API may take",
    default: "10s",
  },
  KUBERNETES_CLIENT_QPS: {
    schema: z
      .string()
      .regex(/^\d{1,9}(?:\.\d{1,9})?$/)
      .transform(Number),
    meaning: "Calls per second and API group; 0 is no limit",
    allowed: "a number, 0 or more",
    default: "0",
  },
  KUBERNETES_CLIENT_BURST: {
    schema: wholeNumber,
    meaning: "Calls per API group that may go at once",
    allowed: "a whole number, at least 1 when KUBERNETES_CLIENT_QPS is above 0",
    default: "10",
  },
  KUBERNETES_CLUSTER_DOMAIN: {
    schema: z.string().regex(/^(?!\.)[-a-z0-9.]{1,253}$/),
    meaning: "The domain at the end of the pods' DNS names; a dot at its end spares the search list",
    allowed: "a DNS name",
    default: "cluster.local.",
  },
  PODS_CLIENT_TIMEOUT: { ...aboveZero, meaning: "Time that a request to a pod may take", default: "5s" },
  ZONE_TRACKER_CONFIG_MAP_NAME: {
    schema: z.string().regex(SUBDOMAIN),
    meaning: "Name of the ConfigMap that records when each zone was last scaled down",
    allowed: "a DNS-1123 subdomain",
    default: "rollout-operator-zone-tracker",
  },
  USE_ZONE_TRACKER: {
    ...flag,
    meaning: "Whether prepare-downscale records times in that ConfigMap instead of an annotation",
    default: "false",
  },
  SERVER_TLS_REQUEST_TIMEOUT: {
    ...aboveZero,
    meaning: "Time that a webhook request may take at most; answers come by 90% of it",
    default: "10s",
  },
  WEBHOOK_AUDIENCE: {
    schema: text,
    meaning: "When set, callers of the webhooks must show a ServiceAccount token of the cluster for this audience",
    allowed: "any text",
  },
  SERVER_TLS_CERT_FILE: {
    schema: text,
    meaning: "The webhook server's certificate, PEM; read again when it changes",
    allowed: "a path",
  },
  SERVER_TLS_KEY_FILE: {
    schema: text,
    meaning: "The key of that certificate, PEM",
    allowed: "a path",
  },
  SERVER_TLS_PORT: { ...port, meaning: "Where the webhook server listens", default: "8443" },
  SERVER_PORT: { ...port, meaning: "Where it answers `/ready` and `/metrics` over plain HTTP", default: "8001" },
  SERVER_ADDRESS: {
    schema: text,
    meaning: "The address that both listen on; all when not set",
    allowed: "an IP address",
  },
  ...NODE_VARIABLES,
  STATUS_PAGE_HOSTS: {
    schema: hosts,
    meaning: "Hosts by which the status page may be asked for besides `localhost`; requests for others are refused",
    allowed: "host names separated by commas, each with a port where only that one is meant",
  },
  CLUSTER_NAME: {
    schema: text,
    meaning: "The cluster's name, which the status page shows: tabs of several clusters look alike without it",
    allowed: "a name",
  },
  LOG_LEVEL: AGENT_VARIABLES.LOG_LEVEL,
  LOG_FORMAT: AGENT_VARIABLES.LOG_FORMAT,
  ...CERTIFICATE_VARIABLES,
  PUSHGATEWAY_URL: {
    schema: url,
    meaning:
      "The Prometheus Pushgateway that metrics are pushed to; a user and password in it are sent as Basic authentication",
    allowed: "an http or https URL",
  },
  PROMETHEUS_ALLOWED_HOSTS: {
    schema: hosts,
    meaning: "The hosts that checks may ask; all when it is not set",
    allowed: "host names separated by commas, each with a port where only that one is meant",
  },
  PHASED_SUCCESS_WHEN: {
    schema: z.enum(["NoData", "Data"]),
    meaning:
      "When a check of a PhasedRollout is successful that does not say it: if the query returns nothing, or if it returns anything",
    allowed: "NoData or Data",
    default: "NoData",
  },
} as const satisfies Readonly<Record<string, Variable>>;

export type VariableName = keyof typeof VARIABLES;
type Schemas = { readonly [N in VariableName]: (typeof VARIABLES)[N]["schema"] };

export const VARIABLE_ROWS: readonly (readonly [name: string, row: Variable])[] = Object.entries(VARIABLES);

export const ENVIRONMENT = z.object(
  Object.fromEntries(VARIABLE_ROWS.map(([name, { schema }]) => [name, schema])) as Schemas,
);
