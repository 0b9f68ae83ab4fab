/** The oracle of deletions against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { CONTROLLERS } from "../accounts.ts";
import { drawFrom } from "../draw.ts";
import { BUDGET, BUDGETS, NAMESPACE } from "../names.ts";
import { createSafety } from "../oracles/safety.ts";
import { drawShape } from "../shape.ts";
import { createDeletionSafety, type DeletionSafety } from "./safety.ts";
import { BY_HAND, CONFIGURATION, CONFIGURATIONS } from "./shape.ts";

const POD = "ingester-zone-a-0";
const PATH = "/admission/pod-deletion";
const HUMAN = { actor: "human", call: `DELETE pods/${POD}` };

const object = (name: string, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: "1", creationTimestamp: "", ...metadata },
});
const pod = (metadata: object = {}): KubeObject =>
  object(POD, { labels: { "rollout-group": "ingester" }, ownerReferences: [{ kind: "StatefulSet" }], ...metadata });
const goes = (previous: KubeObject): StoreEvent => ({ type: "MODIFIED", resource: "pods", object: pod(), previous });
const configured = (type: StoreEvent["type"]): StoreEvent => ({
  type,
  resource: CONFIGURATIONS,
  object: object(CONFIGURATION),
});
const sent = (username: string, groups: readonly string[] = [], { uid = POD, dryRun = false } = {}): string =>
  JSON.stringify({ request: { userInfo: { username, groups }, dryRun, oldObject: { metadata: { name: POD, uid } } } });
const answered = (allowed: boolean, username = "jane", groups: readonly string[] = [], of = {}) => ({
  path: PATH,
  sent: sent(username, groups, of),
  status: 200,
  answer: JSON.stringify({ response: { allowed } }),
});

interface Tools extends DeletionSafety {
  readonly wait: (seconds: number) => void;
}
interface Given {
  readonly conditions?: boolean;
  readonly ignore?: boolean;
}

/** The violations, and of the last pod whether it was let go. */
function judge({ conditions = true, ignore = false }: Given, play: (tools: Tools) => unknown): string {
  const violations: string[] = [];
  let now = 1_000_000;
  const oracle = createDeletionSafety({
    shape: { deletions: { conditions }, ignore, certificate: undefined },
    violated: (what) => void violations.push(what),
    now: () => now,
  });
  const last = play({ ...oracle, wait: (seconds) => (now += seconds * 1000) });
  return [...violations, ...(last === true ? ["let go"] : [])].join("; ");
}

describe("the oracle of deletions", () => {
  const KUBELET = CONTROLLERS["kubelet"] ?? assert.fail();
  const CASES: readonly (readonly [name: string, given: Given, play: (tools: Tools) => unknown, says: RegExp])[] = [
    [
      "a deletion by hand that nobody was asked about",
      {},
      ({ isLetGo }) => isLetGo(goes(pod()), HUMAN),
      /^ingester-zone-a-0 is deleted by hand, and no webhook was asked$/,
    ],
    [
      "one that was allowed",
      {},
      ({ isLetGo, onReview }) => (onReview(answered(true)), isLetGo(goes(pod()), HUMAN)),
      /^let go$/,
    ],
    [
      "one that was refused, and is executed",
      {},
      ({ isLetGo, onReview }) => (onReview(answered(false)), isLetGo(goes(pod()), HUMAN)),
      /no webhook was asked/,
    ],
    [
      "one that was allowed a minute before",
      {},
      ({ isLetGo, onReview, wait }) => (onReview(answered(true)), wait(60), isLetGo(goes(pod()), HUMAN)),
      /no webhook was asked/,
    ],
    [
      "one whose answer was lost",
      {},
      ({ isLetGo, onReview, onUnanswered }) => (
        onReview(answered(true)),
        onUnanswered(PATH, sent("jane")),
        isLetGo(goes(pod()), HUMAN)
      ),
      /no webhook was asked/,
    ],
    [
      "one that only a dry run was allowed",
      {},
      ({ isLetGo, onReview }) => (onReview(answered(true, "jane", [], { dryRun: true })), isLetGo(goes(pod()), HUMAN)),
      /no webhook was asked/,
    ],
    [
      "one that was allowed, where the answer to a dry run was lost",
      {},
      ({ isLetGo, onReview, onUnanswered }) => (
        onReview(answered(true)),
        onUnanswered(PATH, sent("jane", [], { dryRun: true })),
        isLetGo(goes(pod()), HUMAN)
      ),
      /^let go$/,
    ],
    [
      "one of the successor of a pod that was let go",
      {},
      ({ isLetGo, onReview }) => (
        onReview(answered(true, "jane", [], { uid: "an earlier one" })),
        isLetGo(goes(pod()), HUMAN)
      ),
      /no webhook was asked/,
    ],
    ["one that fails open", { ignore: true }, ({ isLetGo }) => isLetGo(goes(pod()), HUMAN), /^$/],
    [
      "one that the annotation lets go",
      {},
      ({ isLetGo }) => isLetGo(goes(pod({ annotations: { [BY_HAND]: "true" } })), HUMAN),
      /^$/,
    ],
    [
      "one with another value of the annotation",
      {},
      ({ isLetGo }) => isLetGo(goes(pod({ annotations: { [BY_HAND]: "yes" } })), HUMAN),
      /no webhook was asked/,
    ],
    ["one of a pod of no StatefulSet", {}, ({ isLetGo }) => isLetGo(goes(pod({ ownerReferences: [] })), HUMAN), /^$/],
    ["one by a controller", {}, ({ isLetGo }) => isLetGo(goes(pod()), { ...HUMAN, actor: "garbage-collector" }), /^$/],
    ["an eviction", {}, ({ isLetGo }) => isLetGo(goes(pod()), { actor: "drainer", call: "POST x/eviction" }), /^$/],
    [
      "one while the webhook is not there",
      {},
      ({ isLetGo, onEvent }) => (onEvent(configured("DELETED")), isLetGo(goes(pod()), HUMAN)),
      /^$/,
    ],
    [
      "one right after it has come back",
      {},
      ({ isLetGo, onEvent, wait }) => (
        onEvent(configured("DELETED")),
        onEvent(configured("ADDED")),
        wait(30),
        isLetGo(goes(pod()), HUMAN)
      ),
      /^$/,
    ],
    [
      "one long after that",
      {},
      ({ isLetGo, onEvent, wait }) => (
        onEvent(configured("DELETED")),
        onEvent(configured("ADDED")),
        wait(60),
        isLetGo(goes(pod()), HUMAN)
      ),
      /no webhook was asked/,
    ],
    ...Object.entries(CONTROLLERS).flatMap(([actor, { username, groups }]) => [
      [`the refusal of ${actor}`, { conditions: false }, refusing(username, groups), /may not delete/] as const,
      [`a question about ${actor}`, {}, asking(username, groups), /is asked about the deletion/] as const,
      [`a question that no condition prevents`, { conditions: false }, asking(username, groups), /^$/] as const,
      [`an error for ${actor}`, {}, erring(actor, 500), new RegExp(`^${actor} cannot delete .*: 500$`)] as const,
    ]),
    [
      "the refusal of the reconciler",
      { conditions: false },
      refusing("system:serviceaccount:x:zonewise-reconciler", []),
      /may not delete/,
    ],
    ["the refusal of a person", {}, refusing("jane", []), /^$/],
    ["an error for a person", {}, erring("human", 500), /^$/],
    ["a pod that is gone when a controller deletes it", {}, erring("scheduler", 404), /^$/],
    ["a conflict of a kubelet", {}, erring("kubelet", 409), /^$/],
    ["an answer to a kubelet of any node", {}, refusing("system:node:other", KUBELET.groups), /may not delete/],
  ];
  for (const [name, given, play, says] of CASES)
    it(`${/\^\$|let go/.test(says.source) ? "accepts" : "condemns"} ${name}`, () =>
      assert.match(judge(given, play), says));
});

/**
 * What the budget says of pods that somebody takes, whom the webhook has let or not. The budget may have been made again
 * so many seconds ago.
 */
function takeBoth(isLetGo: boolean, reserved: readonly string[], remadeSeconds?: number): string {
  const [first, second] = ["ingester-zone-a-0", "ingester-zone-b-0"];
  const violations: string[] = [];
  let now = 1_000_000;
  const shape = { ...drawShape(drawFrom(1)), zones: ["ingester-zone-a", "ingester-zone-b"], replicas: 3 };
  const safety = createSafety({
    shape: { ...shape, budget: 1, partitioned: false, certificate: undefined, ignore: false },
    violated: (what) => void violations.push(what),
    isPrepared: () => false,
    leavingSince: () => undefined,
    reservations: () => Object.fromEntries(reserved.map((key) => [key, { uid: key }])),
    listPods: () => [],
    leader: () => undefined,
    isLetGo: () => isLetGo,
    now: () => now,
  });
  safety.onEvent({ type: "ADDED", resource: BUDGETS, object: object(BUDGET) }, HUMAN);
  if (remadeSeconds !== undefined) {
    for (const type of ["DELETED", "ADDED"] as const)
      safety.onEvent({ type, resource: BUDGETS, object: object(BUDGET) }, HUMAN);
    now += remadeSeconds * 1000;
  }
  for (const name of [first, second].map(String)) {
    const previous = {
      ...object(name),
      status: { conditions: [{ type: "Ready", status: "True" }] },
    };
    const ending = { ...previous, metadata: { ...previous.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    safety.onEvent({ type: "MODIFIED", resource: "pods", object: ending, previous }, HUMAN);
  }
  return violations.join("; ");
}

describe("the oracle of budgets", () => {
  const BOTH = ["ingester-zone-a-0", "ingester-zone-b-0"];
  it("judges a deletion that a webhook has let go as an eviction", () => {
    assert.match(takeBoth(true, BOTH), /^two zones at once: ingester-zone-b-0 is taken by human while/);
    assert.match(takeBoth(true, []), /^ingester-zone-a-0 is taken by human without a reservation/);
  });
  it("judges it by a budget that was made again once the webhook must have seen it", () => {
    assert.match(takeBoth(true, [], 20), /^ingester-zone-a-0 is taken by human without a res/);
    assert.equal(takeBoth(true, [], 10), "", "it may have been asked before");
  });
  it("leaves a deletion alone that nobody asks about", () => assert.equal(takeBoth(false, []), ""));
});

function refusing(username: string, groups: readonly string[]) {
  return ({ onReview }: Tools): void => onReview(answered(false, username, groups));
}
function asking(username: string, groups: readonly string[]) {
  return ({ onArrival }: Tools): void => onArrival(PATH, sent(username, groups));
}
function erring(actor: string, status: number) {
  return ({ onAnswered }: Tools): void =>
    onAnswered({ actor, call: "" }, "DELETE", `/api/v1/namespaces/${NAMESPACE}/pods/${POD}`, "", status);
}
