/** The environment as configuration: what is refused, each by its name. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Environment, readConfiguration } from "../../infra/config.ts";
import type { RolloutError } from "../../infra/errors.ts";
import { VARIABLE_ROWS } from "../../infra/variables.ts";

const minimal = { KUBERNETES_NAMESPACE: "own" };

function refusalOf(env: Environment): string {
  try {
    readConfiguration(env);
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
  ["PUSHGATEWAY_URL", "push:9091"],
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
    assert.equal(refusalOf({}), "bad configuration: KUBERNETES_NAMESPACE is not set, allowed is the name of a namespace"));

  it("an API server without its file, and the file without it", () => {
    assert.match(refusalOf({ ...minimal, KUBERNETES_API_URL: "https://x" }), /KUBERNETES_CONFIG_FILE is not set, allowed is .* together/);
    assert.match(refusalOf({ ...minimal, KUBERNETES_CONFIG_FILE: "/f" }), /KUBERNETES_API_URL is not set, allowed is .* together/);
  });

  it("K01: a rate without a burst", () => {
    const message = refusalOf({ ...minimal, KUBERNETES_CLIENT_QPS: "5", KUBERNETES_CLIENT_BURST: "0" });
    assert.match(message, /KUBERNETES_CLIENT_BURST is "0", allowed is .*at least 1 when KUBERNETES_CLIENT_QPS is above 0/);
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
});
