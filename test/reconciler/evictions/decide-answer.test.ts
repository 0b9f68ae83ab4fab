/** What is answered to an Eviction, when, and as which status; the API's own rules are asked about each. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { RolloutError } from "../../../infra/errors.ts";
import { judged, undecided, verdict } from "../../../reconciler/budget/verdict.ts";
import {
  type Answer,
  answerVerdict,
  answerWithoutVerdict,
  HEARTBEAT_MS,
  isAsked,
  isDue,
  LEAST_HEARTBEAT_MS,
  statusOf,
} from "../../../reconciler/evictions/decide-answer.ts";
import { type Eviction, readEviction, RESPONDER } from "../../../reconciler/evictions/eviction.ts";
import { draftAnswer, draftInterrupted } from "../../../reconciler/evictions/eviction-events.ts";
import { runs } from "../../runs.ts";
import type { EvictionStatus } from "./definition.ts";
import { refusals } from "./definition.ts";
import { advanceEviction, DEADLINE_MS, EVICTOR, evictionOf } from "./play.ts";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const POD = { name: "web-zone-a-0", uid: "0d9f3c9e-1111-4222-8333-444455556666" };
const object = (change: (status: EvictionStatus) => EvictionStatus = (status) => status) => {
  const eviction = evictionOf(POD, NOW);
  return { ...eviction, status: change(eviction.status) };
};
const read = (change?: (status: EvictionStatus) => EvictionStatus): Eviction =>
  readEviction(object(change)) ?? assert.fail("not read");
const withOwn = (own: object) => (status: EvictionStatus) => ({
  ...status,
  responders: (status.responders ?? []).map((one) => (one.name === RESPONDER ? { ...one, ...own } : one)),
});
const at = (ms: number): string => new Date(NOW + ms).toISOString().replace(/\.\d+/, "");
const waiting = (message: string, expectedAt?: number): Answer => ({ answer: "wait", message, expectedAt });

describe("an Eviction is ours to answer", () => {
  it("while we are active and somebody wants it", () => {
    const eviction = read();
    assert.deepEqual(eviction.pod, POD);
    assert.ok(isAsked(eviction));
  });
  for (const [what, change] of [
    ["once we have completed", withOwn({ completionTime: at(1) })],
    [
      "while another is active",
      (status: EvictionStatus) => ({
        ...status,
        targetResponders: (status.targetResponders ?? []).map((one) => ({
          ...one,
          state: one.name === EVICTOR ? "Active" : "Inactive",
        })),
      }),
    ],
    [
      "once all requests are withdrawn",
      (status: EvictionStatus) => ({ ...status, requesters: [{ name: "a.example/b", intent: "Withdrawn" }] }),
    ],
    [
      "once the pod is evicted",
      (status: EvictionStatus) => ({ ...status, conditions: [{ type: "TargetEvicted", status: "True" }] }),
    ],
    [
      "once it has failed",
      (status: EvictionStatus) => ({ ...status, conditions: [{ type: "Failed", status: "True" }] }),
    ],
    ["before its controller has started us", withOwn({ startTime: undefined })],
  ] as const)
    it(`not ${what}`, () => assert.ok(!isAsked(read(change))));
  for (const [what, broken] of [
    ["names other responders", evictionOf(POD, NOW, [EVICTOR])],
    ["has no status yet", { ...object(), status: undefined }],
    ["has a heartbeat that is no time", object(withOwn({ heartbeatTime: "soon" }))],
    ["has lists that are none", { ...object(), status: { targetResponders: "x" } }],
    ["has no spec", { ...object(), spec: undefined }],
  ] as const)
    it(`not if it ${what}`, () => assert.equal(readEviction(broken as never), undefined));
});

describe("the answer", () => {
  it("to what the budget denies is a wait with its reason and its words", () => {
    const denied = verdict("BudgetSpent", "1 pod not ready in web-zone-b");
    assert.deepEqual(answerVerdict(judged(denied)), waiting("BudgetSpent: 1 pod not ready in web-zone-b"));
  });
  it("to what cannot be allowed as it is configured is a wait as well", () =>
    assert.equal(answerVerdict(judged(verdict("BudgetInvalid", "no")))?.answer, "wait"));
  it("to what the budget allows, or no budget selects, is a step back", () => {
    for (const reason of ["Allowed", "PodNotInScope", "PodNotReady"] as const)
      assert.deepEqual(
        { ...answerVerdict(judged(verdict(reason, "m"))), message: "" },
        {
          answer: "stepBack",
          why: "allowed",
          message: "",
        },
      );
  });
  it("for a pod that is gone, or is another one, is a step back that allows nothing", () => {
    for (const reason of ["PodNotFound", "OtherPod"] as const) {
      const found = answerVerdict(judged(verdict(reason, "m"))) ?? assert.fail();
      assert.ok(found.answer === "stepBack" && found.why === "gone");
      assert.deepEqual(draftAnswer(read(), found), []);
    }
  });
  it("without a verdict is none after a fault, and a wait after lost races", () => {
    assert.equal(answerVerdict(undecided(new RolloutError("Unreachable", "away"))), undefined);
    assert.match(answerVerdict(undecided())?.message ?? "", /^NotNow: /);
  });
  it("for a target that is no pod is a step back", () => {
    assert.equal(answerWithoutVerdict(read()), undefined);
    assert.equal(answerWithoutVerdict({ ...read(), pod: undefined })?.answer, "stepBack");
  });
});

describe("a heartbeat", () => {
  const said = (own: object): Eviction => read(withOwn(own));
  it("is due without one before, and after a minute", () => {
    assert.ok(isDue(said({}), waiting("a"), NOW));
    const eviction = said({ heartbeatTime: at(0), message: "a" });
    assert.ok(!isDue(eviction, waiting("a"), NOW + HEARTBEAT_MS - 1));
    assert.ok(isDue(eviction, waiting("a"), NOW + HEARTBEAT_MS));
  });
  it("comes sooner for another reason or an estimate that has passed, but not within 20 s", () => {
    const eviction = said({ heartbeatTime: at(0), message: "a" });
    assert.ok(!isDue(eviction, waiting("b"), NOW + LEAST_HEARTBEAT_MS - 1));
    assert.ok(isDue(eviction, waiting("b"), NOW + LEAST_HEARTBEAT_MS));
    const over = said({ heartbeatTime: at(0), message: "a", expectedCompletionTime: at(10_000) });
    assert.ok(isDue(over, waiting("a"), NOW + LEAST_HEARTBEAT_MS));
  });
  it("is no reason to keep back that it may go", () =>
    assert.ok(isDue(said({ heartbeatTime: at(0) }), { answer: "stepBack", why: "allowed", message: "m" }, NOW + 1000)));
  it("leaves time for a reconciler that is away: ten of them fit into the controller's deadline", () =>
    assert.ok(10 * HEARTBEAT_MS < DEADLINE_MS));
});

describe("the status", () => {
  it("has no estimate where there is none, and drops an earlier one", () => {
    const own = statusOf(read(withOwn({ expectedCompletionTime: at(600_000) })), waiting("a"), NOW);
    assert.deepEqual(own, { name: RESPONDER, startTime: at(0), heartbeatTime: at(0), message: "a" });
  });
  it("leaves out an estimate that is over by the time it is written", () =>
    assert.equal(statusOf(read(), waiting("a", NOW - 1), NOW).expectedCompletionTime, undefined));
  it("of a step back has no heartbeat of its own and no estimate", () => {
    const before = withOwn({ heartbeatTime: at(0), expectedCompletionTime: at(600_000) });
    const own = statusOf(read(before), { answer: "stepBack", why: "allowed", message: "m" }, NOW + 1000);
    assert.deepEqual([own.heartbeatTime, own.completionTime, own.expectedCompletionTime], [at(0), at(1000), undefined]);
  });

  const answers = fc.oneof(
    fc.record({
      answer: fc.constant("wait" as const),
      message: fc.string({ maxLength: 50 }),
      expectedAt: fc.option(fc.integer({ min: NOW - 10_000_000, max: NOW + 10_000_000 }), { nil: undefined }),
    }),
    fc.record({ answer: fc.constant("stepBack" as const), why: fc.constant("allowed" as const), message: fc.string() }),
  );

  it("keeps the API's rules, whatever the clocks, and never waits beyond the deadline while it ticks", () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 90_000 }), answers), { maxLength: 30 });
    fc.assert(
      fc.property(fc.integer({ min: -25_000, max: 25_000 }), steps, (skew, all) => {
        let [time, status] = [NOW, object().status];
        for (const [pass, answer] of all) {
          time += pass;
          status = advanceEviction(status, time, false);
          const eviction = readEviction({ ...object(), status } as never) ?? assert.fail("not read");
          assert.ok(!eviction.wasInterrupted);
          if (!isAsked(eviction) || !isDue(eviction, answer, time + skew)) continue;
          const own = statusOf(eviction, answer, time + skew);
          const responders = (status.responders ?? []).map((one) => (one.name === RESPONDER ? own : one));
          const next = { ...status, responders };
          assert.deepEqual(refusals(status, next, time), []);
          status = next;
        }
      }),
      { numRuns: runs(2000) },
    );
  });
});

describe("the Events", () => {
  it("of a wait say until when, if somebody knows, and are one as long as the reason is the same", () => {
    const [known] = draftAnswer(read(), waiting("BudgetSpent: 1 pod not ready in b", NOW + 60_000));
    const [unknown] = draftAnswer(read(), waiting("BudgetSpent: 2 pods not ready in b"));
    assert.match(
      known?.message ?? "",
      /asked for by drainer\.example\/node, waits, expected until 2026-01-01T12:01:00Z/,
    );
    assert.ok(!unknown?.message.includes("until"));
    assert.equal(known?.cause, unknown?.cause);
  });
  it("warn of an Eviction that its controller has taken from us", () => {
    const status = advanceEviction(object().status, NOW + DEADLINE_MS, false);
    const eviction = readEviction({ ...object(), status } as never) ?? assert.fail();
    assert.deepEqual(
      draftInterrupted(eviction).map(({ reason, type }) => [reason, type]),
      [["EvictionUnanswered", "Warning"]],
    );
    assert.deepEqual(draftInterrupted(read()), []);
  });
});
