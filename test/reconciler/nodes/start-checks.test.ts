import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CheckAnswer } from "../../../reconciler/checks/check.ts";
import type { StoredResult } from "../../../reconciler/checks/result.ts";
import { type NodePlan, planPass } from "../../../reconciler/nodes/plan-pass.ts";
import type { PolicyStatus } from "../../../reconciler/nodes/policy.ts";
import { at, busyNode, entry, MINUTE, node, NOW, policy, snapshot, startedBy } from "./fixture.ts";

const check = {
  name: "errors",
  query: { expr: "up == 0", url: "prometheus:9090" },
  successWhen: "NoData",
  initialDelaySeconds: 0,
  periodSeconds: 60,
  successThreshold: 2,
};
const good: CheckAnswer = { kind: "Vector", samples: 0, warnings: [], at: NOW };
const bad: CheckAnswer = { kind: "Vector", samples: 1, sample: "up{} 0", warnings: [], at: NOW };
const none: CheckAnswer = { kind: "Error", code: "Unreachable", message: "connect ECONNREFUSED", at: NOW };

const result = (overrides: Partial<StoredResult> = {}): StoredResult => ({
  name: "errors",
  lastVerdict: "Success",
  lastTime: at(-MINUTE),
  consecutiveSuccesses: 2,
  consecutiveFailures: 0,
  consecutiveErrors: 0,
  ...overrides,
});
const checks = (...results: readonly StoredResult[]): NonNullable<PolicyStatus["checks"]> => ({
  since: at(-60 * MINUTE),
  results: [...results],
});

interface Case {
  readonly spec?: object;
  readonly status?: Partial<PolicyStatus>;
  readonly answer?: CheckAnswer;
  readonly nodes?: Parameters<typeof snapshot>[0];
}

function plan({ spec = {}, status = {}, answer, nodes = [node("a"), node("b")] }: Case): NodePlan {
  const stored = { observedGeneration: 1, ...status };
  const answers = answer && { answers: new Map([["errors", answer]]) };
  return planPass(snapshot(nodes, { policy: policy({ checks: [check], ...spec }, stored), ...answers }));
}

const started = (one: Case): string[] => startedBy(plan(one));
const reasons = (one: Case): string[] => [...new Set(plan(one).skips.map(({ reason }) => reason))];

describe("checks of Prometheus before a start", () => {
  const passed = { consecutiveSuccesses: 2 };
  for (const [title, stored, one, expected] of [
    ["hold every start before the first answer", undefined, {}, "CheckPending"],
    ["hold while one has not succeeded often enough", { consecutiveSuccesses: 1 }, {}, "CheckPending"],
    ["hold while one fails", undefined, { answer: bad }, "CheckFailing"],
    ["hold while Prometheus does not answer", undefined, { answer: none }, "CheckUnreachable"],
    ["hold on an answer that is old", { lastTime: at(-5 * MINUTE) }, {}, "CheckPending"],
    ["hold on an answer of the time to come", { lastTime: at(MINUTE / 2) }, {}, "CheckPending"],
    ["do not count for another query", passed, { status: { observedGeneration: 0 } }, "CheckPending"],
    ["let a node start once they have passed", passed, {}, "LimitReached"],
  ] as const)
    it(title, () => {
      const known = stored && { checks: checks(result(stored)) };
      assert.deepEqual(reasons({ ...one, status: { ...known, ...("status" in one && one.status) } }), [expected]);
    });

  it("say which check, and what it has seen", () => {
    assert.equal(plan({ answer: bad }).status.message, 'check "errors" fails: up{} 0');
    assert.equal(
      plan({ answer: none }).status.waiting[0]?.message,
      'check "errors" has no answer: Unreachable: connect ECONNREFUSED',
    );
    const passing = plan({ answer: good }).status;
    assert.equal(passing.message, 'check "errors": 1 of 2 consecutive passes');
  });

  it("start a node in the pass whose answer was the last one that was missing", () => {
    const one = { status: { checks: checks(result({ consecutiveSuccesses: 1 })) }, answer: good };
    assert.deepEqual([started(one), plan(one).status.checks?.results[0]?.consecutiveSuccesses], [["a"], 2]);
  });

  it("begin again after a failure in between", () => {
    const stored = { status: { checks: checks(result()) }, answer: bad };
    assert.deepEqual([started(stored), plan(stored).status.checks?.results[0]?.consecutiveSuccesses], [[], 0]);
  });

  it("never hold a node that is active", () => {
    const nodes = [busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate"), node("b")];
    const { writes } = plan({
      nodes,
      spec: { maxConcurrent: 2 },
      status: { active: [entry("a", { phase: "Holding" })] },
      answer: bad,
    });
    assert.deepEqual(
      writes.map(({ node, spec }) => `${node.name} ${spec.state}`),
      ["a RebootedIntoUpdate"],
    );
  });

  it("begin again when a node has left its slot: what it has done shows only from now on", () => {
    const done = node("a", {
      shadow: {
        ...busyNode("a", "Idle", "Idle").shadow,
        status: { current_version: "1.1.0", target_version: "1.1.0", current_state: "Idle", crash_count: 0 },
      } as never,
    });
    const one = {
      nodes: [done, node("b")],
      status: { active: [entry("a", { phase: "Recovering" })], checks: checks(result()) },
    };
    assert.deepEqual([started(one), plan(one).status.checks], [[], { since: at(0), results: [] }]);
  });

  for (const [title, one] of [
    ["no node has an update", { nodes: [] }],
    ["no slot is free", { spec: { maxConcurrent: 0 } }],
    ["the policy is switched off", { spec: { enabled: false } }],
    ["the window is closed", { spec: { window: { cron: "* * 3 * * *" } } }],
    ["it has no checks", { spec: { checks: [] } }],
  ] as const)
    it(`are not asked, nor remembered, while ${title}`, () => {
      const { due, status } = plan({ status: { checks: checks(result()) }, ...one });
      assert.deepEqual([due, status.checks], [[], undefined]);
    });

  it("are asked after their initial delay, and by their stored results", () => {
    const due = (spec: object, status: Partial<PolicyStatus>): number =>
      plan({ spec: { checks: [{ ...check, ...spec }] }, status }).due.length;
    assert.equal(due({ initialDelaySeconds: 60 }, {}), 0);
    assert.equal(due({ initialDelaySeconds: 60 }, { checks: { since: at(-MINUTE), results: [] } }), 1);
    assert.equal(due({}, { checks: checks(result({ lastTime: at(-59_000) })) }), 0);
    const failed = { lastVerdict: "Error", consecutiveSuccesses: 0, consecutiveErrors: 1 } as const;
    assert.equal(due({}, { checks: checks(result({ lastTime: at(-5000), ...failed })) }), 1);
  });

  it("keep a one-shot window open", () => {
    const campaign = { cron: "0 0 11 * * *", timeZone: "UTC", handledThrough: at(-120 * MINUTE) };
    const { status } = plan({ spec: { window: { cron: campaign.cron } }, status: { campaign }, answer: bad });
    assert.deepEqual([status.skipped, status.campaign], [{ CheckFailing: 2 }, campaign]);
  });
});
