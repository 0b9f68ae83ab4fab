import assert from "node:assert/strict";
import { test } from "node:test";
import { dig } from "../objects.ts";
import { startFixture } from "../fixture.ts";

const clientConfig = { url: "https://localhost/hook" };
const REFUSED: readonly [fields: object, message: RegExp][] = [
  [
    { matchConditions: [{ name: "a", expression: "true" }] },
    /webhooks\[0\].matchConditions: Forbidden: the embedded cluster has no matchConditions$/,
  ],
  [{ reinvocationPolicy: "IfNeeded" }, /webhooks\[0\].reinvocationPolicy: Forbidden/],
];

for (const [fields, message] of REFUSED)
  test(`a webhook with ${JSON.stringify(fields)} is refused instead of being ignored`, async (t) => {
    const { call } = await startFixture(t);
    const webhook = {
      name: "a.example.com",
      admissionReviewVersions: ["v1"],
      sideEffects: "None",
      clientConfig,
      ...fields,
    };
    const { status, body } = await call("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {
      metadata: { name: "a" },
      webhooks: [webhook],
    });
    assert.equal(status, 422);
    assert.match(String(dig(body, "message")), message);
  });
