import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { it, type TestContext } from "node:test";
import { type CallNodeApi, createNodeApi } from "../../../../reconciler/nodes/agent/call-node-api.ts";

it("an agent sends its token to no node API without TLS", () => {
  const read = (): Promise<string> => assert.fail("the token was read");
  const options = { nodeName: "node-1", readUid: read, readToken: read, readCa: read };
  assert.throws(() => createNodeApi({ ...options, url: new URL("http://brupop-apiserver:443") }), {
    code: "BadConfiguration",
  });
});

/** Calls a server of the test instead of a node API. */
async function callServer(
  t: TestContext,
  answer: http.RequestListener,
  readUid: () => Promise<string>,
): Promise<CallNodeApi> {
  const server = http.createServer(answer);
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return createNodeApi({
    url: new URL("https://brupop-apiserver:443"),
    nodeName: "node-1",
    readUid,
    readToken: async () => "token",
    readCa: async () => "",
    open: ({ method, path, headers }) => http.request({ method, path, headers, port, host: "127.0.0.1" }),
  });
}

it("an agent reads the UID of its node for each call: the node may have been registered again", async (t) => {
  const uids = ["old", "new"];
  const seen: unknown[] = [];
  const call = await callServer(
    t,
    ({ headers }, response) => {
      seen.push(headers["brupopnodeuid"]);
      response.end();
    },
    async () => uids.shift() ?? assert.fail("the node was read without need"),
  );
  for (const _ of ["update", "update"]) await call("update");
  assert.deepEqual(seen, ["old", "new"]);
});

it("an agent that cannot read its node sends the UID of its last call, and calls nobody without any", async (t) => {
  const uids = [undefined, "known", undefined];
  const seen: unknown[] = [];
  const call = await callServer(
    t,
    ({ headers }, response) => {
      seen.push(headers["brupopnodeuid"]);
      response.end();
    },
    async () => uids.shift() ?? Promise.reject(new Error("the API server is away")),
  );
  await assert.rejects(call("update"), /the API server is away/);
  for (const route of ["update", "uncordon"] as const) await call(route);
  assert.deepEqual(seen, ["known", "known"]);
});

it("an agent that the node API sends away with Retry-After: 0 does not come back within a second", async (t) => {
  const call = await callServer(
    t,
    (_, response) => void response.writeHead(503, { "retry-after": "0" }).end(),
    async () => "u",
  );
  const { retryAfterMs = 0 } = await call("cordonAndDrain");
  assert.ok(retryAfterMs >= 1000 && retryAfterMs <= 1250, String(retryAfterMs));
});
