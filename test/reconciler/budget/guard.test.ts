import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type EvictionHook,
  type GuardFacts,
  judgeGuard,
  maySelect,
  type Probe,
} from "../../../reconciler/budget/guard.ts";

const hook = (traits: Partial<EvictionHook> = {}): EvictionHook => ({
  configuration: "ours",
  name: "ours.grafana.com",
  failsOpen: false,
  namespaceSelector: {},
  objectSelector: {},
  hasConditions: false,
  service: "ns/ours",
  caProblem: undefined,
  ...traits,
});
const LEFT_BEHIND = hook({ configuration: "original", name: "original.grafana.com", service: "ns/original" });
const facts = (...hooks: readonly EvictionHook[]): GuardFacts => ({
  namespace: "ns",
  labels: { "kubernetes.io/metadata.name": "ns" },
  labelsKnown: true,
  hooks,
  endpoints: new Map([
    ["ns/ours", 2],
    ["ns/original", 0],
  ]),
  probe: undefined,
  unread: [],
});

describe("two eviction webhooks for a namespace", () => {
  it("refuse each eviction if one fails closed and cannot be called", () => {
    const { state, message } = judgeGuard(facts(hook(), LEFT_BEHIND));
    assert.equal(state, "down");
    assert.match(message, /^original\.grafana\.com cannot be called, Service ns\/original /);
  });
  it("are not judged by the one that cannot be called, if it fails open", () => {
    const { state, message } = judgeGuard(facts({ ...LEFT_BEHIND, failsOpen: true }, hook()));
    assert.equal(state, "unknown");
    assert.match(message, /^ours\.grafana\.com is registered /);
  });
});

describe("a configuration without a fault", () => {
  const CASES: readonly (readonly [what: string, probe: Probe | undefined, state: string, says: RegExp])[] = [
    ["that nobody has asked", undefined, "unknown", /was not seen to answer; a dry-run eviction was not tried$/],
    [
      "whose reader may not ask",
      { result: "notTried", why: "jane may not create pods/eviction" },
      "unknown",
      /a dry-run eviction was not tried: jane may not create pods\/eviction$/,
    ],
    ["that gave no clear answer", { result: "unclear", why: "boom" }, "unknown", /was not seen to answer: boom$/],
    ["that let a probe pass", { result: "allowed" }, "unknown", /did not answer a probe/],
    ["that could not be called", { result: "failed", why: "x509: unknown" }, "down", /cannot be called, x509: unknown/],
    [
      "that has answered",
      { result: "answered" },
      "guarded",
      /^ours\.grafana\.com has answered a probe for evictions in ns$/,
    ],
  ];
  for (const [what, probe, state, says] of CASES)
    it(`${what} is ${state}`, () => {
      const guard = judgeGuard({ ...facts(hook()), probe });
      assert.equal(guard.state, state);
      assert.match(guard.message, says);
    });

  for (const why of ["x509: certificate signed by unknown authority", "unable to verify the first certificate"])
    it(`gets its CA again where it is ${why.slice(0, 4)}…`, () =>
      assert.match(judgeGuard({ ...facts(hook()), probe: { result: "failed", why } }).remedy, /gives them the CA/));

  it("is no answer where its Service is a URL, an external name, or could not be read", () => {
    for (const one of [hook({ service: undefined }), hook({ service: "ns/unread" }), hook({ hasConditions: true })])
      assert.equal(judgeGuard(facts(one)).state, "unknown");
  });
});

describe("a webhook", () => {
  const named = (value: string) =>
    hook({ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": value } } });
  for (const [what, one, expected] of [
    ["of the namespace may select it", named("ns"), true],
    ["of another namespace does not", named("other"), false],
    ["by other labels may", hook({ namespaceSelector: { matchLabels: { team: "a" } } }), true],
  ] as const)
    it(what, () => assert.equal(maySelect(one, "ns"), expected));
});
