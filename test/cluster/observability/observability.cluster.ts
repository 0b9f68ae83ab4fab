/**
 * The alerts and the dashboard in a real Prometheus, over a real workload: every panel has data, no alert fires, and then each fires on its fault.
 * Durations are compressed to seconds; rules.cluster.ts holds the real ones.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { before } from "node:test";
import { applyRbac, buildKubeconfig } from "../stage/access.ts";
import { connectAdmin } from "../stage/client.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import { evict } from "../stage/evict.ts";
import { createManifest, deleteManifest, pathOfManifest, renderConfigurations, SERVICE } from "../stage/manifests.ts";
import { startEntry, type TestProcess } from "../stage/process.ts";
import { defineRolloutGroups, waitFor } from "../stage/rollout-groups.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { compressRules, type PrometheusServer, readRules, startPrometheus } from "./prometheus-server.ts";

const SERVE = fileURLToPath(new URL("../../../functions/serve.ts", import.meta.url));
const DASHBOARD = new URL("../../../infra/observability/dashboard.json", import.meta.url);
const ZONES = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name, replicas: 2 }));

before(async () => {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  await defineRolloutGroups(admin);
  admin.close();
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Resolves once the condition holds; rejects with what is missing after a minute and a half. */
async function until(what: () => string, condition: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()); tries++) {
    if (tries === 180) throw new Error(`not within 90 s: ${what()}`);
    await pause(500);
  }
}

const untilFiring = ({ firing }: PrometheusServer, alert: string): Promise<void> =>
  until(
    () => `${alert} fires`,
    async () => (await firing()).has(alert),
  );
const untilQuiet = ({ firing }: PrometheusServer): Promise<void> =>
  until(
    () => "no alert fires",
    async () => (await firing()).size === 0,
  );

interface Functions {
  readonly running: TestProcess;
  readonly metrics: number;
  readonly webhooks: number;
}

/** Starts the functions with the certificate that the reconciler has made. */
async function startFunctions({ admin, namespace, folder }: Stage, env: Readonly<Record<string, string>> = {}): Promise<Functions> {
  const kubeconfig = join(folder, "functions");
  await writeFile(kubeconfig, JSON.stringify(await buildKubeconfig(admin, namespace, "zonewise-functions")), { mode: 0o600 });
  const files = { SERVER_TLS_CERT_FILE: join(folder, "tls.crt"), SERVER_TLS_KEY_FILE: join(folder, "tls.key") };
  const ports = { SERVER_TLS_PORT: "0", SERVER_PORT: "0", SERVER_ADDRESS: "127.0.0.1" };
  const own = { PATH: process.env["PATH"] ?? "", KUBERNETES_NAMESPACE: namespace, KUBECONFIG: kubeconfig };
  const running = startEntry(SERVE, { ...own, ...files, ...ports, ...env });
  const portOf = async (what: string): Promise<number> => {
    const line = new RegExp(`"listening","what":"${what}","port":(\\d+)`);
    await running.untilOutput(line);
    return Number(line.exec(running.output())?.[1]);
  };
  return { running, metrics: await portOf("ready and metrics"), webhooks: await portOf("webhooks") };
}

/** Waits for the certificate of the namespace, and writes its files. */
async function writeCertificate({ call, namespace, folder }: Stage): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/secrets/rollout-operator-self-signed-certificate`;
  for (;;) {
    const secret = await call<{ data?: Record<string, string> }>("GET", path).catch(() => undefined);
    const decode = (key: string): string => Buffer.from(secret?.data?.[key] ?? "", "base64").toString();
    if (secret?.data?.["tls.crt"]) {
      await writeFile(join(folder, "tls.crt"), decode("tls.crt"));
      await writeFile(join(folder, "tls.key"), decode("tls.key"), { mode: 0o600 });
      return decode("ca.crt");
    }
    await pause(100);
  }
}

/** Asks the functions themselves about an eviction, as the API server would. */
function review({ webhooks }: Functions, namespace: string, pod: string): Promise<void> {
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod, namespace } };
  const asked = {
    uid: pod,
    kind: { group: "policy", version: "v1", kind: "Eviction" },
    resource: { group: "", version: "v1", resource: "pods" },
  };
  const body = {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: { ...asked, subResource: "eviction", operation: "CREATE", name: pod, namespace, dryRun: true, object: eviction },
  };
  return new Promise((resolve) => {
    const to = { host: "127.0.0.1", port: webhooks, path: "/admission/mutate-pod-eviction", method: "POST", rejectUnauthorized: false };
    const call = request({ ...to, headers: { "content-type": "application/json" } }, (answer) => void answer.resume().once("end", resolve));
    call.once("error", () => resolve());
    call.end(JSON.stringify(body));
  });
}

/** The queries of the dashboard, by panel. Those of node updates, the last row, are those of node-panels.test.ts: no node is updated here. */
async function readPanels(): Promise<Map<string, string>> {
  const { panels } = JSON.parse(await readFile(DASHBOARD, "utf8")) as {
    panels: { title: string; targets?: { refId: string; expr: string }[] }[];
  };
  const fill = (expr: string): string => expr.replaceAll("$__rate_interval", "20s").replaceAll("$namespace", ".*");
  const ours = panels.slice(
    0,
    panels.findIndex(({ title }) => title === "Node updates"),
  );
  return new Map(ours.flatMap(({ title, targets = [] }) => targets.map(({ refId, expr }) => [`${title} ${refId}`, fill(expr)] as const)));
}

scenario("every panel has data, no alert lasts without its fault, and each fires on its own", async (stage) => {
  const { admin, namespace, call } = stage;
  const asAdmin = { KUBECONFIG: process.env["KUBECONFIG"] ?? "", RECONCILE_INTERVAL: "500ms" };
  await applyRbac(admin, namespace, "functions");
  await stage.create(ZONES);
  const reconciler = stage.start(asAdmin);
  const caPem = await writeCertificate(stage);
  const functions = await startFunctions(stage);
  const throttled = await startFunctions(stage, { KUBERNETES_CLIENT_QPS: "1", KUBERNETES_CLIENT_BURST: "1" });
  const hooks = await renderConfigurations(namespace, ["pod-eviction"], { caPem, port: functions.webhooks });
  await call("POST", `/api/v1/namespaces/${namespace}/services`, {
    metadata: { name: SERVICE },
    spec: { type: "ExternalName", externalName: "localhost" },
  });
  const targets = [functions, throttled].map(({ metrics: port }, i) => ({
    port,
    labels: { job: `${namespace}/rollout-operator`, namespace, pod: `functions-${i}` },
  }));
  const prometheus = await startPrometheus(targets, compressRules(readRules()));
  try {
    for (const hook of hooks) await createManifest(admin, hook);
    await createBudget(stage, "cache");
    assert.equal((await waitFor(namespace, "Ready")).code, 0);

    stage.diagnostic("a workload: rollouts and evictions");
    const missing = await readPanels();
    let image = 1;
    await until(
      () => [...missing].map(([title, query]) => `${title}: ${query}`).join("\n"),
      async () => {
        const { phase = "" } =
          (await call<{ status?: { phase?: string } }>("GET", `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgroups/cache`))
            .status ?? {};
        if (phase === "Ready") await stage.setImage(`app:${++image}`, ZONES);
        await evict(stage, "zone-c-1");
        for (const [title, query] of missing) if ((await prometheus.query(query)) > 0) missing.delete(title);
        return missing.size === 0;
      },
    );
    await stage.done(`app:${image}`, ZONES);
    assert.equal((await waitFor(namespace, "Ready")).code, 0);
    // With durations of seconds, a busy machine's late tick is missing. quarter-hour.test.ts holds the real ones to silence at every minute.
    await untilQuiet(prometheus);

    stage.diagnostic("an invalid budget");
    await createBudget(stage, "invalid", { selector: { matchLabels: { name: "nothing" } }, podNamePartitionRegex: "(a)(b)" });
    await until(
      () => "BadZoneAwarePodDisruptionBudgetConfiguration fires",
      async () => {
        await evict(stage, "zone-c-1");
        return (await prometheus.firing()).has("BadZoneAwarePodDisruptionBudgetConfiguration");
      },
    );
    await call("DELETE", `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets/invalid`);
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

    stage.diagnostic("evictions that wait for a decision");
    let isOver = false;
    const asking = Array.from({ length: 30 }, async (_, i) => {
      while (!isOver) await review(throttled, namespace, ZONES[i % 3]?.name + "-0");
    });
    await untilFiring(prometheus, "HighNumberInflightZpdbRequests").finally(() => (isOver = true));
    await Promise.all(asking);

    stage.diagnostic("no reconciler, and then one whose certificates last an hour");
    assert.equal(await reconciler.end(), 0);
    await untilFiring(prometheus, "ZonewiseTickMissing");
    await call("DELETE", `/api/v1/namespaces/${namespace}/secrets/rollout-operator-self-signed-certificate`);
    const last = stage.start({ ...asAdmin, SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION: "1h" });
    await untilFiring(prometheus, "ZonewiseCertificateExpiring");
    await last.end();
  } finally {
    await prometheus.stop();
    for (const hook of hooks) await deleteManifest(admin, hook);
    await Promise.all([functions, throttled].map(({ running }) => running.kill()));
  }
});
