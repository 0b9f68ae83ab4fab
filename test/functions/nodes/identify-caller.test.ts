/** Who may speak for a node: tokens as TokenReview judges them, pods as they are. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judgeReview } from "../../../functions/nodes/identify-caller.ts";
import { createShadow, headersOf, NAMESPACE, playAgent, setNodeStage, type Agent, type NodeStage } from "./stage.ts";

const UNCORDON = "POST /bottlerocket-node-resource/uncordon";

interface Case {
  readonly name: string;
  readonly agent: (stage: NodeStage) => Promise<Agent>;
  readonly status: number;
  readonly says?: RegExp;
}

const withHeaders = (agent: Agent, headers: Readonly<Record<string, string>>): Agent => ({
  headers: { ...agent.headers, ...headers },
});
const uidOf = ({ node }: NodeStage, name: string): string => node(name).metadata.uid;

const CASES: readonly Case[] = [
  { name: "the agent of the node", agent: (stage) => playAgent(stage, "node-1"), status: 200 },
  {
    name: "the token of another node's agent",
    agent: async (stage) => {
      const { headers } = await playAgent(stage, "node-2");
      return { headers: headersOf("node-1", uidOf(stage, "node-1"), headers["BrupopK8sAuthToken"] ?? "") };
    },
    status: 403,
  },
  {
    name: "the token of a pod that runs elsewhere, whatever node its token is for",
    agent: async (stage) => {
      const agent = await playAgent(stage, "node-1");
      const { store } = stage.emulator;
      const pod = store.get("pods", NAMESPACE, "agent-node-1");
      assert.ok(pod);
      store.update("pods", { ...pod, spec: { ...(pod["spec"] as object), nodeName: "node-2" } });
      return agent;
    },
    status: 403,
  },
  {
    name: "a token for another audience",
    agent: (stage) => playAgent(stage, "node-1", { audience: "another" }),
    status: 401,
  },
  {
    name: "a token with a forged signature",
    agent: async (stage) => {
      const agent = await playAgent(stage, "node-1");
      return withHeaders(agent, { BrupopK8sAuthToken: `${agent.headers["BrupopK8sAuthToken"]?.slice(0, -6)}AAAAAA` });
    },
    status: 401,
  },
  {
    name: "a pod of the agent's name and account in another namespace",
    agent: async (stage) => {
      await playAgent(stage, "node-1");
      return playAgent(stage, "node-1", { namespace: "default" });
    },
    status: 403,
  },
  {
    name: "the token of a pod that has been replaced by one of its name",
    agent: async (stage) => {
      const agent = await playAgent(stage, "node-1");
      stage.emulator.store.remove("pods", NAMESPACE, "agent-node-1", { gracePeriodSeconds: 0 });
      await playAgent(stage, "node-1");
      return agent;
    },
    status: 401,
  },
  {
    name: "a UID that is not the node's",
    agent: async (stage) => withHeaders(await playAgent(stage, "node-1"), { BrupopNodeUid: "bogus" }),
    status: 403,
    says: /UID of the header BrupopNodeUid/,
  },
  { name: "no headers", agent: async () => ({ headers: {} }), status: 400 },
];

describe("the node API, called with", () => {
  for (const { name, agent, status, says = /(?:)/ } of CASES)
    it(`${name}, answers ${status}`, async (t) => {
      const stage = await setNodeStage(t);
      createShadow(stage, "node-1", { spec: { state: "Idle" } });
      const caller = await agent(stage);
      const answer = await stage.call(caller, UNCORDON);
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      assert.match(JSON.stringify(answer.body), says);
      const token = caller.headers["BrupopK8sAuthToken"] ?? "";
      if (token.length > 10)
        assert.ok(!JSON.stringify([stage.entries, answer.body]).includes(token), "a token in the log");
    });

  it("any headers, answers 200 to a ping, 405 to a wrong method and 404 to an unknown path", async (t) => {
    const stage = await setNodeStage(t);
    const none = { headers: {} };
    const ping = await stage.call(none, "GET /ping");
    assert.deepEqual([ping.status, ping.body], [200, "pong"]);
    assert.equal((await stage.call(none, "DELETE /bottlerocket-node-resource")).status, 405);
    assert.equal((await stage.call(none, "GET /bottlerocket-node-resource/uncordon")).status, 405);
    assert.equal((await stage.call(none, "POST /bottlerocket-node-resource/other")).status, 404);
  });

  it("a good token while the API server is out of order, answers 503 and when to try again", async (t) => {
    const stage = await setNodeStage(t);
    const agent = await playAgent(stage, "node-1");
    stage.emulator.faults.inject({ verb: "get", resource: "nodes", effect: { kind: "error" }, times: 1 });
    const { status, headers } = await stage.call(agent, UNCORDON);
    assert.deepEqual([status, headers["retry-after"]], [503, "5"]);
  });
});

const EXTRA = { "authentication.kubernetes.io/pod-name": ["p"], "authentication.kubernetes.io/pod-uid": ["u"] };
const USER = { username: "system:serviceaccount:ns:brupop-agent-service-account", extra: EXTRA };
const GOOD = { authenticated: true, audiences: ["brupop-apiserver"], user: USER };

const REVIEWS: readonly (readonly [name: string, status: unknown, refusal?: number])[] = [
  ["authenticated for our audience", GOOD],
  ["with one audience more", { ...GOOD, audiences: ["other", "brupop-apiserver"] }],
  ["an error beside authenticated", { ...GOOD, error: "but" }, 401],
  ["authenticated false", { ...GOOD, authenticated: false }, 401],
  ["authenticated missing", { ...GOOD, authenticated: undefined }, 401],
  ["no status", undefined, 401],
  ["audiences missing: the reviewer ignored ours", { ...GOOD, audiences: undefined }, 401],
  ["no audience", { ...GOOD, audiences: [] }, 401],
  ["another audience", { ...GOOD, audiences: ["nomatch"] }, 401],
  [
    "another namespace",
    { ...GOOD, user: { ...USER, username: "system:serviceaccount:other:brupop-agent-service-account" } },
    403,
  ],
  ["another account", { ...GOOD, user: { ...USER, username: "system:serviceaccount:ns:default" } }, 403],
  ["no pod", { ...GOOD, user: { ...USER, extra: {} } }, 403],
  ["no extra", { ...GOOD, user: { username: USER.username } }, 403],
  [
    "an empty list",
    { ...GOOD, user: { ...USER, extra: { ...EXTRA, "authentication.kubernetes.io/pod-name": [] } } },
    403,
  ],
  [
    "two pods",
    { ...GOOD, user: { ...USER, extra: { ...EXTRA, "authentication.kubernetes.io/pod-name": ["p", "q"] } } },
    403,
  ],
];

/** TokenReviews, by the original's cases and ours. */
for (const [name, status, refusal] of REVIEWS)
  it(`a review that says ${name} ${refusal ? `is refused with ${refusal}` : "is taken"}`, () => {
    const judged = judgeReview(status, "ns");
    if (refusal) assert.equal("status" in judged && judged.status, refusal);
    else assert.deepEqual(judged, { name: "p", uid: "u" });
  });
