/**
 * The downscale webhooks for a namespace of the cluster in KUBECONFIG, pods with scripted responses, and
 * kubectl.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { composeFunctions } from "../../../functions/compose.ts";
import { runServer } from "../../../functions/http/server.ts";
import { certify } from "../../certify.ts";
import { systemClock } from "../../../infra/clock.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { freePort, listen, toLoopback } from "../../loopback.ts";
import { applyRbac, buildKubeconfig } from "../stage/access.ts";
import { type Admin, connectAdmin, remove } from "../stage/client.ts";
import { type KubectlResult, runKubectl } from "../stage/kubectl.ts";
import { createManifest, deleteManifest, renderConfigurations, renderPolicies, SERVICE } from "../stage/manifests.ts";
import { PODS_HERE } from "../stage/pods.ts";
import { serverVariables, startReconciler, type TestProcess } from "../stage/process.ts";
import { until } from "../stage/until.ts";

export interface WebhookStage {
  readonly namespace: string;
  readonly admin: Admin;
  /** A temporary folder, removed with the stage. */
  readonly folder: string;
  /** The requests to pods in order, such as `POST zone-a-2`. */
  readonly podRequests: string[];
  /** Returns the status code of a pod's response; 200 by default. */
  podResponse: (method: string, pod: string) => number | Promise<number>;
  readonly podPort: number;
  kubectl(args: readonly string[], input?: object): Promise<KubectlResult>;
  get(name: string): Promise<StatefulSet>;
  /** As if the functions had been scaled to 0: from here on nobody answers. */
  stopFunctions(): Promise<void>;
}

/** Closes with the test; removes the webhook configurations first, as they fail closed. */
export async function openWebhookStage(
  t: TestContext,
  env: Readonly<Record<string, string>> = {},
  { noDownscale = "policy" }: { readonly noDownscale?: "webhook" | "policy" | "both" } = {},
): Promise<WebhookStage> {
  const kubeconfig = process.env["KUBECONFIG"] ?? "";
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  const namespace = `zw-${randomBytes(4).toString("hex")}`;
  const folder = await mkdtemp(join(tmpdir(), "webhooks-"));
  const { caPem, certPem, keyPem } = await certify(`${SERVICE}.${namespace}.svc`);
  await writeFile(join(folder, "tls.crt"), certPem);
  await writeFile(join(folder, "tls.key"), keyPem);
  const pods = await startScriptedPods();
  const [tlsPort, port] = [await freePort(), await freePort()];
  await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  await applyRbac(admin, namespace, "functions");
  await writeFile(
    join(folder, "kubeconfig"),
    JSON.stringify(await buildKubeconfig(admin, namespace, "zonewise-functions")),
    {
      mode: 0o600,
    },
  );
  const variables = { ...serverVariables({ namespace, folder, tlsPort, port }), ...env };
  const stop = new AbortController();
  const serving = runServer(await composeFunctions(variables, systemClock, toLoopback), stop.signal);
  const stopFunctions = async (): Promise<void> => {
    stop.abort();
    await serving;
  };
  await until("the functions are ready", async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok);
  await admin.call("POST", `/api/v1/namespaces/${namespace}/services`, {
    metadata: { name: SERVICE },
    spec: { type: "ExternalName", externalName: "localhost" },
  });
  // Who comes from the original may have registered whole objects, too.
  const server = { caPem, port: tlsPort };
  const more = noDownscale === "policy" ? [] : ["statefulsets", "deployments", "replicasets"];
  const configurations = [
    ...(await renderConfigurations(namespace, ["no-downscale"], { ...server, more })),
    ...(await renderConfigurations(namespace, ["prepare-downscale", "zpdb-validation"], server)),
    ...(noDownscale === "webhook" ? [] : await renderPolicies(namespace)),
  ];
  t.after(async () => {
    for (const configuration of configurations) await deleteManifest(admin, configuration);
    await remove(admin, `/api/v1/namespaces/${namespace}`);
    await stopFunctions();
    pods.server.closeAllConnections();
    pods.server.close();
    admin.close();
    await rm(folder, { recursive: true, force: true });
  });
  for (const configuration of configurations) await createManifest(admin, configuration);
  if (noDownscale !== "webhook") await untilPolicies(admin, namespace);
  const stage: WebhookStage = {
    namespace,
    admin,
    folder,
    podRequests: pods.requests,
    podResponse: () => 200,
    podPort: pods.port,
    stopFunctions,
    kubectl: (args, input) => runKubectl(["--kubeconfig", kubeconfig, "--namespace", namespace, ...args], input),
    get: (name) => admin.call("GET", `/apis/apps/v1/namespaces/${namespace}/statefulsets/${name}`),
  };
  pods.respondAs(stage);
  return stage;
}

/** Starts a reconciler of the namespace under its ServiceAccount; it is killed with the test. */
export async function startReconcilerOf(
  t: TestContext,
  { admin, namespace, folder }: WebhookStage,
): Promise<TestProcess> {
  await applyRbac(admin, namespace);
  const kubeconfig = join(folder, "reconciler");
  await writeFile(kubeconfig, JSON.stringify(await buildKubeconfig(admin, namespace)), { mode: 0o600 });
  const own = {
    PATH: process.env["PATH"] ?? "",
    KUBERNETES_NAMESPACE: namespace,
    KUBECONFIG: kubeconfig,
    ...PODS_HERE,
  };
  const reconciler = startReconciler({ ...own, RECONCILE_INTERVAL: "1s", RECONCILE_TIME_BUDGET: "10m" });
  t.after(() => reconciler.kill());
  return reconciler;
}

type Script = Pick<WebhookStage, "podResponse">;

interface ScriptedPods {
  readonly server: Server;
  readonly port: number;
  readonly requests: string[];
  respondAs(script: Script): void;
}

async function startScriptedPods(): Promise<ScriptedPods> {
  const requests: string[] = [];
  let script: Script = { podResponse: () => 200 };
  const server = createServer((request, response) => {
    const method = request.method ?? "";
    const pod = request.headers.host?.split(".")[0] ?? "";
    requests.push(`${method} ${pod}`);
    void Promise.resolve(script.podResponse(method, pod)).then((status) => response.writeHead(status).end());
  });
  return { server, port: await listen(server), requests, respondAs: (next) => (script = next) };
}

/**
 * Resolves once the namespace's no-downscale policy refuses: the API server takes a policy into account a moment after it
 * has stored it.
 */
async function untilPolicies(admin: Admin, namespace: string): Promise<void> {
  const sets = `/apis/apps/v1/namespaces/${namespace}/replicasets`;
  const labels = { app: "probe" };
  const spec = {
    replicas: 1,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "x" }] } },
  };
  await admin.call("POST", sets, { metadata: { name: "probe", labels: { "grafana.com/no-downscale": "true" } }, spec });
  await until("the policy refuses", () => isRefused(admin, `${sets}/probe`));
  await remove(admin, `${sets}/probe`);
}

const isRefused = (admin: Admin, path: string): Promise<boolean> =>
  admin.call("PATCH", `${path}?dryRun=All`, { spec: { replicas: 0 } }).then(
    () => false,
    (error: unknown) => /denied (the )?request/.test(String(error)),
  );
