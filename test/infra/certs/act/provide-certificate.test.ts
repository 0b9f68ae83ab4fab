/** What the reconciler does about the certificate, on the embedded cluster. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { provideCertificate, type Provided } from "../../../../infra/certs/act/provide-certificate.ts";
import { createLog } from "../../../../infra/log.ts";
import type { Stage } from "../../../reconciler/stage.ts";
import * as on from "../stage.ts";

let stage: Stage;
beforeEach(async () => (stage = await on.setJobStage()));
afterEach(() => stage.close());
const { bundles, secret, text } = on.jobOn(() => stage);

function provide(): Promise<Provided> {
  const clock = on.movingClock(stage.time);
  return provideCertificate({
    cluster: stage.connect().cluster,
    clock,
    log: createLog({ level: "error", write: () => {}, now: () => new Date(clock.now()) }),
    namespace: "default",
    secretName: on.NAME,
    dnsNames: [on.SERVICE],
    issue: on.issueAt(clock.now),
    inject: true,
    stop: new AbortController().signal,
  });
}

/** A certificate that serves, of which so many of its 360 days are over. */
async function serveFor(days: number): Promise<string> {
  const { caPem, certPem, keyPem } = await on.issueAt(() => stage.time.now())();
  on.putSecret(stage.emulator.store, { ca: caPem, cert: certPem, key: keyPem });
  await stage.time.advance(days * on.DAY);
  return certPem;
}

describe("the first certificate", () => {
  const FILLED: readonly [string, () => void][] = [
    ["no Secret", () => {}],
    ["an empty Secret", () => on.putSecret(stage.emulator.store, {})],
  ];
  for (const [found, prepare] of FILLED)
    it(`is made where there is ${found}, and only once`, async () => {
      prepare();
      assert.equal(await provide(), "made");
      const first = secret();
      assert.ok(on.accepts(first["ca.crt"] ?? "", first["tls.crt"] ?? ""));
      assert.equal(await provide(), "left");
      assert.deepEqual(secret(), first);
    });

  for (const verb of ["create", "update"] as const)
    it(`is one, however many make it at once, where it is a matter of ${verb}`, async () => {
      if (verb === "update") on.putSecret(stage.emulator.store, {});
      const made = await Promise.all([provide(), provide(), provide()]);
      assert.deepEqual(made.toSorted(), ["left", "left", "made"]);
    });
});

describe("a later certificate", () => {
  it("is left to the certificate job until its renewal is overdue, as a damaged one is", async () => {
    await serveFor(269);
    const before = secret();
    assert.deepEqual([await provide(), secret()], ["left", before]);
    on.putSecret(stage.emulator.store, { ca: "rubbish" });
    assert.deepEqual([await provide(), secret()], ["left", { ca: "rubbish" }]);
  });

  it("is renewed once that is overdue, with the old one trusted meanwhile", async () => {
    const first = await serveFor(271);
    assert.equal(await provide(), "overdue");
    assert.notEqual(text("cert"), first);
    for (const bundle of bundles()) assert.ok(on.accepts(bundle, first) && on.accepts(bundle, text("cert")));
    assert.equal(await provide(), "left");
  });

  it("is replaced at once where it has expired", async () => {
    const first = await serveFor(400);
    assert.equal(await provide(), "overdue");
    assert.notEqual(text("cert"), first);
    for (const bundle of bundles()) assert.ok(on.accepts(bundle, text("cert")));
  });
});
