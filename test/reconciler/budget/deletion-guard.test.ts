/** What guards deletions of pods, by what is registered (§5.12). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type DeletionGuard,
  type DeletionGuardFacts,
  type DeletionPolicy,
  judgeDeletionGuard,
} from "../../../reconciler/budget/deletion-guard.ts";
import type { EvictionHook } from "../../../reconciler/budget/guard.ts";

const GROUPED = { matchExpressions: [{ key: "rollout-group", operator: "Exists" }] };
const here = (namespace: string) => ({ matchLabels: { "kubernetes.io/metadata.name": namespace } });
const hook = (traits: Partial<EvictionHook> = {}): EvictionHook => ({
  configuration: "pod-deletion-ns",
  name: "pod-deletion-ns.grafana.com",
  failsOpen: false,
  namespaceSelector: here("ns"),
  objectSelector: GROUPED,
  hasConditions: true,
  service: "ns/ours",
  caProblem: undefined,
  ...traits,
});
const policy = (traits: Partial<DeletionPolicy> = {}): DeletionPolicy => ({
  name: "pod-deletions.ns",
  namespaceSelector: here("ns"),
  objectSelector: GROUPED,
  ...traits,
});
const facts = (traits: Partial<DeletionGuardFacts>): DeletionGuardFacts => ({
  namespace: "ns",
  labels: { "kubernetes.io/metadata.name": "ns" },
  labelsKnown: true,
  hooks: [],
  policies: [],
  endpoints: new Map([["ns/ours", 2]]),
  unread: [],
  ...traits,
});
const DEAD = new Map([["ns/ours", 0]]);

const CASES: readonly (readonly [
  what: string,
  traits: Partial<DeletionGuardFacts>,
  by: DeletionGuard["by"],
  says: RegExp,
])[] = [
  ["nothing is registered", {}, "none", /^kubectl delete pod in ns asks no disruption budget$/],
  ["the policy is", { policies: [policy()] }, "policy", /^the policy pod-deletions\.ns refuses each deletion/],
  ["the policy of another namespace is", { policies: [policy({ namespaceSelector: here("b") })] }, "none", /^kubectl/],
  ["the webhook is", { hooks: [hook()] }, "webhook", /^pod-deletion-ns\.grafana\.com asks the disruption budget/],
  ["the webhook of another namespace is", { hooks: [hook({ namespaceSelector: here("b") })] }, "none", /^kubectl/],
  ["both are: the policy refuses", { hooks: [hook()], policies: [policy()] }, "policy", /^the policy/],
  [
    "the webhook is, and its Service has no endpoint",
    { hooks: [hook()], endpoints: DEAD },
    "down",
    /cannot be called, Service ns\/ours does not exist or has no ready endpoint, and fails closed/,
  ],
  [
    "the webhook is, cannot be called and fails open",
    { hooks: [hook({ failsOpen: true, caProblem: "it has no caBundle" })] },
    "none",
    /cannot be called, it has no caBundle, and fails open: deletions ask no budget$/,
  ],
  [
    "policies could not be read",
    { policies: undefined, unread: ["policies: jane may not list them"] },
    "unknown",
    /was not seen: policies: jane may not list them$/,
  ],
  ["policies could not be read, and the webhook is", { policies: undefined, hooks: [hook()] }, "webhook", /asks/],
  ["webhooks could not be read, and the policy is", { hooks: undefined, policies: [policy()] }, "policy", /refuses/],
];

describe("deletions of pods of a group, where", () => {
  for (const [what, traits, by, says] of CASES)
    it(`${what}: ${by}`, () => {
      const guard = judgeDeletionGuard(facts(traits), { "rollout-group": "cache" });
      assert.equal(guard.by, by);
      assert.match(guard.message, says);
      assert.equal(guard.remedy === "", by === "policy" || by === "webhook");
    });

  it("a pod without the label is seen by neither", () => {
    const all = facts({ hooks: [hook()], policies: [policy()] });
    assert.equal(judgeDeletionGuard(all, { name: "a" }).by, "none");
  });
});
