/** What `kubectl auth` asks, in its own bytes: it sends reviews in protobuf. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readProtobuf } from "./protobuf/read.ts";
import { startFixture } from "./fixture.ts";

const AUTHORIZATION = "/apis/authorization.k8s.io/v1";
const CASES = [
  {
    command: "can-i delete pods/eviction -n default",
    bytes:
      "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a65637441636365737352657669657712470a100a0012001a0022002a0032003800420012290a270a0764656661756c74120664656c6574651a0022002a04706f647332003a086576696374696f6e1a08080012001a0020001a002200",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: { namespace: "default", verb: "delete", resource: "pods", name: "eviction" } },
    },
  },
  {
    command: "can-i get /metrics",
    bytes:
      "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a656374416363657373526576696577122f0a100a0012001a0022002a003200380042001211120f0a082f6d65747269637312036765741a08080012001a0020001a002200",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { nonResourceAttributes: { path: "/metrics", verb: "get" } },
    },
  },
  {
    command: "can-i --list -n default",
    bytes:
      "6b3873000a310a17617574686f72697a6174696f6e2e6b38732e696f2f7631121653656c665375626a65637452756c657352657669657712230a100a0012001a0022002a0032003800420012090a0764656661756c741a04180022001a002200",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectRulesReview",
      spec: { namespace: "default" },
    },
  },
  {
    command: "whoami",
    bytes:
      "6b3873000a2d0a1861757468656e7469636174696f6e2e6b38732e696f2f7631121153656c665375626a656374526576696577121a0a100a0012001a0022002a0032003800420012060a040a0012001a002200",
    body: { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
  },
];
for (const { command, bytes, body } of CASES)
  test(`kubectl auth ${command}: is read as it was meant`, () =>
    assert.deepEqual(readProtobuf(Buffer.from(bytes, "hex")), body));

test("everybody may do everything, and is told who they are", async (t) => {
  const { call } = await startFixture(t);
  const spec = { namespace: "default" };
  const status = async (path: string): Promise<unknown> =>
    ((await call("POST", path, { spec })).body as { readonly status: unknown }).status;
  assert.deepEqual(await status(`${AUTHORIZATION}/selfsubjectaccessreviews`), { allowed: true });
  assert.deepEqual(await status(`${AUTHORIZATION}/selfsubjectrulesreviews`), {
    resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
    nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
    incomplete: false,
  });
  assert.deepEqual(await status("/apis/authentication.k8s.io/v1/selfsubjectreviews"), {
    userInfo: { username: "admin", uid: "admin", groups: ["system:masters", "system:authenticated"] },
  });
});
