/** What guards deletions of pods, by what is registered (§5.12). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type DeletionFacts,
  type DeletionGuard,
  type DeletionPolicy,
  judgeDeletionGuard,
} from "../../../cli/decide/deletion-guard.ts";
import type { Guard, Hook } from "../../../reconciler/budget/guard.ts";

const GROUPED = { matchExpressions: [{ key: "rollout-group", operator: "Exists" }] };
const here = (namespace: string) => ({ matchLabels: { "kubernetes.io/metadata.name": namespace } });
const hook = (traits: Partial<Hook> = {}): Hook => ({
  configuration: "pod-deletion-ns",
  name: "pod-deletion-ns.grafana.com",
  failsOpen: false,
  namespaceSelector: here("ns"),
  objectSelector: GROUPED,
  service: "ns/ours",
  ...traits,
});
const policy = (traits: Partial<DeletionPolicy> = {}): DeletionPolicy => ({
  name: "pod-deletions.ns",
  namespaceSelector: here("ns"),
  objectSelector: GROUPED,
  ...traits,
});
const facts = (traits: Partial<DeletionFacts>): DeletionFacts => ({
  namespace: "ns",
  labels: { "kubernetes.io/metadata.name": "ns" },
  hooks: [],
  policies: [],
  evictions: { reason: "Guarded", message: "", remedy: "" },
  unread: [],
  ...traits,
});
const DOWN: Guard = { reason: "WebhookDown", message: "it cannot be called", remedy: "start it" };

const CASES: readonly (readonly [
  what: string,
  traits: Partial<DeletionFacts>,
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
    "the webhook is, and that of evictions cannot be called",
    { hooks: [hook()], evictions: DOWN },
    "down",
    /^pod-deletion-ns\.grafana\.com fails closed: deletions are refused while it cannot be called$/,
  ],
  [
    "the same, and it fails open",
    { hooks: [hook({ failsOpen: true })], evictions: DOWN },
    "none",
    /^pod-deletion-ns\.grafana\.com fails open: deletions ask no budget while it cannot be called$/,
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
