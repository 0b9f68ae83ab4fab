import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type EvictionHook, type GuardFacts, judgeGuard, maySelect } from "../../../reconciler/budget/guard.ts";

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
  it("guard if the one that cannot be called fails open", () =>
    assert.equal(judgeGuard(facts({ ...LEFT_BEHIND, failsOpen: true }, hook())).state, "guarded"));
});

it("a webhook that nobody has asked is not said to be one that can be called", () => {
  const { state, message } = judgeGuard({ ...facts(hook()), probe: { result: "notTried", why: "" } });
  assert.equal(state, "guarded");
  assert.match(message, /^ours\.grafana\.com is registered and selects them, and nothing is seen that keeps it from /);
  assert.match(judgeGuard({ ...facts(hook()), probe: { result: "answered" } }).message, / has answered a probe /);
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
