/** A run's work on the webhook configurations in parallel with its ticks (§7.6, §9). */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLog } from "../../infra/log.ts";
import { createMetrics } from "../../infra/metrics/metrics.ts";
import { RolloutError } from "../../infra/errors.ts";
import { type CaInjectionInput, createCaInjection } from "../../reconciler/ca-injection.ts";
import * as on from "../infra/certs/stage.ts";
import { setStage, type Stage } from "./stage.ts";

const forever = new AbortController().signal;

describe("CA injection", () => {
  let stage: Stage;
  beforeEach(async () => void (stage = await setStage()));
  afterEach(() => stage.close());

  function injector(more: Partial<CaInjectionInput> = {}) {
    const lines: string[] = [];
    const { cluster, calls } = stage.connect();
    const metrics = createMetrics();
    const log = createLog({ level: "info", write: (line) => void lines.push(line), now: () => new Date(stage.time.now()) });
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
    return { ...injection, look: () => injection.once(forever), lines, calls, policies, metrics };
  }
  const giveSecret = async (): Promise<string> => {
    const { caPem, certPem, keyPem } = await on.issueAt(() => stage.time.now())();
    on.putSecret(stage.emulator.store, { ca: caPem, cert: certPem, key: keyPem });
    return caPem;
  };
  const bundle = (name: string): string[] => on.bundlesOf(stage.emulator.store, on.VALIDATING, name);

  it("K06 injects the bundle into configurations of both kinds that are created late or edited, and otherwise writes nothing", async () => {
    const ca = await giveSecret();
    const { store } = stage.emulator;
    const { look, calls } = injector();
    await look();
    assert.deepEqual(calls.splice(0).length, 2);
    on.addHook(store, on.VALIDATING, "late", { entries: 2 });
    on.addHook(store, on.MUTATING, "late-too");
    on.addHook(store, on.VALIDATING, "edited", { caBundle: "none of ours" });
    await stage.time.advance(30_000);
    await look();
    assert.deepEqual([...bundle("late"), ...bundle("edited"), ...on.bundlesOf(store, on.MUTATING, "late-too")], [ca, ca, ca, ca]);
    calls.length = 0;
    const version = store.version();
    await stage.time.advance(30_000);
    await look();
    assert.deepEqual([calls.length, store.version()], [3, version]);
  });

  it("issues the certificate if the Secret is empty, and injects it in the same check", async () => {
    const { store } = stage.emulator;
    on.putSecret(store, {});
    on.addHook(store, on.VALIDATING, "ours");
    const { look, lines } = injector({ firstCertificate: { dnsNames: [on.SERVICE], issue: on.issueAt(() => stage.time.now()) } });
    await look();
    const { ca = "", cert = "" } = on.secretOf(store);
    assert.ok(on.accepts(ca, cert));
    assert.deepEqual(bundle("ours"), [ca]);
    assert.match(lines[0] ?? "", /the certificate of the webhooks was made/);
  });

  it("also issues one without the right to inject the CA, and none if another component provides it", async () => {
    const firstCertificate = { dnsNames: [on.SERVICE], issue: on.issueAt(() => stage.time.now()) };
    await injector({ inject: false }).look();
    assert.deepEqual(on.secretOf(stage.emulator.store), {});
    await injector({ inject: false, firstCertificate }).look();
    assert.notDeepEqual(on.secretOf(stage.emulator.store), {});
  });

  it("checks at most every 30 seconds, however often it is called", async () => {
    const { look, calls } = injector();
    for (let i = 0; i < 13; i++) {
      await look();
      await stage.time.advance(5000);
    }
    assert.equal(calls.length, 6);
  });

  it("K07 exports the failure policy of each webhook of its namespace, follows changes, and removes deleted webhooks", async () => {
    const { store } = stage.emulator;
    on.addHook(store, on.VALIDATING, "unset");
    on.addHook(store, on.MUTATING, "ignoring", { failurePolicy: "Ignore", labels: { "grafana.com/namespace": "default" } });
    on.addHook(store, on.VALIDATING, "elsewhere", { labels: { ...on.LABELS, "grafana.com/namespace": "other" } });
    const { look, policies } = injector();
    await look();
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
    await look();
    assert.deepEqual(await policies(), series("ValidatingWebhook", "unset", 0));
  });

  it("exports the certificate's expiry, and removes it with the Secret", async () => {
    await giveSecret();
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    const { look, metrics } = injector();
    const expiry = async (): Promise<string | undefined> =>
      /^zonewise_certificate_expiry_timestamp_seconds\{.*$/m.exec(await metrics.render())?.[0];
    await look();
    assert.equal(
      await expiry(),
      `zonewise_certificate_expiry_timestamp_seconds{namespace="default"} ${stage.time.now() / 1000 + 360 * 86_400}`,
    );
    on.putSecret(stage.emulator.store, { ...on.secretOf(stage.emulator.store), cert: "rubbish" });
    on.addHook(stage.emulator.store, on.VALIDATING, "late");
    await stage.time.advance(30_000);
    await look();
    assert.deepEqual([await expiry(), bundle("late")[0]], [undefined, bundle("ours")[0]]);
    stage.emulator.store.remove("secrets", "default", on.NAME);
    await stage.time.advance(30_000);
    await look();
    assert.equal(await expiry(), undefined);
  });

  it("with a certificate from another component, it measures and writes nothing", async () => {
    await giveSecret();
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    const { look, calls, policies } = injector({ inject: false });
    await look();
    assert.deepEqual([bundle("ours"), calls.length, (await policies()).length], [[""], 2, 2]);
  });

  it("logs only once that it may not list configurations, and injects once it may", async () => {
    const ca = await giveSecret();
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    const { cluster } = stage.connect();
    let granted = false;
    const list: typeof cluster.list = (...call) => {
      if (granted) return cluster.list(...call);
      throw new RolloutError("Forbidden", "not you");
    };
    const { look, lines } = injector({ cluster: { ...cluster, list } });
    for (let i = 0; i < 3; i++) {
      await look();
      await stage.time.advance(30_000);
    }
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /"level":"info".*the CA bundle is not injected/);
    granted = true;
    await look();
    assert.deepEqual(bundle("ours"), [ca]);
  });

  it("continues after API errors and with an invalid Secret, and logs both", async () => {
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    on.putSecret(stage.emulator.store, { ca: "no PEM" });
    const { look, lines } = injector();
    await look();
    assert.match(lines.join(""), /could not be injected into webhook configurations.*no certificate in PEM format/);
    const ca = await giveSecret();
    stage.emulator.faults.inject({ effect: { kind: "error" }, verb: "list", resource: on.MUTATING, times: 1 });
    for (let i = 0; i < 2; i++) {
      await stage.time.advance(30_000);
      await look();
    }
    assert.equal(lines.filter((line) => line.includes("could not be injected into webhook configurations")).length, 2);
    assert.deepEqual(bundle("ours"), [ca]);
  });

  describe("while a run goes on", () => {
    let stop: AbortController;
    let followed: Promise<void>;
    beforeEach(() => {
      stop = new AbortController();
      followed = Promise.resolve();
    });
    afterEach(async () => {
      stop.abort();
      await followed;
    });

    /** Starts to follow; counts the lists (two per check) and the watches (one per kind). */
    function follow(more: Partial<CaInjectionInput> = {}) {
      const { cluster } = stage.connect();
      const counts = { lists: 0, watches: 0 };
      const list: typeof cluster.list = (...call) => {
        counts.lists++;
        return (more.cluster ?? cluster).list(...call);
      };
      const watch: typeof cluster.watch = (...call) => {
        counts.watches++;
        return (more.cluster ?? cluster).watch(...call);
      };
      const started = injector({ ...more, cluster: { ...cluster, list, watch } });
      followed = started.follow(stop.signal);
      return { ...started, counts };
    }

    /** Waits until the condition holds while the clock stands still. */
    async function until(holds: () => boolean, what: string): Promise<void> {
      for (let turn = 0; !holds(); turn++) {
        assert.ok(turn < 300_000, what);
        await setImmediate();
      }
    }

    /** Advances the clock as slowly as calls are answered. */
    async function pass(ms: number): Promise<void> {
      for (let passed = 0; passed < ms; passed += 250) {
        await stage.time.advance(250);
        for (let turn = 0; turn < 30; turn++) await setImmediate();
      }
    }

    /** Waits until the condition holds while time passes. */
    async function passUntil(holds: () => boolean, what: string): Promise<void> {
      for (let passed = 0; !holds(); passed++) {
        assert.ok(passed < 1000, what);
        await pass(250);
      }
    }

    const addHook = (name: string): void => on.addHook(stage.emulator.store, on.VALIDATING, name);
    const clearBundle = (name: string): void => {
      const { store } = stage.emulator;
      const before = store.get(on.VALIDATING, undefined, name) as unknown as { webhooks: { clientConfig: object }[] };
      const webhooks = before.webhooks.map((entry) => ({ ...entry, clientConfig: { service: {} } }));
      store.update(on.VALIDATING, { ...before, webhooks } as never);
    };

    it("injects into added or edited configurations before any time passes", async () => {
      const ca = await giveSecret();
      const { counts } = follow();
      await until(() => counts.watches === 2, "both kinds are watched");
      await pass(1000);
      const from = stage.time.now();
      addHook("late");
      await until(() => bundle("late")[0] === ca, "what is added has the bundle");
      assert.equal(stage.time.now(), from);
      await passUntil(() => counts.lists === 6, "the check after its own injection");
      await pass(1000);
      clearBundle("late");
      const edited = stage.time.now();
      await until(() => bundle("late")[0] === ca, "what is edited has the bundle");
      assert.equal(stage.time.now(), edited);
    });

    it("shares one check a second among many changes, and its own injections cause no further ones", async () => {
      const ca = await giveSecret();
      const { counts, lines } = follow();
      await until(() => counts.watches === 2, "both kinds are watched");
      await pass(1000);
      const before = counts.lists;
      for (let round = 0; round < 20; round++) {
        for (let at = 0; at < 10; at++) {
          if (round === 0) addHook(`stormy-${at}`);
          else clearBundle(`stormy-${at}`);
        }
        await pass(250);
      }
      assert.ok((counts.lists - before) / 2 <= 6 * 3, `${counts.lists - before} lists in 5 s, with those begun again after a conflict`);
      const isWhole = (): boolean => Array.from({ length: 10 }, (_, at) => bundle(`stormy-${at}`)[0]).every((one) => one === ca);
      await passUntil(isWhole, "all have the bundle");
      await pass(3000);
      const settled = [counts.lists, lines.length];
      await pass(20_000);
      assert.deepEqual([counts.lists, lines.length], settled);
    });

    it("checks again when a watch has ended, and watches again", async () => {
      const ca = await giveSecret();
      const { counts } = follow();
      await until(() => counts.watches === 2, "both kinds are watched");
      await pass(1000);
      assert.equal(stage.emulator.faults.cutWatches(on.VALIDATING), 1);
      await pass(250);
      addHook("meanwhile");
      const from = stage.time.now();
      await passUntil(() => bundle("meanwhile")[0] === ca && counts.watches === 3, "a check, and a new watch");
      assert.ok(stage.time.now() - from < 25_000, "before the next periodic check");
      await pass(3000);
      addHook("afterwards");
      await until(() => bundle("afterwards")[0] === ca, "the new watch hears of it");
    });

    it("without the right to watch checks every 30 s, and logs that once", async () => {
      const ca = await giveSecret();
      const { cluster } = stage.connect();
      const watch: typeof cluster.watch = () => Promise.reject(new RolloutError("Forbidden", "not you"));
      const { counts, lines } = follow({ cluster: { ...cluster, watch } });
      await until(() => counts.watches === 2, "it tried");
      addHook("late");
      await pass(29_000);
      assert.deepEqual([counts.lists, bundle("late")], [2, [""]]);
      await passUntil(() => bundle("late")[0] === ca, "the next check");
      await passUntil(() => counts.lists === 6 && counts.watches === 6, "the one after it, and that it tried again");
      assert.equal(lines.filter((line) => line.includes("are not watched")).length, 1);
    });

    it("retries soon if listing failed", async () => {
      const ca = await giveSecret();
      addHook("ours");
      stage.emulator.faults.inject({ effect: { kind: "error" }, verb: "list", resource: on.MUTATING, times: 1 });
      const { lines } = follow();
      await until(() => lines.length > 0, "it failed");
      const from = stage.time.now();
      await passUntil(() => bundle("ours")[0] === ca, "it tried again");
      assert.ok(stage.time.now() - from < 25_000);
    });

    it("watches nothing if another component provides the certificate", async () => {
      const { counts } = follow({ inject: false });
      await passUntil(() => counts.lists === 4, "two checks");
      assert.equal(counts.watches, 0);
    });
  });
});
