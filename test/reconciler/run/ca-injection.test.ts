/** A run's work on the webhook configurations in parallel with its ticks (§7.6, §9). */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, it } from "node:test";
import { RolloutError } from "../../../infra/errors.ts";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { type CaInjectionInput, createCaInjection } from "../../../reconciler/run/ca-injection.ts";
import * as on from "../../infra/certs/stage.ts";
import { setStage, type Stage } from "../stage.ts";

const forever = new AbortController().signal;

/** A check of the webhook configurations, with its log, calls and metrics. */
function injector(stage: Stage, more: Partial<CaInjectionInput> = {}) {
  const lines: string[] = [];
  const { cluster, calls } = stage.connect();
  const metrics = createMetrics();
  const log = createLog({
    level: "info",
    write: (line) => void lines.push(line),
    now: () => new Date(stage.time.now()),
  });
  const injection = createCaInjection({
    cluster,
    clock: stage.clock,
    log,
    metrics,
    namespace: "default",
    secretName: on.NAME,
    inject: true,
    ...more,
  });
  const policies = async (): Promise<string[]> =>
    (await metrics.render()).split("\n").filter((line) => line.startsWith("kube_validating_webhook_failure_policy{"));
  return { ...injection, injectOnce: () => injection.once(forever), lines, calls, policies, metrics };
}

/** Stores a certificate; resolves with its CA. */
async function giveSecret({ emulator, time }: Stage): Promise<string> {
  const { caPem, certPem, keyPem } = await on.issueAt(() => time.now())();
  on.putSecret(emulator.store, { ca: caPem, cert: certPem, key: keyPem });
  return caPem;
}

/** The CA bundles of a validating configuration. */
const bundle = ({ emulator }: Stage, name: string): string[] => on.bundlesOf(emulator.store, on.VALIDATING, name);

let stage: Stage;
beforeEach(async () => void (stage = await setStage()));
afterEach(() => stage.close());

describe("CA injection", () => {
  it("injects the bundle into configurations of both kinds that are created late or edited, and otherwise writes nothing", async () => {
    const ca = await giveSecret(stage);
    const { store } = stage.emulator;
    const { injectOnce, calls } = injector(stage);
    await injectOnce();
    assert.deepEqual(calls.splice(0).length, 2);
    on.addHook(store, on.VALIDATING, "late", { entries: 2 });
    on.addHook(store, on.MUTATING, "late-too");
    on.addHook(store, on.VALIDATING, "edited", { caBundle: "none of ours" });
    await stage.time.advance(30_000);
    await injectOnce();
    assert.deepEqual(
      [...bundle(stage, "late"), ...bundle(stage, "edited"), ...on.bundlesOf(store, on.MUTATING, "late-too")],
      [ca, ca, ca, ca],
    );
    calls.length = 0;
    const version = store.version();
    await stage.time.advance(30_000);
    await injectOnce();
    assert.deepEqual([calls.length, store.version()], [3, version]);
  });

  it("issues the certificate if the Secret is empty, and injects it in the same check", async () => {
    const { store } = stage.emulator;
    on.putSecret(store, {});
    on.addHook(store, on.VALIDATING, "ours");
    const { injectOnce, lines } = injector(stage, {
      issuer: { dnsNames: [on.SERVICE], issue: on.issueAt(() => stage.time.now()) },
    });
    await injectOnce();
    const { ca = "", cert = "" } = on.secretOf(store);
    assert.ok(on.accepts(ca, cert));
    assert.deepEqual(bundle(stage, "ours"), [ca]);
    assert.match(lines[0] ?? "", /the certificate of the webhooks was made/);
  });

  it("also issues one without the right to inject the CA, and none if another component provides it", async () => {
    const issuer = { dnsNames: [on.SERVICE], issue: on.issueAt(() => stage.time.now()) };
    await injector(stage, { inject: false }).injectOnce();
    assert.deepEqual(on.secretOf(stage.emulator.store), {});
    await injector(stage, { inject: false, issuer }).injectOnce();
    assert.notDeepEqual(on.secretOf(stage.emulator.store), {});
  });

  it("alone keeps a certificate of an hour valid and trusted, without a run of the job", async () => {
    const { store } = stage.emulator;
    on.addHook(store, on.VALIDATING, "ours");
    const clock = on.movingClock(stage.time);
    const issue = on.issueAt(clock.now, [on.SERVICE], 1 / 24);
    const { injectOnce, lines } = injector(stage, { clock, issuer: { dnsNames: [on.SERVICE], issue } });
    const served = new Set<string>();
    for (let minute = 0; minute < 180; minute++) {
      await injectOnce();
      const { cert = "" } = on.secretOf(store);
      served.add(cert);
      assert.ok(
        new X509Certificate(cert).validToDate.getTime() > clock.now() &&
          on.accepts(bundle(stage, "ours")[0] ?? "", cert),
      );
      await stage.time.advance(60_000);
    }
    assert.deepEqual([served.size, lines.filter((line) => line.includes("is overdue")).length], [5, 1]);
  });

  it("checks at most every 30 seconds, however often it is called", async () => {
    const { injectOnce, calls } = injector(stage);
    for (let i = 0; i < 13; i++) {
      await injectOnce();
      await stage.time.advance(5000);
    }
    assert.equal(calls.length, 6);
  });

  it("exports the failure policy of each webhook of its namespace, follows changes, and removes deleted webhooks", async () => {
    const { store } = stage.emulator;
    on.addHook(store, on.VALIDATING, "unset");
    on.addHook(store, on.MUTATING, "ignoring", {
      failurePolicy: "Ignore",
      labels: { "grafana.com/namespace": "default" },
    });
    on.addHook(store, on.VALIDATING, "elsewhere", { labels: { ...on.LABELS, "grafana.com/namespace": "other" } });
    const { injectOnce, policies } = injector(stage);
    await injectOnce();
    const series = (type: string, webhook: string, fail: number): string[] => [
      `kube_validating_webhook_failure_policy{type="${type}",webhook="${webhook}-0.grafana.com",policy="Fail"} ${fail}`,
      `kube_validating_webhook_failure_policy{type="${type}",webhook="${webhook}-0.grafana.com",policy="Ignore"} ${1 - fail}`,
    ];
    assert.deepEqual(
      (await policies()).toSorted(),
      [...series("ValidatingWebhook", "unset", 1), ...series("MutatingWebhook", "ignoring", 0)].toSorted(),
    );
    store.remove(on.MUTATING, undefined, "ignoring");
    store.remove(on.VALIDATING, undefined, "unset");
    on.addHook(store, on.VALIDATING, "unset", { failurePolicy: "Ignore" });
    await stage.time.advance(30_000);
    await injectOnce();
    assert.deepEqual(await policies(), series("ValidatingWebhook", "unset", 0));
  });

  it("exports the certificate's expiry, and removes it with the Secret", async () => {
    await giveSecret(stage);
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    const { injectOnce, metrics } = injector(stage);
    const expiry = async (): Promise<string | undefined> =>
      /^zonewise_certificate_expiry_timestamp_seconds\{.*$/m.exec(await metrics.render())?.[0];
    await injectOnce();
    assert.equal(
      await expiry(),
      `zonewise_certificate_expiry_timestamp_seconds{namespace="default"} ${stage.time.now() / 1000 + 360 * 86_400}`,
    );
    on.putSecret(stage.emulator.store, { ...on.secretOf(stage.emulator.store), cert: "rubbish" });
    on.addHook(stage.emulator.store, on.VALIDATING, "late");
    await stage.time.advance(30_000);
    await injectOnce();
    assert.deepEqual([await expiry(), bundle(stage, "late")[0]], [undefined, bundle(stage, "ours")[0]]);
    stage.emulator.store.remove("secrets", "default", on.NAME);
    await stage.time.advance(30_000);
    await injectOnce();
    assert.equal(await expiry(), undefined);
  });

  it("with a certificate from another component, it measures and writes nothing", async () => {
    await giveSecret(stage);
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    const { injectOnce, calls, policies } = injector(stage, { inject: false });
    await injectOnce();
    assert.deepEqual([bundle(stage, "ours"), calls.length, (await policies()).length], [[""], 2, 2]);
  });

  it("logs only once that it may not list configurations, and injects once it may", async () => {
    const ca = await giveSecret(stage);
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    const { cluster } = stage.connect();
    let granted = false;
    const list: typeof cluster.list = (...call) => {
      if (granted) return cluster.list(...call);
      throw new RolloutError("Forbidden", "not you");
    };
    const { injectOnce, lines } = injector(stage, { cluster: { ...cluster, list } });
    for (let i = 0; i < 3; i++) {
      await injectOnce();
      await stage.time.advance(30_000);
    }
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /"level":"info".*the CA bundle is not injected/);
    granted = true;
    await injectOnce();
    assert.deepEqual(bundle(stage, "ours"), [ca]);
  });

  it("continues after API errors and with an invalid Secret, and logs both", async () => {
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    on.putSecret(stage.emulator.store, { ca: "no PEM" });
    const { injectOnce, lines } = injector(stage);
    await injectOnce();
    assert.match(lines.join(""), /could not be injected into webhook configurations.*no certificate in PEM format/);
    const ca = await giveSecret(stage);
    stage.emulator.faults.inject({ effect: { kind: "error" }, verb: "list", resource: on.MUTATING, times: 1 });
    for (let i = 0; i < 2; i++) {
      await stage.time.advance(30_000);
      await injectOnce();
    }
    assert.equal(lines.filter((line) => line.includes("could not be injected into webhook configurations")).length, 2);
    assert.deepEqual(bundle(stage, "ours"), [ca]);
  });

  it("without the right to write the Secret, it measures an overdue certificate and injects it all the same", async () => {
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    const clock = on.movingClock(stage.time);
    const issue = on.issueAt(clock.now, [on.SERVICE], 1);
    const { caPem, certPem, keyPem } = await issue();
    on.putSecret(stage.emulator.store, { ca: caPem, cert: certPem, key: keyPem });
    await stage.time.advance(19 * 3_600_000);
    const { cluster } = stage.connect();
    const replace: typeof cluster.replace = () => Promise.reject(new RolloutError("Forbidden", "not you"));
    const issuer = { dnsNames: [on.SERVICE], issue };
    const { injectOnce, lines, metrics, policies } = injector(stage, {
      clock,
      cluster: { ...cluster, replace },
      issuer,
    });
    await injectOnce();
    assert.deepEqual(bundle(stage, "ours"), [caPem]);
    assert.match(await metrics.render(), /^zonewise_certificate_expiry_timestamp_seconds\{/m);
    assert.notDeepEqual(await policies(), []);
    assert.match(lines.join(""), /the reconciler does not provide the certificate of the webhooks/);
    assert.doesNotMatch(lines.join(""), /the CA bundle is not injected/);
  });

  it("injects every 30 s while a run goes on, and 5 s after a failure", async (t) => {
    await giveSecret(stage);
    const stop = new AbortController();
    t.after(() => stop.abort());
    const { cluster } = stage.connect();
    const listedAt: number[] = [];
    const list: typeof cluster.list = (...call) => {
      listedAt.push(stage.time.now());
      if (listedAt.length > 4) return cluster.list(...call);
      throw new RolloutError("ServerError", "not now");
    };
    const followed = injector(stage, { cluster: { ...cluster, list } }).follow(stop.signal);
    const from = stage.time.now();
    for (let second = 0; second < 70; second++) await stage.time.advance(1000);
    stop.abort();
    await followed;
    assert.deepEqual([...new Set(listedAt.map((at) => at - from))], [0, 5000, 10_000, 40_000, 70_000]);
  });
});
