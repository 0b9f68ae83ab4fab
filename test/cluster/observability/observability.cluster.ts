/**
 * The alerts and the dashboard in a real Prometheus, over a real workload: every panel has data, no alert fires, and
 * then those of rollouts fire on their faults. Durations are compressed to seconds; rules.cluster.ts holds the real ones,
 * and those of the other alerts.
 */
import assert from "node:assert/strict";
import { before } from "node:test";
import { applyRbac } from "../stage/access.ts";
import { connectAdmin } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import { evict } from "../stage/evict.ts";
import { createManifest, deleteManifest, pathOfManifest, renderConfigurations, SERVICE } from "../stage/manifests.ts";
import { waitFor } from "../stage/rollout-groups.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { readPanels, startFunctions, writeCertificate } from "./workload.ts";
import { compressRules, type PrometheusServer, readRules, startPrometheus } from "./prometheus-server.ts";

const ZONES = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name, replicas: 2 }));

/** Its rollout window is closed, and nothing is to roll out. */
const FROZEN = {
  group: "frozen",
  name: "frozen",
  replicas: 1,
  annotations: { "zonewise.dev/rollout-freezes": "2026-01-01T00:00:00Z/2100-01-01T00:00:00Z" },
};

before(async () => {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  await define(admin, "rolloutgates", "rolloutgroups", "zoneawarepoddisruptionbudgets");
  admin.close();
});

/** On a machine under load, alerts of seconds come and go. */
const ALERT_MS = 400_000;

const untilFiring = ({ firing }: PrometheusServer, alert: string): Promise<void> =>
  until(`${alert} fires`, async () => (await firing()).has(alert), ALERT_MS);
const untilQuiet = ({ firing }: PrometheusServer): Promise<void> =>
  until("no alert fires", async () => (await firing()).size === 0, ALERT_MS);

scenario(
  "every panel has data, no alert lasts without its fault, and those of rollouts fire on theirs",
  async (stage) => {
    const { admin, namespace, call } = stage;
    const asAdmin = { KUBECONFIG: process.env["KUBECONFIG"] ?? "", RECONCILE_INTERVAL: "1s" };
    await applyRbac(admin, namespace, "functions");
    await stage.create(ZONES);
    await stage.create([FROZEN]);
    const reconciler = stage.start(asAdmin);
    const caPem = await writeCertificate(stage);
    const functions = await startFunctions(stage);
    const hooks = await renderConfigurations(namespace, ["pod-eviction"], { caPem, port: functions.webhooks });
    await call("POST", `/api/v1/namespaces/${namespace}/services`, {
      metadata: { name: SERVICE },
      spec: { type: "ExternalName", externalName: "localhost" },
    });
    const labels = { job: `${namespace}/rollout-operator`, namespace, pod: "functions" };
    const prometheus = await startPrometheus({ port: functions.metrics, labels }, compressRules(readRules()));
    stage.defer(prometheus.stop);
    for (const hook of hooks) {
      stage.defer(() => deleteManifest(admin, hook));
      await createManifest(admin, hook);
    }
    await createBudget(stage, "cache");
    assert.equal((await waitFor(namespace, "Ready")).code, 0);

    stage.diagnostic("a workload: rollouts and evictions");
    const panels = [...(await readPanels())];
    const queryOf = (start: string): string =>
      panels.find(([title]) => title.startsWith(start))?.[1] ?? assert.fail(start);
    // They have data only while a webhook fails open, and while gates are bypassed.
    const failOpen = queryOf("Webhooks that fail open ");
    const bypassed = queryOf("Time for which a zone may begin without its gates ");
    const missing = new Map(panels.filter(([, query]) => query !== failOpen && query !== bypassed));
    let image = 1;
    await until(
      () => [...missing].map(([title, query]) => `${title}: ${query}`).join("\n"),
      async () => {
        const { phase = "" } =
          (
            await call<{ status?: { phase?: string } }>(
              "GET",
              `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgroups/cache`,
            )
          ).status ?? {};
        if (phase === "Ready") await stage.setImage(`app:${++image}`, ZONES);
        await evict(stage, "zone-c-1");
        for (const [title, query] of missing) if ((await prometheus.query(query)) > 0) missing.delete(title);
        return missing.size === 0;
      },
      ALERT_MS,
    );
    await stage.done(`app:${image}`, ZONES);
    assert.equal((await waitFor(namespace, "Ready")).code, 0);
    // With durations of seconds, a busy machine's late tick is missing. rules.cluster.ts has the real ones.
    await untilQuiet(prometheus);

    stage.diagnostic("an update strategy that fails the group, while it has nothing to update");
    await stage.patchZone("zone-b", { spec: { updateStrategy: { type: "RollingUpdate" } } });
    await untilFiring(prometheus, "ZonewiseGroupFailing");
    await stage.patchZone("zone-b", { spec: { updateStrategy: { type: "OnDelete", rollingUpdate: null } } });
    await untilQuiet(prometheus);

    stage.diagnostic("a leader that does not exist");
    const follow = (leader: string | null): Promise<void> =>
      stage.patchZone("zone-b", { metadata: { annotations: { "grafana.com/rollout-downscale-leader": leader } } });
    await follow("nobody");
    await untilFiring(prometheus, "ZonewiseGroupBlocked");
    await follow(null);
    await untilQuiet(prometheus);

    stage.diagnostic("gates that are bypassed");
    await call("POST", `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgates`, {
      apiVersion: "zonewise.dev/v1",
      kind: "RolloutGate",
      metadata: { name: "soak" },
      spec: { group: "frozen", soakSeconds: 1 },
    });
    const bypass = (until: string | null): Promise<void> =>
      stage.patchZone("frozen", { metadata: { annotations: { "zonewise.dev/bypass-gates-until": until } } });
    await bypass(new Date(Date.now() + 3_600_000).toISOString());
    await untilFiring(prometheus, "ZonewiseGatesBypassed");
    await until("the panel shows it", async () => (await prometheus.query(bypassed)) === 1);
    await bypass(null);
    await untilQuiet(prometheus);

    stage.diagnostic("a template that crashes");
    await stage.setImage("app:bad", ZONES, { "sim/crash": "true" });
    await untilFiring(prometheus, "ZonewiseRolloutStuck");
    await stage.setImage("app:good", ZONES, { "sim/crash": "false" });
    await stage.done("app:good", ZONES);
    await untilQuiet(prometheus);

    stage.diagnostic("a webhook that fails open");
    const [hook = assert.fail("no configuration")] = hooks;
    const webhooks = hook.webhooks.map((webhook) => ({ ...webhook, failurePolicy: "Ignore" }));
    await call("PATCH", `${pathOfManifest(hook)}/${hook.metadata.name}`, { webhooks });
    await untilFiring(prometheus, "IncorrectWebhookConfigurationFailurePolicy");
    await until("the panel lists it", async () => (await prometheus.query(failOpen)) === 1);

    stage.diagnostic("no reconciler");
    assert.equal(await reconciler.end(), 0);
    await untilFiring(prometheus, "ZonewiseTickMissing");
  },
);
