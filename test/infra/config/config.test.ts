/** The environment as configuration: accepted variables and their values. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Configuration, type Environment, readConfiguration } from "../../../infra/config/config.ts";
import { VARIABLE_ROWS } from "../../../infra/config/variables.ts";

const minimal = { KUBERNETES_NAMESPACE: "own" };

describe("the configuration", () => {
  it("needs a namespace and has a default for the rest", () => {
    assert.deepEqual(readConfiguration({ ...minimal, PATH: "/bin", UNKNOWN: "x", POD_IP: "10.0.0.1" }), {
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
  ["the zone tracker", { USE_ZONE_TRACKER: "true" }, { useZoneTracker: true }],
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
  [
    "no rate and no burst",
    { KUBERNETES_CLIENT_QPS: "0", KUBERNETES_CLIENT_BURST: "0" },
    { rate: { qps: 0, burst: 0 } },
  ],
  ["a rate with the default burst", { KUBERNETES_CLIENT_QPS: "0.5" }, { rate: { qps: 0.5, burst: 10 } }],
  ["a timeout of 1m", { KUBERNETES_CLIENT_TIMEOUT: "1m" }, { clientTimeoutMs: 60_000 }],
  ["the cluster's domain", { KUBERNETES_CLUSTER_DOMAIN: "cluster.example" }, { clusterDomain: "cluster.example" }],
  ["a time for pods", { PODS_CLIENT_TIMEOUT: "2s" }, { podTimeoutMs: 2000 }],
  ["a zone tracker", { ZONE_TRACKER_CONFIG_MAP_NAME: "tracker" }, { zoneTracker: "tracker" }],
  [
    "a log level and format",
    { LOG_LEVEL: "debug", LOG_FORMAT: "logfmt" },
    { log: { level: "debug", format: "logfmt" } },
  ],
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
  ["a Pushgateway", { PUSHGATEWAY_URL: "http://push:9091" }, { pushgatewayUrl: "http://push:9091" }],
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

const LINKS: readonly [service: string, Environment][] = [
  [
    "kubernetes",
    {
      KUBERNETES_SERVICE_HOST: "10.0.0.1",
      KUBERNETES_SERVICE_PORT_HTTPS: "443",
      KUBERNETES_PORT_443_TCP_ADDR: "10.0.0.1",
    },
  ],
  ["server", { SERVER_SERVICE_HOST: "10.0.0.2", SERVER_SERVICE_PORT: "8001", SERVER_PORT: "tcp://10.0.0.2:8001" }],
  [
    "server-tls",
    {
      SERVER_TLS_SERVICE_HOST: "10.0.0.3",
      SERVER_TLS_PORT: "tcp://10.0.0.3:443",
      SERVER_TLS_PORT_443_TCP: "tcp://10.0.0.3:443",
    },
  ],
  ["tls", { TLS_SERVICE_HOST: "10.0.0.4", TLS_PORT: "udp://10.0.0.4:443" }],
  [
    "pushgateway",
    {
      PUSHGATEWAY_SERVICE_HOST: "fd00::1",
      PUSHGATEWAY_SERVICE_PORT_HTTP: "9091",
      PUSHGATEWAY_PORT_9091_TCP_PROTO: "tcp",
    },
  ],
];

describe("what Kubernetes tells of a Service is passed over, when the Service is named", () => {
  for (const [service, env] of LINKS) {
    it(service, () => assert.deepEqual(readConfiguration({ ...minimal, ...env }), readConfiguration(minimal)));
  }

  it("as one of our variables that is set nevertheless", () => {
    const { webhooks } = readConfiguration({ ...minimal, SERVER_SERVICE_HOST: "10.0.0.2", SERVER_PORT: "9000" });
    assert.equal(webhooks.port, 9000);
  });
});
