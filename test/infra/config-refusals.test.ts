/** The environment as configuration: refused variables, each by its name. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Environment, readConfiguration } from "../../infra/config/config.ts";
import type { RolloutError } from "../../infra/errors.ts";
import { VARIABLE_ROWS } from "../../infra/config/variables.ts";

const minimal = { KUBERNETES_NAMESPACE: "own" };

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
  ["RECONCILE_INTERVAL", "0"],
  ["RECONCILE_INTERVAL", "-5s"],
  ["RECONCILE_INTERVAL", "24h1ns"],
  ["RECONCILE_TIME_BUDGET", "0s"],
  ["LEASE_NAME", "a_b"],
  ["LEASE_NAME", "a".repeat(254)],
  ["LEASE_DURATION", "999ms"],
  ["KUBERNETES_CLIENT_TIMEOUT", "0"],
  ["KUBERNETES_CLIENT_TIMEOUT", "-1s"],
  ["KUBERNETES_CLIENT_QPS", "-1"],
  ["KUBERNETES_CLIENT_QPS", "many"],
  ["KUBERNETES_CLIENT_BURST", "1.5"],
  ["LOG_LEVEL", "INFO"],
  ["LOG_FORMAT", "text"],
  ["SERVER_TLS_REQUEST_TIMEOUT", "-1s"],
  ["SERVER_TLS_PORT", "65536"],
  ["SERVER_PORT", "tcp://10.0.0.2:8001"],
  ["PUSHGATEWAY_URL", "push:9091"],
  ["PROMETHEUS_ALLOWED_HOSTS", "*.monitoring"],
  ["PROMETHEUS_ALLOWED_HOSTS", "http://prom"],
  ["PROMETHEUS_ALLOWED_HOSTS", "prom,,"],
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
    ["SERVER_TLS_CERTIFICATE_FILE", "SERVER_TLS_CERT_FILE"],
    ["SERVER_TLS_ENABLED", "SERVER_TLS_KEY_FILE"],
    ["SERVER_TLS_SELF_SIGNED_CERT_DNS_NAMES", "SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME"],
    ["SERVER_CLUSTER_VALIDATION_HTTP_SOFT_VALIDATION", ""],
    ["KUBERNETES_CLIENT_TIME_OUT", "KUBERNETES_CLIENT_TIMEOUT"],
    ["ZONE_TRACKER_CONFIGMAP_NAME", "ZONE_TRACKER_CONFIG_MAP_NAME"],
    ["RECONCILE_INTERVALL", "RECONCILE_INTERVAL"],
    ["WEBHOOKS_UPDATE_CABUNDLE", "WEBHOOKS_UPDATE_CA_BUNDLE"],
    ["PODS_CLIENT_TIMEOUTS", "PODS_CLIENT_TIMEOUT"],
    ["USE_ZONE_TRACKERS", "USE_ZONE_TRACKER"],
  ];
  for (const [name, nearest] of UNKNOWN) {
    it(`${name}, which is not read`, () =>
      assert.equal(
        refusalOf({ ...minimal, [name]: "x" }),
        `bad configuration: ${name} is not known; ${nearest && `the nearest is ${nearest}, and `}docs/reference/variables.md lists all`,
      ));
  }
});
