import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { generateCertificates } from "../../../infra/certs/generate.ts";

test("the certificate is signed by the CA, for all names asked for, as long as asked for, with its key", async () => {
  const { caPem, certPem, keyPem } = await generateCertificates({
    dnsNames: ["hook.ns.svc", "hook.ns"],
    ipAddresses: ["127.0.0.1"],
    organization: "test",
    validityDays: 10,
    now: new Date("2026-01-01T00:00:00Z"),
  });
  const [ca, leaf] = [new X509Certificate(caPem), new X509Certificate(certPem)];
  assert.ok(leaf.verify(ca.publicKey) && leaf.checkIssued(ca));
  assert.deepEqual([ca.ca, leaf.ca], [true, false]);
  assert.ok(leaf.checkPrivateKey(createPrivateKey(keyPem)));
  assert.ok(leaf.checkHost("hook.ns.svc") && leaf.checkHost("hook.ns") && leaf.checkIP("127.0.0.1"));
  assert.equal(leaf.checkHost("other.ns.svc"), undefined);
  assert.equal(new Date(leaf.validTo).toISOString(), "2026-01-11T00:00:00.000Z");
  assert.deepEqual(leaf.publicKey.asymmetricKeyDetails, { namedCurve: "prime256v1" });
});
