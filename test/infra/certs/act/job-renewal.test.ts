/** The certificate job on the embedded cluster: a certificate takes over from another. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, it } from "node:test";
import { readCertificates } from "../../../../infra/certs/x509.ts";
import type { Stage } from "../../../reconciler/stage.ts";
import { jobOn, setJobStage } from "./job-stage.ts";
import * as on from "../stage.ts";

const { DAY, MUTATING, VALIDATING } = on;

let stage: Stage;
beforeEach(async () => (stage = await setJobStage()));
afterEach(() => stage.close());
const { run, bundles, secret, text } = jobOn(() => stage);

describe("renewing a certificate", () => {
  it("renews at two thirds: first the bundle everywhere, then the pair, and the old CA goes when it expires", async () => {
    await run().result;
    const first = text("cert");
    await stage.time.advance(240 * DAY);
    const order: string[] = [];
    const unsubscribe = stage.emulator.store.subscribe(({ resource }) => {
      const everywhere = bundles().every((bundle) => readCertificates(bundle).length === 2);
      if (resource === "secrets")
        order.push(
          text("cert") === first ? "published" : `switched, ${everywhere ? "trusted everywhere" : "too soon"}`,
        );
      else order.push("injected");
    });
    assert.equal(await run().result, 0);
    unsubscribe();
    assert.deepEqual(order, ["published", "injected", "injected", "switched, trusted everywhere"]);
    assert.deepEqual([secret()["next.crt"], secret()["next.key"]], [undefined, undefined]);
    await stage.time.advance(119 * DAY);
    await run().result;
    for (const bundle of bundles())
      assert.ok(on.accepts(bundle, first), "a reader that has not reloaded since is still trusted");
    await stage.time.advance(DAY);
    await run().result;
    for (const bundle of bundles()) assert.ok(!on.accepts(bundle, first) && on.accepts(bundle, text("cert")));
  });

  it("waits for another injector that lags behind, and says for which configuration", async () => {
    await run().result;
    const { store } = stage.emulator;
    const annotations = { "cert-manager.io/inject-ca-from-secret": "default/cert" };
    on.addHook(store, VALIDATING, "theirs", { annotations, caBundle: text("ca") });
    const first = text("cert");
    await stage.time.advance(240 * DAY);
    const waiting = run();
    assert.equal(await waiting.result, 0);
    assert.equal(text("cert"), first);
    assert.match(waiting.lines.join(""), /"reason":"BundleNotSpread".*"waitsFor":\["theirs"\]/);
    store.remove(VALIDATING, undefined, "theirs");
    on.addHook(store, VALIDATING, "theirs", { annotations, caBundle: text("ca") });
    assert.equal(await run().result, 0);
    assert.notEqual(text("cert"), first);
  });

  it("does not wait for a configuration that never trusted us", async () => {
    await run().result;
    const foreign = await on.issueAt(() => stage.time.now())();
    on.addHook(stage.emulator.store, VALIDATING, "theirs", {
      annotations: { "cert-manager.io/inject-ca-from": "x/y" },
      caBundle: foreign.caPem,
    });
    const first = text("cert");
    await stage.time.advance(240 * DAY);
    assert.equal(await run().result, 0);
    assert.notEqual(text("cert"), first);
  });

  it("holds back when a configuration cannot be patched, exits with 1, and switches in the last twelfth all the same", async () => {
    await run().result;
    const first = text("cert");
    await stage.time.advance(240 * DAY);
    stage.emulator.faults.inject({ effect: { kind: "error" }, verb: "patch", resource: MUTATING });
    assert.equal(await run().result, 1);
    assert.equal(text("cert"), first);
    await stage.time.advance(91 * DAY);
    await run().result;
    assert.notEqual(text("cert"), first);
  });

  it("without injection it lists no configuration, and leaves four months for the distribution of the bundle", async () => {
    await run({ inject: false }).result;
    const first = text("cert");
    await stage.time.advance(240 * DAY);
    const second = run({ inject: false });
    assert.equal(await second.result, 0);
    assert.ok(second.calls.every((call) => !call.includes("webhook")));
    assert.equal(readCertificates(text("ca")).length, 2);
    assert.equal(text("cert"), first);
    assert.deepEqual(bundles(), ["", "", ""]);
    await stage.time.advance(91 * DAY);
    await run({ inject: false }).result;
    assert.notEqual(text("cert"), first);
    assert.ok(on.accepts(text("ca"), text("cert")));
  });

  it("issues for a new Service, with overlap", async () => {
    await run().result;
    const first = text("cert");
    const names = [on.SERVICE, "pod-eviction.default.svc"];
    assert.equal(await run({ dnsNames: names, issue: on.issueAt(() => stage.time.now(), names) }).result, 0);
    const leaf = new X509Certificate(text("cert"));
    assert.deepEqual(
      names.map((name) => leaf.checkHost(name)),
      names,
    );
    for (const bundle of bundles()) assert.ok(on.accepts(bundle, first) && on.accepts(bundle, text("cert")));
  });
});
