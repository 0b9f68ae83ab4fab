import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { it } from "node:test";
import { createNodeApi } from "../../../../reconciler/nodes/agent/call-node-api.ts";

it("an agent sends its token to no node API without TLS", () => {
  const read = (): Promise<string> => assert.fail("the token was read");
  const options = { node: { name: "node-1", uid: "u" }, readToken: read, readCa: read };
  assert.throws(() => createNodeApi({ ...options, url: new URL("http://brupop-apiserver:443") }), {
    code: "BadConfiguration",
  });
});

it("an agent reads the UID of its node again once it is refused: the node may have been registered again", async (t) => {
  const uids: unknown[] = [];
  const server = http.createServer((request, response) => {
    uids.push(request.headers["brupopnodeuid"]);
    response.writeHead(request.headers["brupopnodeuid"] === "new" ? 200 : 403).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const answers: (string | Error)[] = [new Error("the API server does not answer"), "new"];
  const call = createNodeApi({
    url: new URL("https://brupop-apiserver:443"),
    node: { name: "node-1", uid: "old" },
    readUid: async () => {
      const answer = answers.shift() ?? assert.fail("the node was read without need");
      if (answer instanceof Error) throw answer;
      return answer;
    },
    readToken: async () => "token",
    readCa: async () => "",
    open: ({ method, path, headers }) => http.request({ method, path, headers, port, host: "127.0.0.1" }),
  });
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) statuses.push((await call("update")).status);
  assert.deepEqual(statuses, [403, 403, 200, 200]);
  assert.deepEqual(uids, ["old", "old", "new", "new"]);
});

it("an agent that the node API sends away with Retry-After: 0 does not come back within a second", async (t) => {
  const server = http.createServer((_request, response) => void response.writeHead(503, { "retry-after": "0" }).end());
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const call = createNodeApi({
    url: new URL("https://brupop-apiserver:443"),
    node: { name: "node-1", uid: "u" },
    readToken: async () => "token",
    readCa: async () => "",
    open: ({ method, path, headers }) => http.request({ method, path, headers, port, host: "127.0.0.1" }),
  });
  const { retryAfterMs = 0 } = await call("cordonAndDrain");
  assert.ok(retryAfterMs >= 1000 && retryAfterMs <= 1250, String(retryAfterMs));
});
