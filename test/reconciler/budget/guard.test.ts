import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Guard, type Hook, judgeGuard, type Probe, type Registered } from "../../../reconciler/budget/guard.ts";

const hook = (traits: Partial<Hook> = {}): Hook => ({
  configuration: "ours",
  name: "ours.grafana.com",
  failsOpen: false,
  service: "ns/rollout-operator",
  ...traits,
});
const registered = (...hooks: readonly Hook[]): Registered => ({ hooks, unread: [] });
const UNREAD: Registered = { hooks: undefined, unread: ["webhook configurations may not be read"] };
const by = "ours.grafana.com";
const FAILED = (why: string): Probe => ({ result: "failed", by, why });

type Case = readonly [what: string, of: Registered, probe: Probe | undefined, reason: Guard["reason"], says: RegExp];

const CASES: readonly Case[] = [
  ["is registered for evictions", registered(), undefined, "NoWebhook", /every eviction in ns happens unchecked$/],
  [
    "has answered",
    registered(hook()),
    { result: "answered", by },
    "Guarded",
    /^ours\.grafana\.com has answered a probe for evictions in ns$/,
  ],
  [
    "has answered, and fails open",
    registered(hook({ name: "other" }), hook({ failsOpen: true })),
    { result: "answered", by },
    "Guarded",
    /in ns; it fails open while the functions do not answer$/,
  ],
  ["has answered, whose registration may not be read", UNREAD, { result: "answered", by }, "Guarded", /^ours/],
  [
    "is registered, and let a probe pass",
    registered(hook()),
    { result: "allowed" },
    "NoWebhook",
    /^ours\.grafana\.com did not judge it: .* a dry-run eviction in ns was allowed without a check, and so is every other$/,
  ],
  ["judged a probe, as far as that may be read", UNREAD, { result: "allowed" }, "NoWebhook", /: no webhook sends them/],
  [
    "could be called",
    registered(hook()),
    FAILED("no endpoints available"),
    "WebhookDown",
    /^ours\.grafana\.com cannot be called, no endpoints available; it fails closed: every eviction in ns is refused$/,
  ],
  [
    "gave a clear answer",
    registered(hook()),
    { result: "unclear", why: "boom" },
    "NotSeen",
    /^ours\.grafana\.com was not seen to answer for evictions in ns: boom$/,
  ],
  [
    "could be asked by this user",
    registered(hook()),
    { result: "notTried", why: "jane may not create pods/eviction" },
    "NotSeen",
    /: a dry-run eviction was not tried: jane may not create pods\/eviction$/,
  ],
  [
    "can be seen at all",
    UNREAD,
    { result: "unclear", why: "boom" },
    "NotSeen",
    /^an eviction webhook \(webhook configurations may not be read\) was not seen to answer .*: boom$/,
  ],
];

describe("an eviction webhook", () => {
  for (const [what, of, probe, reason, says] of CASES)
    it(`${what}: ${reason}`, () => {
      const guard = judgeGuard("ns", of, probe);
      assert.equal(guard.reason, reason);
      assert.match(guard.message, says);
      assert.equal(guard.remedy === "", reason === "Guarded");
      assert.doesNotMatch(guard.remedy, /^kubectl .*; /m, "a command stands alone on its line");
    });

  for (const why of ["x509: certificate signed by unknown authority", "unable to verify the first certificate"])
    it(`gets its CA again where it is ${why.slice(0, 4)}…`, () =>
      assert.match(judgeGuard("ns", registered(hook()), FAILED(why)).remedy, /gives them the CA/));

  it("of another Service is to be served, or removed", () => {
    const left = hook({ service: "old/webhooks" });
    const { remedy } = judgeGuard("ns", registered(hook({ name: "b" }), left), FAILED("no endpoints available"));
    assert.match(remedy, /^see what serves webhooks, .*:\nkubectl -n old get /);
  });
});
