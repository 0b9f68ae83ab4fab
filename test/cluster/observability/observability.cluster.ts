/**
 * The alerts and the dashboard in a real Prometheus, over a real workload: every panel has data, no alert fires, and
 * then three fire that panels show, too. Durations are compressed to seconds; rules.cluster.ts holds the real ones, and
 * those of all other alerts.
 */
import assert from "node:assert/strict";
import { before } from "node:test";
import { join } from "node:path";
import { readFile, writeFile } from "node:fs/promises";
import { applyRbac, writeKubeconfig } from "../stage/access.ts";
import { connectAdmin } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { evict } from "../stage/evict.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import { SERVICE, createManifest, deleteManifest, pathOfManifest, renderConfigurations } from "../stage/manifests.ts";
import { startEntry } from "../stage/process.ts";
import { waitFor } from "../stage/rollout-groups.ts";
import { type Stage, scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import {
  type PrometheusServer,
  compressRules,
  fillVariables,
  readRules,
  startPrometheus,
} from "./prometheus-server.ts";

const DASHBOARD = new URL("../../../infra/observability/dashboard.json", import.meta.url);

interface Functions {
  readonly metrics: number;
  readonly webhooks: number;
}

/** Starts the functions with the certificate that the reconciler has made. */
async function startFunctions(stage: Stage): Promise<Functions> {
  const { namespace, folder } = stage;
  const kubeconfig = await writeKubeconfig(stage, "zonewise-functions");
  const files = { SERVER_TLS_CERT_FILE: join(folder, "tls.crt"), SERVER_TLS_KEY_FILE: join(folder, "tls.key") };
  const ports = { SERVER_TLS_PORT: "0", SERVER_PORT: "0", SERVER_ADDRESS: "127.0.0.1" };
  const own = { PATH: process.env["PATH"] ?? "", KUBERNETES_NAMESPACE: namespace, KUBECONFIG: kubeconfig };
  const running = startEntry("functions/serve.ts", { ...own, ...files, ...ports });
  stage.processes.push(running);
  stage.defer(running.kill);
  const portOf = async (what: string): Promise<number> => {
    const line = new RegExp(`"listening","what":"${what}","port":(\\d+)`);
    await running.untilOutput(line);
    return Number(line.exec(running.output())?.[1]);
  };
  return { metrics: await portOf("ready and metrics"), webhooks: await portOf("webhooks") };
}

/** Waits for the certificate of the namespace, and writes its files; resolves with its CA. */
async function writeCertificate({ call, namespace, folder }: Stage): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/secrets/rollout-operator-self-signed-certificate`;
  let ca = "";
  await until("the certificate is made", async () => {
    const { data = {} } = await call<{ data?: Record<string, string> }>("GET", path);
    const decode = (key: string): string => Buffer.from(data[key] ?? "", "base64").toString();
    if (!data["tls.crt"]) return false;
    await writeFile(join(folder, "tls.crt"), decode("tls.crt"));
    await writeFile(join(folder, "tls.key"), decode("tls.key"), { mode: 0o600 });
    ca = decode("ca.crt");
    return true;
  });
  return ca;
}

/**
 * The queries of the dashboard, by panel. Those of node updates, the last row, are left out: no node is updated here.
 */
async function readPanels(): Promise<Map<string, string>> {
  const { panels } = JSON.parse(await readFile(DASHBOARD, "utf8")) as {
    panels: { title: string; targets?: { refId: string; expr: string }[] }[];
  };
  const ours = panels.slice(
    0,
    panels.findIndex(({ title }) => title === "Node updates"),
  );
  return new Map(
    ours.flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, expr }) => [`${title} ${refId}`, fillVariables(expr, "20s")] as const),
    ),
  );
}

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

scenario("every panel has data, and no alert lasts without its fault", async (stage) => {
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

  stage.diagnostic("a webhook that fails open");
  const [hook = assert.fail("no configuration")] = hooks;
  const webhooks = hook.webhooks.map((webhook) => ({ ...webhook, failurePolicy: "Ignore" }));
  await call("PATCH", `${pathOfManifest(hook)}/${hook.metadata.name}`, { webhooks });
  await untilFiring(prometheus, "IncorrectWebhookConfigurationFailurePolicy");
  await until("the panel lists it", async () => (await prometheus.query(failOpen)) === 1);

  stage.diagnostic("no reconciler");
  assert.equal(await reconciler.end(), 0);
  await untilFiring(prometheus, "ZonewiseTickMissing");
});
