/** The oracle of statuses against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { BUDGETS, GROUP, NAMESPACE } from "../names.ts";
import { createStatusSafety } from "./statuses.ts";

const ACTOR = "reconciler-1";
const LIST = "/zoneawarepoddisruptionbudgets";
const STATUS = `${LIST}/budget/status`;
const PROBE = "/pods/zonewise-probe/eviction";
const ZONES = "/apis/apps/v1/statefulsets?limit=500";
const LEASE = "/leases/zonewise-reconciler";

const object = (name: string, status: object, generation = 1): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: "1", creationTimestamp: "", generation },
  status,
});

interface Tools {
  readonly wait: (ms: number) => void;
  readonly send: (method: string, path: string, body?: object) => void;
  readonly answer: (method: string, path: string, status: number) => void;
  /** A request that is answered at once. */
  readonly ask: (method: string, path: string, status: number, body?: object) => void;
  /** The budget as it is stored. */
  readonly have: (generation: number, observedGeneration: number) => void;
  /** The budget as the reconciler writes it. */
  readonly say: (budget: KubeObject) => void;
  readonly group: (status: object) => void;
  /** The definition of groups is applied. */
  readonly define: () => void;
}

function judge(play: (tools: Tools) => void, isSettled = true): string {
  const violations: string[] = [];
  let now = 0;
  const caller = { actor: ACTOR, call: "" };
  const oracle = createStatusSafety({
    violated: (what) => void violations.push(what),
    now: () => now,
    isQuiet: () => true,
    isReadForMore: false,
    areZonesSettled: () => isSettled,
  });
  const send: Tools["send"] = (method, path, body = path === PROBE ? SOFT : {}) =>
    oracle.onSent(caller, method, path, JSON.stringify(body));
  const answer: Tools["answer"] = (method, path, status) => oracle.onAnswered(caller, method, path, "", status);
  const store = (resource: string, stored: KubeObject): void =>
    oracle.onEvent({ type: "MODIFIED", resource, object: stored }, caller);
  play({
    wait: (ms) => void (now += ms),
    send,
    answer,
    ask: (method, path, status, body) => (send(method, path, body), answer(method, path, status)),
    have: (generation, observedGeneration) => store(BUDGETS, object("budget", { observedGeneration }, generation)),
    say: (budget) => store(BUDGETS, budget),
    group: (status) => store("rolloutgroups.zonewise.dev", object(GROUP, status)),
    define: () => store("customresourcedefinitions.apiextensions.k8s.io", object("rolloutgroups.zonewise.dev", {})),
  });
  return violations.join("; ");
}

const told = (observedGeneration: number, reason = "Protecting"): object => ({
  status: { observedGeneration, conditions: [{ reason }] },
});
/** An eviction of no pod, as a dry run. */
const SOFT = { deleteOptions: { dryRun: ["All"], preconditions: { uid: "none" } } };
const budgetSaying = (reason: string, disruptionsAllowed = 1, maxUnavailable = 1): KubeObject => ({
  ...object("budget", { observedGeneration: 1, conditions: [{ reason }], zones: [{ name: "a", disruptionsAllowed }] }),
  spec: { maxUnavailable },
});
const RELEASED = { spec: { holderIdentity: "" } };

const CASES: readonly (readonly [name: string, play: (tools: Tools) => void, says: RegExp])[] = [
  [
    "a group that waits and has an end",
    ({ group }) => group({ phase: "Waiting", progress: { estimatedCompletionTime: "soon" } }),
    /the RolloutGroup ingester is Waiting, and is to end at soon/,
  ],
  [
    "one that goes on and has one",
    ({ group }) => group({ phase: "RollingOut", progress: { estimatedCompletionTime: "soon" } }),
    /^$/,
  ],
  ["one that waits and has none", ({ group }) => group({ phase: "Waiting", progress: {} }), /^$/],
  ["a probe a minute", ({ ask, wait }) => (ask("POST", PROBE, 400), wait(60_000), ask("POST", PROBE, 400)), /^$/],
  [
    "two within a minute",
    ({ ask, wait }) => (ask("POST", PROBE, 400), wait(30_000), ask("POST", PROBE, 400)),
    /reconciler-1 asks the webhook again 30000 ms after it has answered/,
  ],
  [
    "another after one that failed",
    ({ ask, wait }) => (ask("POST", PROBE, 500), wait(30_000), ask("POST", PROBE, 400)),
    /^$/,
  ],
  [
    "a new spec that the status follows",
    ({ ask, have, wait }) => (
      have(2, 1),
      ask("GET", LIST, 200),
      ask("PUT", STATUS, 409, told(2)),
      wait(29_000),
      ask("GET", LIST, 200)
    ),
    /^$/,
  ],
  [
    "one that it was about to follow as somebody wrote another one",
    ({ ask, have, wait }) => (
      have(2, 1),
      ask("GET", LIST, 200),
      have(3, 1),
      ask("PUT", STATUS, 409, told(2)),
      wait(29_000),
      ask("GET", LIST, 200)
    ),
    /^$/,
  ],
  [
    "one that it follows by an earlier one",
    ({ ask, have, wait }) => (
      have(3, 1),
      ask("GET", LIST, 200),
      ask("PUT", STATUS, 409, told(2)),
      wait(16_000),
      ask("GET", LIST, 200)
    ),
    /reconciler-1 has read another spec of budget budget 16000 ms ago, and says nothing of it/,
  ],
  [
    "one that it does not follow",
    ({ ask, have, wait }) => (have(2, 1), ask("GET", LIST, 200), wait(16_000), ask("GET", LIST, 200)),
    /reconciler-1 has read another spec of budget budget 16000 ms ago, and says nothing of it/,
  ],
  [
    "a reservation in place of the status",
    ({ ask, have, wait }) => (
      have(2, 1),
      ask("GET", LIST, 200),
      ask("PUT", STATUS, 200, told(1)),
      wait(16_000),
      ask("GET", LIST, 200)
    ),
    /says nothing of it/,
  ],
  [
    "a spec that the next run has to read",
    ({ ask, have, wait }) => (
      have(2, 1),
      ask("GET", LIST, 200),
      ask("PUT", LEASE, 200, RELEASED),
      wait(16_000),
      ask("GET", LIST, 200)
    ),
    /^$/,
  ],
  [
    "a session that ends with its question open",
    ({ send, ask }) => (send("POST", PROBE), ask("PUT", LEASE, 200, RELEASED)),
    /^$/,
  ],
  [
    "one that says then that nobody has answered",
    ({ send, ask }) => (send("POST", PROBE), send("PUT", STATUS, told(1, "NotSeen")), ask("PUT", LEASE, 200, RELEASED)),
    /reconciler-1 says that the webhook has not answered, which it does not wait for/,
  ],
  [
    "one that says so after an error",
    ({ send, ask }) => (
      ask("POST", PROBE, 500),
      send("PUT", STATUS, told(1, "NotSeen")),
      ask("PUT", LEASE, 200, RELEASED)
    ),
    /^$/,
  ],
];

describe("the oracle of statuses", () => {
  it("condemns a question that may take effect", () => {
    const SAYS = /asks the webhook by an eviction that may take effect/;
    assert.match(
      judge(({ send }) => send("POST", PROBE, { deleteOptions: { preconditions: { uid: "none" } } })),
      SAYS,
    );
    assert.match(
      judge(({ send }) => send("POST", PROBE, { deleteOptions: { dryRun: ["All"] } })),
      SAYS,
    );
    assert.equal(
      judge(({ send }) => send("POST", PROBE, SOFT)),
      "",
    );
  });

  it("condemns a budget that says what nobody knows", () => {
    const SAYS = /says that a webhook guards the pods, which has not answered it/;
    assert.match(
      judge(({ say }) => say(budgetSaying("Protecting"))),
      SAYS,
    );
    assert.match(
      judge(({ say, ask }) => (ask("POST", PROBE, 500), say(budgetSaying("Protecting")))),
      SAYS,
    );
    assert.equal(
      judge(({ say, ask }) => (ask("POST", PROBE, 400), say(budgetSaying("Protecting")))),
      "",
    );
    assert.equal(
      judge(({ say }) => say(budgetSaying("NotSeen"))),
      "",
    );
  });

  it("condemns more evictions than a budget allows", () => {
    assert.match(
      judge(({ say }) => say(budgetSaying("NotSeen", 2))),
      /says that 2 evictions of a are allowed, of 1/,
    );
    assert.equal(
      judge(({ say }) => say(budgetSaying("NotSeen", 2, 2))),
      "",
    );
  });

  it("condemns a status that does not tell that all is settled", () => {
    const play =
      (ready: string, ms: number, isNew = false) =>
      ({ ask, group, wait, define }: Tools): void => {
        if (isNew) define();
        group({ conditions: [{ type: "Ready", status: ready }] });
        wait(15_000);
        ask("GET", ZONES, 200);
        wait(ms);
        ask("GET", ZONES, 200);
      };
    assert.match(judge(play("False", 4000)), /has read that all zones are settled, and the RolloutGroup says nothing/);
    assert.equal(judge(play("True", 4000)), "");
    assert.equal(judge(play("False", 3999)), "");
    assert.equal(judge(play("False", 4000), false), "");
    assert.equal(judge(play("False", 4000, true)), "");
  });

  for (const [name, play, says] of CASES)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(judge(play), says));
});
