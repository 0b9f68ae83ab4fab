import assert from "node:assert/strict";
import { test } from "node:test";
import { dig } from "../objects.ts";
import { startFixture } from "../fixture.ts";

const clientConfig = { url: "https://localhost/hook" };
const REFUSED: readonly [fields: object, message: RegExp][] = [
  [
    { matchConditions: [{ name: "a", expression: "object.spec ==" }] },
    /webhooks\[0\].matchConditions\[0\].expression: Invalid value: "object.spec ==": /,
  ],
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

test("a webhook is called only for what its matchConditions select", async (t) => {
  const { call } = await startFixture(t);
  const webhook = {
    name: "a.example.com",
    admissionReviewVersions: ["v1"],
    sideEffects: "None",
    clientConfig: { url: "https://127.0.0.1:1/nobody-listens" },
    failurePolicy: "Fail",
    rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"] }],
    matchConditions: [
      { name: "guarded", expression: "has(object.metadata.labels) && object.metadata.labels['guarded'] == 'true'" },
    ],
  };
  const metadata = { name: "a" };
  await call("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
    metadata,
    webhooks: [webhook],
  });
  const create = async (labels: object) =>
    (await call("POST", "/api/v1/namespaces/default/configmaps", { metadata: { ...metadata, labels } })).status;
  assert.equal(await create({ guarded: "true" }), 500);
  assert.equal(await create({ other: "true" }), 500, "a condition that cannot be decided fails the request");
  assert.equal(await create({ guarded: "false" }), 201);
});
