/** The oracle of the node API's answers against histories that it must condemn, and those next to them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Caller } from "../network.ts";
import { createNodeAnswerSafety } from "./answer-safety.ts";
import { begin, createHistory, entry, type History, node, pod, policy, shadow, SHAPE } from "./history.ts";
import { POLICIES, SHADOWS } from "./shape.ts";

const SERVER = "node-api-1";
const A = "node-a-1";
const STAGED = { current_state: "StagedAndPerformedUpdate" };
const SHADOW_PATH = `/apis/brupop.bottlerocket.aws/v2/namespaces/zonewise/bottlerocketshadows/brs-${A}`;

interface Tools extends History {
  readonly api: () => Caller;
  /** It reads the shadow, as each request of an agent does. */
  readonly read: () => void;
  /** It answers a request that came so many seconds ago with 200. */
  readonly answer: (route: string, seconds?: number) => void;
}

function judge(play: (tools: Tools) => void): string {
  const violations: string[] = [];
  const history = createHistory(SHAPE, (event, by) => oracle.onEvent(event, by));
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
    answer: (route, seconds = 10) =>
      oracle.onAnswer({ node: A, server: SERVER, route, arrivedAt: now() - seconds * 1000, status: 200 }),
  });
  return violations.join("; ");
}

const DRAINED = "cordon-and-drain";
/** The node is cordoned by an earlier request, and the reboot wanted; its pod has gone. */
function drain({ put, remove, wait, api }: Tools): void {
  put(SHADOWS, shadow(A, "RebootedIntoUpdate", STAGED));
  put("nodes", node(A, { ours: true }), api());
  remove("pods", pod("ingester-zone-a-0", A));
  wait(60);
}

type Case = readonly [name: string, play: (tools: Tools) => void, expected: RegExp];
const CASES: readonly Case[] = [
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
  [
    "a report that it was given back",
    (t) => (drain(t), t.put(SHADOWS, shadow(A, "MonitoringUpdate", { current_state: "MonitoringUpdate" }), t.api())),
    /^node-a-1 reports MonitoringUpdate, and is cordoned by us$/,
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
