import assert from "node:assert/strict";
import { it } from "node:test";
import { readAgentConfiguration } from "../../../infra/config/agent.ts";

const ENV = { MY_NODE_NAME: "node-1", KUBERNETES_NAMESPACE: "ns" };

it("an agent needs its node and its namespace; the rest has the original's defaults", () =>
  assert.deepEqual(readAgentConfiguration(ENV), {
    nodeName: "node-1",
    namespace: "ns",
    apiPort: 443,
    exclusionMs: 0,
    log: { level: "info", format: "json" },
  }));

const WRONG: readonly (readonly [env: Record<string, string>, message: RegExp])[] = [
  [{ KUBERNETES_NAMESPACE: "ns" }, /MY_NODE_NAME is not set, allowed is the name of a node/],
  [{ MY_NODE_NAME: "node-1" }, /KUBERNETES_NAMESPACE is not set/],
  [
    { ...ENV, EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC: "soon" },
    /EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC is soon, allowed is a whole number/,
  ],
  [{ ...ENV, APISERVER_SERVICE_PORT: "x" }, /APISERVER_SERVICE_PORT is x, allowed is a port/],
];
for (const [env, message] of WRONG)
  it(`an agent with ${JSON.stringify(env)} does not start`, () =>
    assert.throws(() => readAgentConfiguration(env), { code: "BadConfiguration", message }));
