import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import { findIssuer, joinCertificates, readCertificates } from "../../../infra/certs/x509.ts";
import { issueAt } from "./stage.ts";
import { chainOfThree } from "./upstream.ts";

const T0 = Date.UTC(2026, 0, 1);
const { root, intermediate, leaf } = await chainOfThree(new Date(T0));

describe("certificates", () => {
  it("lead to their CA over intermediates in any order, and nowhere without one of them", () => {
    assert.equal(findIssuer([leaf, intermediate], [root]), root);
    assert.equal(findIssuer([leaf, root, intermediate], [root]), root);
    assert.equal(findIssuer([leaf], [root, intermediate]), intermediate);
    assert.equal(findIssuer([leaf], [root]), undefined);
    assert.equal(findIssuer([leaf, intermediate], []), undefined);
    assert.equal(findIssuer([leaf, leaf, intermediate, intermediate], []), undefined);
    assert.equal(findIssuer([root], [root]), root);
    assert.equal(findIssuer([], [root]), undefined);
  });

  it("are no CAs without the CA flag: a leaf signs no other certificate", () => {
    assert.equal(findIssuer([leaf], [leaf]), undefined);
  });

  it("survive joining and reading in their order, each once", async () => {
    const others = await Promise.all([0, 1].map((n) => issueAt(() => T0 + n)()));
    const all = [root, intermediate, ...others.map(({ caPem }) => new X509Certificate(caPem))];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...all), { minLength: 1, maxLength: 6 }), (picked) => {
        const prints = (certificates: readonly X509Certificate[]): string[] =>
          certificates.map((one) => one.fingerprint256);
        assert.deepEqual(prints(readCertificates(joinCertificates(picked))), [...new Set(prints(picked))]);
      }),
    );
  });

  it("are distinguished from text without certificates", () => {
    for (const text of [
      "",
      "hello",
      "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----",
      "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
    ]) {
      assert.throws(() => readCertificates(text));
    }
  });
});
