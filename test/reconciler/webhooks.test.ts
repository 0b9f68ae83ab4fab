/** What a run does for the webhooks on the side [7.6, 9]. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createLog } from "../../infra/log.ts";
import { createMetrics } from "../../infra/metrics.ts";
import { RolloutError } from "../../infra/errors.ts";
import { tendWebhooks, type WebhooksInput } from "../../reconciler/webhooks.ts";
import * as on from "../infra/certs/stage.ts";
import { setStage, type Stage } from "./stage.ts";

const forever = new AbortController().signal;

describe("a run's care for the webhooks", () => {
  let stage: Stage;
  beforeEach(async () => void (stage = await setStage()));
  afterEach(() => stage.close());

  function carer(more: Partial<WebhooksInput> = {}) {
    const lines: string[] = [];
    const { cluster, calls } = stage.connect();
    const metrics = createMetrics();
    const log = createLog({ level: "info", write: (line) => void lines.push(line), now: () => new Date(stage.time.now()) });
    const tend = tendWebhooks({
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
    return { tend: () => tend(forever), lines, calls, policies, metrics };
  }
  const giveSecret = async (): Promise<string> => {
    const { caPem, certPem, keyPem } = await on.issueAt(() => stage.time.now())();
    on.putSecret(stage.emulator.store, { ca: caPem, cert: certPem, key: keyPem });
    return caPem;
  };
  const bundle = (name: string): string[] => on.bundlesOf(stage.emulator.store, on.VALIDATING, name);

  it("K06 gives the bundle to configurations of both kinds that come late or are edited, and otherwise writes nothing", async () => {
    const ca = await giveSecret();
    const { store } = stage.emulator;
    const { tend, calls } = carer();
    await tend();
    assert.deepEqual(calls.splice(0).length, 2);
    on.addHook(store, on.VALIDATING, "late", { entries: 2 });
    on.addHook(store, on.MUTATING, "late-too");
    on.addHook(store, on.VALIDATING, "edited", { caBundle: "none of ours" });
    await stage.time.advance(30_000);
    await tend();
    assert.deepEqual([...bundle("late"), ...bundle("edited"), ...on.bundlesOf(store, on.MUTATING, "late-too")], [ca, ca, ca, ca]);
    calls.length = 0;
    const version = store.version();
    await stage.time.advance(30_000);
    await tend();
    assert.deepEqual([calls.length, store.version()], [3, version]);
  });

  it("looks no more often than every 30 seconds, however often it is asked", async () => {
    const { tend, calls } = carer();
    for (let ask = 0; ask < 13; ask++) {
      await tend();
      await stage.time.advance(5000);
    }
    assert.equal(calls.length, 6);
  });

  it("K07 tells the failure policy of each webhook of its namespace, follows it, and forgets those that are gone", async () => {
    const { store } = stage.emulator;
    on.addHook(store, on.VALIDATING, "unset");
    on.addHook(store, on.MUTATING, "ignoring", { failurePolicy: "Ignore", labels: { "grafana.com/namespace": "default" } });
    on.addHook(store, on.VALIDATING, "elsewhere", { labels: { ...on.LABELS, "grafana.com/namespace": "other" } });
    const { tend, policies } = carer();
    await tend();
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
    await tend();
    assert.deepEqual(await policies(), series("ValidatingWebhook", "unset", 0));
  });

  it("tells when the certificate expires, and forgets it with the Secret", async () => {
    await giveSecret();
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    const { tend, metrics } = carer();
    const expiry = async (): Promise<string | undefined> =>
      /^zonewise_certificate_expiry_timestamp_seconds\{.*$/m.exec(await metrics.render())?.[0];
    await tend();
    assert.equal(
      await expiry(),
      `zonewise_certificate_expiry_timestamp_seconds{namespace="default"} ${stage.time.now() / 1000 + 360 * 86_400}`,
    );
    on.putSecret(stage.emulator.store, { ...on.secretOf(stage.emulator.store), cert: "rubbish" });
    on.addHook(stage.emulator.store, on.VALIDATING, "late");
    await stage.time.advance(30_000);
    await tend();
    assert.deepEqual([await expiry(), bundle("late")[0]], [undefined, bundle("ours")[0]]);
    stage.emulator.store.remove("secrets", "default", on.NAME);
    await stage.time.advance(30_000);
    await tend();
    assert.equal(await expiry(), undefined);
  });

  it("with a certificate that others bring, it measures and touches nothing", async () => {
    await giveSecret();
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    const { tend, calls, policies } = carer({ inject: false });
    await tend();
    assert.deepEqual([bundle("ours"), calls.length, (await policies()).length], [[""], 2, 2]);
  });

  it("says only once that it may not list them, and looks after them when it may", async () => {
    const ca = await giveSecret();
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    const { cluster } = stage.connect();
    let granted = false;
    const list: typeof cluster.list = (...call) => {
      if (granted) return cluster.list(...call);
      throw new RolloutError("Forbidden", "not you");
    };
    const { tend, lines } = carer({ cluster: { ...cluster, list } });
    for (let ask = 0; ask < 3; ask++) {
      await tend();
      await stage.time.advance(30_000);
    }
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /"level":"info".*not looked after/);
    granted = true;
    await tend();
    assert.deepEqual(bundle("ours"), [ca]);
  });

  it("survives a cluster in trouble and a Secret that is none, says so, and goes on", async () => {
    on.addHook(stage.emulator.store, on.VALIDATING, "ours");
    on.putSecret(stage.emulator.store, { ca: "no PEM" });
    const { tend, lines } = carer();
    await tend();
    assert.match(lines.join(""), /could not be looked after.*no certificate in PEM format/);
    const ca = await giveSecret();
    stage.emulator.faults.inject({ effect: { kind: "error" }, verb: "list", resource: on.MUTATING, times: 1 });
    for (let ask = 0; ask < 2; ask++) {
      await stage.time.advance(30_000);
      await tend();
    }
    assert.equal(lines.filter((line) => line.includes("could not be looked after")).length, 2);
    assert.deepEqual(bundle("ours"), [ca]);
  });
});
