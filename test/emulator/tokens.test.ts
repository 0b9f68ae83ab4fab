import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import type { JsonWebKey } from "node:crypto";
import { test } from "node:test";
import { manualClock } from "./clock.ts";
import { dig, listOf } from "./objects.ts";
import { startFixture } from "./fixture.ts";

const ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews";
const AUDIENCE = "https://example.com";

test("a ServiceAccount's token is signed with the published key, valid for its audience, and expires", async (t) => {
  const clock = manualClock();
  const { call } = await startFixture(t, { clock });
  await call("POST", ACCOUNTS, { metadata: { name: "bob" } });
  const request = await call("POST", `${ACCOUNTS}/bob/token`, {
    spec: { audiences: [AUDIENCE], expirationSeconds: 600 },
  });
  const token = String(dig(request.body, "status", "token"));

  const [head = "", body = "", signature = ""] = token.split(".");
  const key = listOf(dig((await call("GET", "/openid/v1/jwks")).body, "keys"))[0] as JsonWebKey;
  const publicKey = { key: createPublicKey({ key, format: "jwk" }), dsaEncoding: "ieee-p1363" } as const;
  assert.ok(verify("sha256", Buffer.from(`${head}.${body}`), publicKey, Buffer.from(signature, "base64url")));

  const review = async (audiences?: string[]): Promise<unknown> =>
    dig((await call("POST", REVIEWS, { spec: { token, ...(audiences && { audiences }) } })).body, "status");
  const passed = await review([AUDIENCE, "other"]);
  assert.equal(dig(passed, "authenticated"), true);
  assert.equal(dig(passed, "user", "username"), "system:serviceaccount:default:bob");
  assert.equal(dig(await review(), "authenticated"), undefined);

  await clock.advance(601_000);
  assert.equal(dig(await review([AUDIENCE]), "authenticated"), undefined);
});

test("the token of a deleted ServiceAccount, a forged token and a missing one are unauthorized", async (t) => {
  const { emulator, call } = await startFixture(t);
  await call("POST", ACCOUNTS, { metadata: { name: "bob" } });
  const { body } = await call("POST", `${ACCOUNTS}/bob/token`, { spec: {} });
  const token = String(dig(body, "status", "token"));
  const { connect } = await import("../cluster/conformance/client.ts");
  const [cluster] = listOf(emulator.kubeconfig()["clusters"]);
  const as = async (bearer: string): Promise<number> => {
    const config = { clusters: [cluster], users: [{ user: { token: bearer } }] } as unknown as Parameters<
      typeof connect
    >[0];
    const client = connect(config);
    const { status } = await client.call({ method: "GET", path: ACCOUNTS });
    client.close();
    return status;
  };
  assert.equal(await as(token), 200);
  assert.equal(await as(`${token.slice(0, -4)}AAAA`), 401);
  assert.equal(await as(""), 401);
  await call("DELETE", `${ACCOUNTS}/bob`);
  assert.equal(await as(token), 401);
});

test("a token that is bound to a pod names the pod and its node, and ends with the pod", async (t) => {
  const { emulator, call } = await startFixture(t);
  await call("POST", ACCOUNTS, { metadata: { name: "agent" } });
  const pods = "/api/v1/namespaces/default/pods";
  const pod = await call("POST", pods, {
    metadata: { name: "agent-x" },
    spec: { nodeName: "node-1", serviceAccountName: "agent", containers: [] },
  });
  const uid = String(dig(pod.body, "metadata", "uid"));
  const issue = (reference: object) =>
    call("POST", `${ACCOUNTS}/agent/token`, {
      spec: { audiences: [AUDIENCE], boundObjectRef: { apiVersion: "v1", kind: "Pod", ...reference } },
    });
  const { body } = await issue({ name: "agent-x", uid });
  const review = async (): Promise<unknown> =>
    dig(
      (await call("POST", REVIEWS, { spec: { token: dig(body, "status", "token"), audiences: [AUDIENCE] } })).body,
      "status",
    );
  assert.deepEqual(dig(await review(), "user", "extra"), {
    "authentication.kubernetes.io/pod-name": ["agent-x"],
    "authentication.kubernetes.io/pod-uid": [uid],
    "authentication.kubernetes.io/node-name": ["node-1"],
    "authentication.kubernetes.io/node-uid": [emulator.store.get("nodes", "", "node-1")?.metadata.uid],
  });
  assert.equal((await issue({ name: "agent-y" })).status, 404);
  assert.equal((await issue({ name: "agent-x", uid: "another" })).status, 409);

  await call("DELETE", `${pods}/agent-x`, { gracePeriodSeconds: 0 });
  assert.equal(dig(await review(), "authenticated"), undefined);
});
