import assert from "node:assert/strict";
import { it } from "node:test";
import { createNodeApi } from "../../../../reconciler/nodes/agent/call-node-api.ts";

it("an agent sends its token to no node API without TLS", () => {
  const read = (): Promise<string> => assert.fail("the token was read");
  const options = { node: { name: "node-1", uid: "u" }, readToken: read, readCa: read };
  assert.throws(() => createNodeApi({ ...options, url: new URL("http://brupop-apiserver:443") }), {
    code: "BadConfiguration",
  });
});
