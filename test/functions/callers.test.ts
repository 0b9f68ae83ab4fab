/** The callers that are allowed if an audience is set. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTokenCheck } from "../../infra/kubernetes/tokens.ts";
import { connect } from "../cluster/conformance/client.ts";
import { manualClock } from "../emulator/clock.ts";
import { connectionOf } from "./connection.ts";
import { reviewText, serve } from "./http.ts";
import { allowing, request } from "./samples.ts";
import { setStage } from "./stage.ts";

test("with an audience, only callers with the cluster's token for it are allowed, by the cluster's clock", async (t) => {
  // The machine's clock differs: by it, the token has expired or is not valid yet.
  const time = manualClock();
  const { emulator } = await setStage(t, time);
  const connection = connectionOf(emulator);
  t.after(() => connection.close());
  const audience = "webhooks";
  const { post } = await serve(t, allowing, {
    authenticate: createTokenCheck(connection, { audience, timeoutMs: 5000, now: time.now }),
  });
  const admin = connect(emulator.kubeconfig());
  t.after(() => admin.close());
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  await admin.call({ method: "POST", path: accounts, body: { metadata: { name: "caller" } } });
  const token = async (...audiences: string[]): Promise<string> => {
    const body = { spec: { audiences, expirationSeconds: 600 } };
    const answer = await admin.call({ method: "POST", path: `${accounts}/caller/token`, body });
    return (answer.body as { status: { token: string } }).status.token;
  };
  const ours = await token(audience);
  const [head, body] = ours.split(".");
  const CASES: readonly [string, string | undefined, number][] = [
    ["no token", undefined, 401],
    ["one for another audience", `Bearer ${await token("https://kubernetes.default.svc")}`, 401],
    ["one with another signer", `Bearer ${head}.${body}.${"A".repeat(86)}`, 401],
    ["one without a signature", `Bearer ${Buffer.from('{"alg":"none"}').toString("base64url")}.${body}.`, 401],
    ["nonsense", "Bearer a b", 401],
    ["another scheme", `Basic ${ours}`, 401],
    ["ours", `Bearer ${ours}`, 200],
  ];
  for (const [name, authorization, status] of CASES) {
    const answer = await post(reviewText(request), authorization === undefined ? {} : { headers: { authorization } });
    assert.equal(answer.status, status, name);
    if (status === 401) assert.equal(answer.headers["www-authenticate"], "Bearer");
  }
});

test("if the keys cannot be read, no caller is allowed", async (t) => {
  const { post, entries } = await serve(t, allowing, { authenticate: () => Promise.reject(new Error("no keys")) });
  assert.equal((await post(reviewText(request))).status, 401);
  assert.equal(entries[0]?.msg, "the caller's token could not be checked; the request is refused");
});
