/** The certificate job on the embedded cluster: the objects that it writes, and those that it does not change. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Stage } from "../../../reconciler/stage.ts";
import { jobOn, setJobStage } from "./job-stage.ts";
import * as on from "../stage.ts";
import { upstreamSecret } from "../upstream.ts";

const { DAY, VALIDATING } = on;
const isWrite = (call: string): boolean => !call.startsWith("GET");

let stage: Stage;
beforeEach(async () => (stage = await setJobStage()));
afterEach(() => stage.close());
const { run, bundles, secret, text } = jobOn(() => stage);

describe("the certificate job", () => {
  it("makes the Secret in both layouts, and every entry of every labelled configuration trusts it", async () => {
    assert.equal(await run().result, 0);
    assert.deepEqual(Object.keys(secret()).toSorted(), ["ca", "ca.crt", "cert", "key", "tls.crt", "tls.key"]);
    assert.deepEqual([text("ca"), text("cert"), text("key")], [text("ca.crt"), text("tls.crt"), text("tls.key")]);
    assert.deepEqual(bundles(), [text("ca"), text("ca"), text("ca")]);
    assert.ok(on.accepts(text("ca"), text("cert")));
    const leaf = new X509Certificate(text("cert"));
    assert.deepEqual([leaf.publicKey.asymmetricKeyType, leaf.checkHost(on.SERVICE)], ["ec", on.SERVICE]);
    assert.equal(
      (stage.emulator.store.get("secrets", "default", on.NAME) as unknown as { type: string }).type,
      "Opaque",
    );
  });

  it("writes nothing when all is well", async () => {
    await run().result;
    const before = stage.emulator.store.version();
    const again = run();
    assert.equal(await again.result, 0);
    assert.deepEqual([again.calls.filter(isWrite), stage.emulator.store.version()], [[], before]);
    assert.equal(again.calls.length, 3);
  });

  it("keeps what upstream made, adds the second names, and renews it in time without a gap", async () => {
    const made = await upstreamSecret(new Date(stage.time.now()), 360);
    on.putSecret(stage.emulator.store, made);
    assert.equal(await run().result, 0);
    assert.deepEqual([text("cert"), text("tls.crt"), text("tls.key")], [made.cert, made.cert, made.key]);
    assert.equal(text("ca").trim(), made.ca.trim());
    await stage.time.advance(240 * DAY);
    assert.equal(await run().result, 0);
    assert.equal(new X509Certificate(text("cert")).publicKey.asymmetricKeyType, "ec");
    for (const bundle of bundles()) assert.ok(on.accepts(bundle, made.cert) && on.accepts(bundle, text("cert")));
  });

  it("does not change configurations without our label, for another namespace, or of another injector", async () => {
    const { store } = stage.emulator;
    const FOREIGN: readonly (readonly [name: string, options: on.HookOptions])[] = [
      ["unlabelled", { labels: {} }],
      ["half-labelled", { labels: { "grafana.com/namespace": "default" } }],
      ["label-not-true", { labels: { ...on.LABELS, "grafana.com/inject-rollout-operator-ca": "yes" } }],
      ["elsewhere", { labels: { ...on.LABELS, "grafana.com/namespace": "other" } }],
      ["cert-manager", { annotations: { "cert-manager.io/inject-ca-from": "default/cert" } }],
      ["cert-manager-secret", { annotations: { "cert-manager.io/inject-ca-from-secret": "default/cert" } }],
      ["openshift", { annotations: { "service.beta.openshift.io/inject-cabundle": "true" } }],
    ];
    for (const [name, options] of FOREIGN) on.addHook(store, VALIDATING, name, options);
    const before = FOREIGN.map(([name]) => store.get(VALIDATING, undefined, name));
    assert.equal(await run().result, 0);
    assert.deepEqual(
      FOREIGN.map(([name]) => store.get(VALIDATING, undefined, name)),
      before,
    );
  });
});
