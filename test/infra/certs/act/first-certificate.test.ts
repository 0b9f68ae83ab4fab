/** The certificate that the reconciler issues, on the embedded cluster. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { issueFirstCertificate } from "../../../../infra/certs/act/first-certificate.ts";
import { setStage, type Stage } from "../../../reconciler/stage.ts";
import * as on from "../stage.ts";

let stage: Stage;
beforeEach(async () => (stage = await setStage()));
afterEach(() => stage.close());

function issueFirst(): Promise<boolean> {
  const now = (): number => stage.time.now();
  const input = {
    namespace: "default",
    secretName: on.NAME,
    dnsNames: [on.SERVICE],
    issue: on.issueAt(now),
    now: now(),
  };
  return issueFirstCertificate(stage.connect().cluster, input);
}

describe("the first certificate", () => {
  const FILLED: readonly [string, () => void][] = [
    ["no Secret", () => {}],
    ["an empty Secret", () => on.putSecret(stage.emulator.store, {})],
  ];
  for (const [found, prepare] of FILLED)
    it(`is made where there is ${found}, and only once`, async () => {
      prepare();
      assert.equal(await issueFirst(), true);
      const first = on.secretOf(stage.emulator.store);
      assert.ok(on.accepts(first["ca.crt"] ?? "", first["tls.crt"] ?? ""));
      assert.equal(await issueFirst(), false);
      assert.deepEqual(on.secretOf(stage.emulator.store), first);
    });

  it("leaves a damaged or expired Secret to the certificate job", async () => {
    on.putSecret(stage.emulator.store, { ca: "rubbish" });
    assert.equal(await issueFirst(), false);
    assert.deepEqual(on.secretOf(stage.emulator.store), { ca: "rubbish" });
    const { caPem, certPem, keyPem } = await on.issueAt(() => stage.time.now())();
    const expired = { ca: caPem, cert: certPem, key: keyPem };
    on.putSecret(stage.emulator.store, expired);
    await stage.time.advance(400 * on.DAY);
    assert.equal(await issueFirst(), false);
    assert.deepEqual(on.secretOf(stage.emulator.store), expired);
  });

  for (const verb of ["create", "update"] as const)
    it(`is one, however many make it at once, where it is a matter of ${verb}`, async () => {
      if (verb === "update") on.putSecret(stage.emulator.store, {});
      const made = await Promise.all([issueFirst(), issueFirst(), issueFirst()]);
      assert.deepEqual(made.toSorted(), [false, false, true]);
    });
});
