/** The environment as configuration: what is accepted, and what is refused by its name. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readAgentConfiguration } from "../../../infra/config/agent.ts";
import { type Configuration, type Environment, readConfiguration } from "../../../infra/config/config.ts";
import type { RolloutError } from "../../../infra/errors.ts";
import { VARIABLE_ROWS } from "../../../infra/config/variables.ts";

const minimal = { KUBERNETES_NAMESPACE: "own" };

describe("the configuration", () => {
  it("needs a namespace and has a default for the rest", () => {
    assert.deepEqual(readConfiguration({ ...minimal, PATH: "/bin", UNKNOWN: "x", POD_IP: "10.0.0.1", LEASE_ID: "x" }), {
      namespace: "own",
      namespaces: ["own"],
      reconcileIntervalMs: 5000,
      timeBudgetMs: 110_000,
      lease: { name: "zonewise-reconciler", durationSeconds: 30 },
      identity: undefined,
      connection: { explicit: undefined, kubeconfig: undefined },
      clientTimeoutMs: 10_000,
      rate: { qps: 0, burst: 10 },
      clusterDomain: "cluster.local.",
      podTimeoutMs: 5000,
      zoneTracker: "rollout-operator-zone-tracker",
      useZoneTracker: false,
      webhooks: {
        requestTimeoutMs: 10_000,
        audience: undefined,
        certFile: undefined,
        keyFile: undefined,
        tlsPort: 8443,
        port: 8001,
        address: undefined,
      },
      log: { level: "info", format: "json" },
      pushgatewayUrl: undefined,
      nodeUpdates: {
        enabled: false,
        namespace: "brupop-bottlerocket-aws",
        maxConcurrent: "1",
        cron: undefined,
        ownNode: undefined,
      },
      phasedSuccessWhen: "NoData",
      prometheusAllowedHosts: [],
      statusPageHosts: [],
      clusterName: "",
      certificates: {
        selfSigned: true,
        secretName: "rollout-operator-self-signed-certificate",
        dnsNames: ["rollout-operator.own.svc"],
        organization: "Zonewise",
        validityMs: 365 * 86_400_000,
        inject: true,
      },
    });
  });

  it("never injects the CA of a certificate that is not ours", () => {
    const { certificates } = readConfiguration({
      ...minimal,
      SERVER_TLS_SELF_SIGNED_CERT_ENABLED: "false",
      WEBHOOKS_UPDATE_CA_BUNDLE: "true",
    });
    assert.deepEqual([certificates.selfSigned, certificates.inject], [false, false]);
  });

  it("lets processes that hold no Lease start with a time budget that is shorter than it", () =>
    assert.equal(readConfiguration({ ...minimal, RECONCILE_TIME_BUDGET: "10s" }).timeBudgetMs, 10_000));

  it("takes an empty variable for one that is not set", () => {
    const empty = Object.fromEntries(VARIABLE_ROWS.map(([name]) => [name, ""]));
    assert.deepEqual(readConfiguration({ ...empty, ...minimal }), readConfiguration(minimal));
  });
});

const TAKEN: readonly [name: string, Environment, Partial<Configuration>][] = [
  ["all namespaces", { NAMESPACES: "*" }, { namespaces: "*" }],
  ["a list of namespaces, each once", { NAMESPACES: "a, b,a" }, { namespaces: ["a", "b"] }],
  [
    "Go's durations",
    { RECONCILE_INTERVAL: "1ns", RECONCILE_TIME_BUDGET: "1m30s" },
    { reconcileIntervalMs: 1e-6, timeBudgetMs: 90_000 },
  ],
  ["the longest duration", { RECONCILE_INTERVAL: "24h" }, { reconcileIntervalMs: 86_400_000 }],
  [
    "the webhooks' own",
    {
      SERVER_TLS_REQUEST_TIMEOUT: "5s",
      WEBHOOK_AUDIENCE: "a",
      SERVER_TLS_CERT_FILE: "/c",
      SERVER_TLS_KEY_FILE: "/k",
      SERVER_TLS_PORT: "0",
      SERVER_PORT: "1",
      SERVER_ADDRESS: "::1",
    },
    {
      webhooks: {
        requestTimeoutMs: 5000,
        audience: "a",
        certFile: "/c",
        keyFile: "/k",
        tlsPort: 0,
        port: 1,
        address: "::1",
      },
    },
  ],
  [
    "a Lease, whole seconds up",
    { LEASE_NAME: "a.b", LEASE_DURATION: "1001ms" },
    { lease: { name: "a.b", durationSeconds: 2 } },
  ],
  ["the pod's name", { POD_NAME: "pod", HOSTNAME: "host" }, { identity: "pod" }],
  ["the host's name in its place", { HOSTNAME: "host" }, { identity: "host" }],
  [
    "an API server with its file",
    { KUBERNETES_API_URL: "https://x:6443", KUBERNETES_CONFIG_FILE: "/f", KUBECONFIG: "/g" },
    {
      connection: { explicit: { apiUrl: "https://x:6443", configFile: "/f" }, kubeconfig: "/g" },
    },
  ],
  [
    "a burst below the rate",
    { KUBERNETES_CLIENT_QPS: "5", KUBERNETES_CLIENT_BURST: "1" },
    { rate: { qps: 5, burst: 1 } },
  ],
  ["a rate with the default burst", { KUBERNETES_CLIENT_QPS: "0.5" }, { rate: { qps: 0.5, burst: 10 } }],
  ["a timeout of 1m", { KUBERNETES_CLIENT_TIMEOUT: "1m" }, { clientTimeoutMs: 60_000 }],
  [
    "a Lease that is just shorter than a run",
    { LEASE_DURATION: "1s", RECONCILE_TIME_BUDGET: "1000001us" },
    { lease: { name: "zonewise-reconciler", durationSeconds: 1 }, timeBudgetMs: 1000.001 },
  ],
  [
    "a certificate of another name, for several Services, for another time",
    {
      SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME: "tls",
      SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME: "a.ns.svc, b.ns.svc,a.ns.svc",
      SERVER_TLS_SELF_SIGNED_CERT_ORG: "Acme, Inc.",
      SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION: "1w1d",
      WEBHOOKS_UPDATE_CA_BUNDLE: "false",
    },
    {
      certificates: {
        selfSigned: true,
        secretName: "tls",
        dnsNames: ["a.ns.svc", "b.ns.svc"],
        organization: "Acme, Inc.",
        validityMs: 8 * 86_400_000,
        inject: false,
      },
    },
  ],
  [
    "the hosts of checks, in lower case",
    { PROMETHEUS_ALLOWED_HOSTS: "Prom.monitoring:9090, [::1]" },
    { prometheusAllowedHosts: ["prom.monitoring:9090", "[::1]"] },
  ],
];

describe("taken is", () => {
  for (const [name, env, expected] of TAKEN) {
    it(name, () => {
      const configuration = readConfiguration({ ...minimal, ...env }, { holdsLease: true });
      for (const [key, value] of Object.entries(expected))
        assert.deepEqual(configuration[key as keyof Configuration], value);
    });
  }
});

function refusalOf(env: Environment): string {
  try {
    readConfiguration(env, { holdsLease: true });
  } catch (error) {
    assert.equal((error as RolloutError).code, "BadConfiguration");
    return (error as RolloutError).message;
  }
  return assert.fail("it was taken");
}

const REFUSED: readonly [name: string, value: string][] = [
  ["KUBERNETES_NAMESPACE", "Upper"],
  ["NAMESPACES", "a,,b"],
  ["NAMESPACES", "*,a"],
  ["NAMESPACES", "a.b"],
  ["RECONCILE_INTERVAL", "5"],
  ["RECONCILE_INTERVAL", "24h1ns"],
  ["RECONCILE_TIME_BUDGET", "0s"],
  ["LEASE_NAME", "a_b"],
  ["LEASE_NAME", "a".repeat(254)],
  ["LEASE_DURATION", "999ms"],
  ["KUBERNETES_CLIENT_QPS", "-1"],
  ["KUBERNETES_CLIENT_QPS", "many"],
  ["KUBERNETES_CLIENT_BURST", "1.5"],
  ["LOG_LEVEL", "INFO"],
  ["LOG_FORMAT", "text"],
  ["SERVER_TLS_PORT", "65536"],
  ["SERVER_PORT", "tcp://10.0.0.2:8001"],
  ["PUSHGATEWAY_URL", "push:9091"],
  ["PROMETHEUS_ALLOWED_HOSTS", "*.monitoring"],
  ["PROMETHEUS_ALLOWED_HOSTS", "http://prom"],
  ["PROMETHEUS_ALLOWED_HOSTS", "::1"],
  ["SERVER_TLS_SELF_SIGNED_CERT_ENABLED", "yes"],
  ["SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME", "a_b"],
  ["SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME", "a.svc,,b.svc"],
  ["SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME", "*.svc"],
  ["SERVER_TLS_SELF_SIGNED_CERT_ORG", "a".repeat(65)],
  ["SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION", "59m"],
  ["SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION", "101y"],
  ["SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION", "1.5d"],
  ["WEBHOOKS_UPDATE_CA_BUNDLE", "0"],
  ["KUBERNETES_API_URL", "x:6443"],
];

describe("refused, with its name, its value and what is allowed, is", () => {
  for (const [name, value] of REFUSED) {
    it(`${name}=${value.slice(0, 20)}`, () => {
      const allowed = VARIABLE_ROWS.find(([row]) => row === name)?.[1].allowed ?? "";
      const message = refusalOf({ ...minimal, [name]: value });
      assert.ok(message.includes(`${name} is "${value}", allowed is ${allowed}`), message);
    });
  }

  it("a namespace that is not set", () =>
    assert.equal(
      refusalOf({}),
      "bad configuration: KUBERNETES_NAMESPACE is not set, allowed is the name of a namespace",
    ));

  it("an API server without its file, and the file without it", () => {
    assert.match(
      refusalOf({ ...minimal, KUBERNETES_API_URL: "https://x" }),
      /KUBERNETES_CONFIG_FILE is not set, allowed is .* together/,
    );
    assert.match(
      refusalOf({ ...minimal, KUBERNETES_CONFIG_FILE: "/f" }),
      /KUBERNETES_API_URL is not set, allowed is .* together/,
    );
  });

  it("a rate without a burst", () => {
    const message = refusalOf({ ...minimal, KUBERNETES_CLIENT_QPS: "5", KUBERNETES_CLIENT_BURST: "0" });
    assert.match(
      message,
      /KUBERNETES_CLIENT_BURST is "0", allowed is .*at least 1 when KUBERNETES_CLIENT_QPS is above 0/,
    );
  });

  it("a URL that is wrong, without its password", () => {
    const message = refusalOf({ ...minimal, PUSHGATEWAY_URL: "ftp://alice:s3cret@gateway:9091" });
    assert.match(message, /PUSHGATEWAY_URL is "ftp:\/\/\*\*\*@gateway:9091", allowed is an http or https URL/);
  });

  it("every wrong variable at once", () => {
    const message = refusalOf({
      RECONCILE_INTERVAL: "x",
      LOG_LEVEL: "x",
      KUBERNETES_API_URL: "https://x",
      KUBERNETES_CLIENT_QPS: "1",
      KUBERNETES_CLIENT_BURST: "0",
    });
    const named = [...message.matchAll(/([A-Z_]{5,}) is (?:not set|")/g)].map(([, name]) => name);
    assert.deepEqual(named, [
      "KUBERNETES_NAMESPACE",
      "RECONCILE_INTERVAL",
      "KUBERNETES_CONFIG_FILE",
      "KUBERNETES_CLIENT_BURST",
      "LOG_LEVEL",
    ]);
  });

  const TOO_LONG: readonly [lease: string, budget: string][] = [
    ["60s", "55s"],
    ["55s", "55s"],
    ["54001ms", "55s"],
    ["1s", "1s"],
    ["1s", "1ms"],
  ];
  for (const [lease, budget] of TOO_LONG) {
    it(`a Lease of ${lease}, which a run of ${budget} would wait for in vain`, () => {
      const message = refusalOf({ ...minimal, LEASE_DURATION: lease, RECONCILE_TIME_BUDGET: budget });
      assert.match(message, new RegExp(`RECONCILE_TIME_BUDGET is "${budget}", allowed is .* above LEASE_DURATION`));
      assert.match(message, new RegExp(`LEASE_DURATION is "${lease}", allowed is .* below RECONCILE_TIME_BUDGET`));
    });
  }

  it("a Lease that is longer than a run by default", () =>
    assert.match(
      refusalOf({ ...minimal, LEASE_DURATION: "2m" }),
      /RECONCILE_TIME_BUDGET is 110s by default, allowed is .* above LEASE_DURATION/,
    ));

  const UNKNOWN: readonly [name: string, nearest: string][] = [
    ["SERVER_TLS_ENABLED", "SERVER_TLS_KEY_FILE"],
    ["SERVER_TLS_SELF_SIGNED_CERT_DNS_NAMES", "SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME"],
    ["SERVER_CLUSTER_VALIDATION_HTTP_SOFT_VALIDATION", ""],
    ["ZONE_TRACKER_CONFIGMAP_NAME", "ZONE_TRACKER_CONFIG_MAP_NAME"],
  ];
  for (const [name, nearest] of UNKNOWN) {
    it(`${name}, which is not read`, () =>
      assert.equal(
        refusalOf({ ...minimal, [name]: "x" }),
        `bad configuration: ${name} is not known; ${nearest && `the nearest is ${nearest}, and `}docs/reference/variables.md lists all`,
      ));
  }
});

const AGENT = { MY_NODE_NAME: "node-1", KUBERNETES_NAMESPACE: "ns" };

it("an agent needs its node and its namespace; the rest has the original's defaults", () =>
  assert.deepEqual(readAgentConfiguration(AGENT), {
    nodeName: "node-1",
    namespace: "ns",
    apiPort: 443,
    exclusionMs: 0,
    log: { level: "info", format: "json" },
  }));

const WRONG_AGENTS: readonly (readonly [env: Record<string, string>, message: RegExp])[] = [
  [{ KUBERNETES_NAMESPACE: "ns" }, /MY_NODE_NAME is not set, allowed is the name of a node/],
  [{ MY_NODE_NAME: "node-1" }, /KUBERNETES_NAMESPACE is not set/],
  [
    { ...AGENT, EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC: "soon" },
    /EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC is soon, allowed is a whole number/,
  ],
  [{ ...AGENT, APISERVER_SERVICE_PORT: "x" }, /APISERVER_SERVICE_PORT is x, allowed is a port/],
];
for (const [env, message] of WRONG_AGENTS)
  it(`an agent with ${JSON.stringify(env)} does not start`, () =>
    assert.throws(() => readAgentConfiguration(env), { code: "BadConfiguration", message }));
