/** The oracle of the node API's answers against histories that it must condemn, and those next to them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Caller } from "../network.ts";
import { createNodeAnswerSafety } from "./answer-safety.ts";
import { begin, createHistory, entry, type History, node, pod, policy, shadow } from "./history.ts";
import { POLICIES, SHADOWS } from "./shape.ts";

const SERVER = "node-api-1";
const A = "node-a-1";
const STAGED = { current_state: "StagedAndPerformedUpdate" };
const SHADOW_PATH = `/apis/brupop.bottlerocket.aws/v2/namespaces/zonewise/bottlerocketshadows/brs-${A}`;

/** Written by the node API over a shadow in this state, with this status. */
const writes = (t: Tools, wanted: string, before: object, after: object): void => {
  t.put(SHADOWS, shadow(A, wanted, before));
  t.put(SHADOWS, shadow(A, wanted, { ...before, ...after }), t.api());
};
const REBOOTING = { boot_id: "1", at: "x" };
const NONE_LEFT = { remaining: 0 };

interface Tools extends History {
  readonly api: () => Caller;
  /** It reads the shadow, as each request of an agent does. */
  readonly read: () => void;
  /** It answers a request that came so many seconds ago with 200. */
  readonly answer: (route: string, seconds?: number, by?: string) => void;
  /** The agent asks every 20 s, and is answered so. */
  readonly answerOwn: (...statuses: readonly number[]) => void;
  /** It answers somebody who is not the agent of the node. */
  readonly answerStranger: (status: number) => void;
}

function judge(play: (tools: Tools) => void): string {
  const violations: string[] = [];
  const history = createHistory((event, by) => oracle.onEvent(event, by));
  const { facts, now, store } = history;
  const oracle = createNodeAnswerSafety({
    facts,
    now,
    store: () => store,
    violated: (what) => void violations.push(what),
  });
  const api = (): Caller => ({ actor: SERVER, call: "x", sentAt: now() });
  begin(history);
  play({
    ...history,
    api,
    read: () => oracle.onRequest(api(), "GET", SHADOW_PATH),
    answerStranger: (status) =>
      oracle.onAnswer({
        node: A,
        by: AGENT,
        server: SERVER,
        route: "uncordon",
        arrivedAt: now(),
        status,
        as: "somebody else",
      }),
    answerOwn(...statuses) {
      for (const status of statuses) {
        history.wait(20);
        oracle.onAnswer({ node: A, by: AGENT, server: SERVER, route: "ping", arrivedAt: now(), status });
      }
    },
    answer: (route, seconds = 10, by = AGENT) =>
      oracle.onAnswer({ node: A, by, server: SERVER, route, arrivedAt: now() - seconds * 1000, status: 200 }),
  });
  return violations.join("; ");
}

/** It is reported that the node was given back. */
function reports(t: Tools, by?: string): void {
  drain(t);
  t.put(SHADOWS, shadow(A, "MonitoringUpdate", { current_state: "MonitoringUpdate" }), t.api());
  t.answer("bottlerocket-node-resource", 0, by);
}

const AGENT = "agent-1";
const DRAINED = "cordon-and-drain";
/** The node is cordoned by an earlier request, and the reboot wanted; its pod has gone. */
function drain({ put, remove, wait, api }: Tools): void {
  put(SHADOWS, shadow(A, "RebootedIntoUpdate", STAGED));
  put("nodes", node(A, { ours: true }), api());
  remove("pods", pod("ingester-zone-a-0", A));
  wait(60);
}

type Case = readonly [name: string, play: (tools: Tools) => void, expected: RegExp];
const AGAIN = Array<number>(6).fill(403);
const CASES: readonly Case[] = [
  ["an agent that is refused once", (t) => t.answerOwn(403, 200, ...AGAIN.slice(1)), /^$/],
  [
    "an agent that is refused again and again",
    (t) => t.answerOwn(...AGAIN, 403),
    /^the agent of node-a-1 is refused again and again$/,
  ],
  [
    "an agent that is refused while its Node is away",
    (t) => (t.remove("nodes", node(A)), t.answerOwn(...AGAIN, 403)),
    /^$/,
  ],
  ["a node without pods", (t) => (drain(t), t.answer(DRAINED)), /^$/],
  [
    "a node with a pod",
    (t) => (drain(t), t.put("pods", pod("stray", A)), t.wait(20), t.answer(DRAINED)),
    /^node-api-1 calls node-a-1 drained, with stray$/,
  ],
  ["a node whose pod came meanwhile", (t) => (drain(t), t.put("pods", pod("stray", A)), t.answer(DRAINED)), /^$/],
  [
    "a node with a pod, by force",
    (t) => {
      drain(t);
      t.put("pods", pod("stray", A));
      t.put(SHADOWS, shadow(A, "RebootedIntoUpdate", { ...STAGED, drain: { forced: true } }));
      t.wait(20);
      t.answer(DRAINED);
    },
    /^$/,
  ],
  ["a node that was cordoned just now", (t) => (drain(t), t.answer(DRAINED, 90)), /has cordoned just now/],
  [
    "a node whose reboot nobody wants",
    (t) => (drain(t), t.put(SHADOWS, shadow(A, "Idle")), t.wait(20), t.answer(DRAINED)),
    /whose reboot nobody wants/,
  ],
  [
    "a node whose reboot nobody wants any more",
    (t) => (drain(t), t.put(SHADOWS, shadow(A, "Idle")), t.answer(DRAINED)),
    /^$/,
  ],
  [
    "a node whose policy is frozen",
    (t) => (
      drain(t),
      t.put(POLICIES, policy({ active: [entry(A, "Draining")], frozen: { id: "x" } })),
      t.wait(20),
      t.answer(DRAINED)
    ),
    /whose policy is frozen/,
  ],
  ["a node that is cordoned, as given back", (t) => (drain(t), t.answer("uncordon")), /and it is cordoned by us/],
  ["a node that is not, as given back", (t) => (drain(t), t.put("nodes", node(A)), t.answer("uncordon")), /^$/],
  ["a report that it was given back", (t) => reports(t), /^node-a-1 reports MonitoringUpdate, and is cordoned by us$/],
  ["such a report of somebody who has its agent's token", (t) => reports(t, "speaker-1"), /^$/],
  ["a stranger who is refused", (t) => t.answerStranger(403), /^$/],
  ["a stranger whose token nobody could review", (t) => t.answerStranger(503), /^$/],
  ["a stranger who is obeyed", (t) => t.answerStranger(200), /^node-api-1 obeys somebody else, for node-a-1$/],
  ["a stranger who is told more than that", (t) => t.answerStranger(409), /obeys somebody else/],
  [
    "an announcement of a drained node",
    (t) => writes(t, "RebootedIntoUpdate", { ...STAGED, drain: NONE_LEFT }, { rebooting: REBOOTING }),
    /^$/,
  ],
  [
    "an announcement by force",
    (t) =>
      writes(t, "RebootedIntoUpdate", { ...STAGED, drain: { remaining: 2, forced: true } }, { rebooting: REBOOTING }),
    /^$/,
  ],
  [
    "an announcement while pods are left",
    (t) => writes(t, "RebootedIntoUpdate", { ...STAGED, drain: { remaining: 2 } }, { rebooting: REBOOTING }),
    /^node-api-1 announces a reboot of node-a-1, which is not drained$/,
  ],
  [
    "an announcement that nobody wants",
    (t) => writes(t, "Idle", { ...STAGED, drain: NONE_LEFT }, { rebooting: REBOOTING }),
    /^node-api-1 announces a reboot of node-a-1, which nobody wants$/,
  ],
  ["a drain of a node that is to reboot", (t) => writes(t, "RebootedIntoUpdate", STAGED, { drain: NONE_LEFT }), /^$/],
  [
    "a drain that nobody wants",
    (t) => writes(t, "StagedAndPerformedUpdate", STAGED, { drain: NONE_LEFT }),
    /^node-api-1 records a drain of node-a-1, whose reboot nobody wants$/,
  ],
  [
    "a drain that is forgotten as the update is over",
    (t) => writes(t, "Idle", { ...STAGED, drain: NONE_LEFT }, { current_state: "Idle", drain: undefined }),
    /^$/,
  ],
  [
    "a drain that outlives its update",
    (t) => writes(t, "Idle", { ...STAGED, drain: NONE_LEFT }, { current_state: "Idle" }),
    /^node-api-1 keeps the drain of node-a-1, whose update is over$/,
  ],
  [
    "a way back after a failure that the reconciler wants",
    (t) => writes(t, "Idle", { current_state: "ErrorReset" }, { current_state: "Idle" }),
    /^$/,
  ],
  [
    "a way back after a failure that nobody wants yet",
    (t) => (
      writes(t, "MonitoringUpdate", { current_state: "ErrorReset" }, { current_state: "Idle" }),
      t.answer("bottlerocket-node-resource")
    ),
    /^node-a-1 goes back to Idle after its failure, and MonitoringUpdate is wanted$/,
  ],
  [
    "a node that is about to reboot, as given back",
    (t) => (
      t.put(SHADOWS, shadow(A, "RebootedIntoUpdate", { ...STAGED, rebooting: REBOOTING })),
      t.wait(20),
      t.answer("uncordon")
    ),
    /^node-api-1 gives node-a-1 back, which has announced its reboot$/,
  ],
  [
    "a node that announced its reboot after it was given back",
    (t) => (
      t.wait(20),
      t.put(SHADOWS, shadow(A, "RebootedIntoUpdate", { ...STAGED, rebooting: REBOOTING })),
      t.answer("uncordon")
    ),
    /^$/,
  ],
  [
    "a cordon that nobody wants",
    (t) => (t.put(SHADOWS, shadow(A, "Idle")), t.wait(20), t.read(), t.put("nodes", node(A, { ours: true }), t.api())),
    /^node-api-1 cordons node-a-1, whose reboot nobody wants$/,
  ],
  [
    "a cordon that was wanted as it read",
    (t) => (t.read(), t.put(SHADOWS, shadow(A, "Idle")), t.wait(20), t.put("nodes", node(A, { ours: true }), t.api())),
    /^$/,
  ],
];

describe("the oracle of the node API's answers", () => {
  for (const [name, play, expected] of CASES)
    it(`${expected.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(judge(play), expected));
});
