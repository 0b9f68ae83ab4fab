import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { generateCertificates } from "../../../../infra/certs/act/generate.ts";

test("the certificate is signed by the CA, for all requested names and the requested duration, with its key", async () => {
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

test("an organization of any characters stands in the certificates as it is", async () => {
  const organization = 'Acme, "Inc." + <Co>; #1=\\2';
  const { caPem, certPem } = await generateCertificates({
    dnsNames: ["a.b.svc"],
    organization,
    validityDays: 1,
    now: new Date(),
  });
  for (const pem of [caPem, certPem])
    assert.equal(new X509Certificate(pem).toLegacyObject().subject["O"], organization);
});

test("two CAs never share a subject, and neither is too new for a clock that is minutes behind", async () => {
  const now = Date.now();
  const [one, two] = await Promise.all(
    [now, now + 1].map((at) =>
      generateCertificates({ dnsNames: ["a.b.svc"], organization: "x", validityDays: 1, now: new Date(at) }),
    ),
  );
  assert.ok(one && two);
  const cas = [new X509Certificate(one.caPem), new X509Certificate(two.caPem)];
  assert.notEqual(cas[0]?.subject, cas[1]?.subject);
  for (const pem of [one.caPem, one.certPem])
    assert.ok(new X509Certificate(pem).validFromDate.getTime() <= now - 299_000);
});

test("a name longer than a common name may be is a subject alternative name all the same", async () => {
  const name = `rollout-operator.${"n".repeat(63)}.svc`;
  const { certPem } = await generateCertificates({
    dnsNames: [name],
    organization: "x",
    validityDays: 1,
    now: new Date(),
  });
  assert.equal(new X509Certificate(certPem).checkHost(name, { subject: "never" }), name);
});
