/** The certificate job on the embedded cluster: what it writes, how a certificate takes over, and damage and API errors. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, it } from "node:test";
import { readCertificates } from "../../../../infra/certs/x509.ts";
import { RolloutError } from "../../../../infra/errors.ts";
import type { Stage } from "../../../reconciler/stage.ts";
import * as on from "../stage.ts";
import { upstreamSecret } from "../upstream.ts";

const { DAY, MUTATING, VALIDATING } = on;
const isWrite = (call: string): boolean => !call.startsWith("GET");

let stage: Stage;
beforeEach(async () => (stage = await on.setJobStage()));
afterEach(() => stage.close());
const { run, bundles, secret, text } = on.jobOn(() => stage);

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

describe("the certificate job under errors", () => {
  it("exits with 1 when the API server goes on finding its patch invalid, and says why", async () => {
    const { cluster } = stage.connect();
    const refuse = (): never => {
      throw new RolloutError("Invalid", "spec.failurePolicy: Unsupported value");
    };
    const refused = on.runJob({ ...cluster, patch: refuse }, on.movingClock(stage.time));
    assert.equal(await refused.result, 1);
    assert.match(refused.lines.join(""), /could not be given the CA bundle.*Unsupported value/);
  });

  it("does not warn of a configuration that somebody else changed first, only of one that it leaves without the bundle", async () => {
    const { faults } = stage.emulator;
    faults.inject({ effect: { kind: "conflict" }, verb: "patch", resource: VALIDATING, times: 2 });
    faults.inject({ effect: { kind: "conflict" }, verb: "create", resource: "secrets", times: 1 });
    const { result, lines } = run();
    assert.equal(await result, 0);
    assert.equal(faults.struck(), 3);
    assert.deepEqual(
      lines.filter((line) => line.includes('"level":"warn"')),
      [],
    );
    assert.deepEqual(bundles(), [text("ca"), text("ca"), text("ca")]);
  });

  it("gets through conflicts, lost answers, throttling and errors of the cluster", async () => {
    const { faults } = stage.emulator;
    faults.inject({ effect: { kind: "error" }, verb: "list", times: 1 });
    faults.inject({ effect: { kind: "dropAfter" }, verb: "create", resource: "secrets", times: 1 });
    faults.inject({ effect: { kind: "conflict" }, verb: "patch", resource: VALIDATING, times: 2 });
    faults.inject({ effect: { kind: "dropAfter" }, verb: "patch", resource: MUTATING, times: 1 });
    assert.equal(await run().result, 0);
    assert.equal(faults.struck(), 5);
    assert.deepEqual(bundles(), [text("ca"), text("ca"), text("ca")]);
  });

  it("gives up with the cluster's message if it may not read the Secret", async () => {
    const { cluster } = stage.connect();
    stage.emulator.faults.inject({ effect: { kind: "error" }, verb: "get", resource: "secrets" });
    assert.match(
      String(await on.runJob(cluster, on.movingClock(stage.time)).result),
      /get secrets default\/rollout-operator-self-signed-certificate/,
    );
  });

  it("ends after the current step if it is stopped", async () => {
    const stop = new AbortController();
    await run().result;
    await stage.time.advance(240 * DAY);
    const first = text("cert");
    stage.emulator.store.subscribe(({ resource }) => resource === "secrets" && stop.abort());
    assert.equal(await run({ stop: stop.signal }).result, 1);
    assert.equal(text("cert"), first);
  });
});
