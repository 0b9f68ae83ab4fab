/** Processes of the webhook server behind one Service, and the configuration that sends evictions of the namespace to them. */
import { readFile, writeFile } from "node:fs/promises";
import https from "node:https";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { generateCertificates } from "../../infra/certs/generate.ts";
import { listen } from "../loopback.ts";
import { applyRbac, buildKubeconfig } from "./access.ts";
import type { Admin } from "./client.ts";
import { createManifest, deleteManifest, type Manifest, renderConfigurations, SERVICE } from "./manifests.ts";
import { type Reconciler, startEntry } from "./reconciler.ts";
import type { Stage } from "./stage.ts";

const SERVE = fileURLToPath(new URL("../../functions/serve.ts", import.meta.url));
const CRD = new URL("../../infra/manifests/crds/zoneawarepoddisruptionbudgets.yaml", import.meta.url);

export interface Webhooks {
  readonly processes: readonly Reconciler[];
  readonly close: () => Promise<void>;
}

/** Resolves once each process listens and evictions are sent to them, one after the other. */
export async function serveWebhooks({ admin, namespace, folder }: Stage, count: number): Promise<Webhooks> {
  const name = `${SERVICE}.${namespace}.svc`;
  const tls = await generateCertificates({ dnsNames: [name], organization: "test", validityDays: 1, now: new Date() });
  const files = { SERVER_TLS_CERT_FILE: join(folder, "tls.crt"), SERVER_TLS_KEY_FILE: join(folder, "tls.key") };
  await Promise.all([
    writeFile(files.SERVER_TLS_CERT_FILE, tls.certPem),
    writeFile(files.SERVER_TLS_KEY_FILE, tls.keyPem, { mode: 0o600 }),
  ]);
  await applyRbac(admin, namespace, "functions");
  const kubeconfig = join(folder, "functions");
  await writeFile(kubeconfig, JSON.stringify(await buildKubeconfig(admin, namespace, "zonewise-functions")), { mode: 0o600 });
  const own = { PATH: process.env["PATH"] ?? "", KUBERNETES_NAMESPACE: namespace, KUBECONFIG: kubeconfig, SERVER_ADDRESS: "127.0.0.1" };
  const processes = Array.from({ length: count }, () => startEntry(SERVE, { ...own, ...files, SERVER_TLS_PORT: "0", SERVER_PORT: "0" }));
  const ports = await Promise.all(processes.map(portOf));
  const balancer = await balance(tls, name, ports);
  const registered = await register(admin, namespace, tls.caPem, balancer.port);
  return {
    processes,
    async close() {
      for (const configuration of registered) await deleteManifest(admin, configuration);
      balancer.close();
      await Promise.all(processes.map((one) => one.kill()));
    },
  };
}

async function portOf(running: Reconciler): Promise<number> {
  const line = /"msg":"listening","what":"webhooks","port":(?<port>\d+)/;
  await running.says(line);
  return Number(line.exec(running.output())?.groups?.["port"]);
}

/** What a Service does, for each request: the next process that is there. */
async function balance(tls: { certPem: string; keyPem: string; caPem: string }, name: string, ports: readonly number[]) {
  const agent = new https.Agent({ keepAlive: true, ca: tls.caPem });
  let turn = 0;
  const server = https.createServer({ cert: tls.certPem, key: tls.keyPem }, (request, response) => {
    const target = { agent, servername: name, host: "127.0.0.1", port: ports[turn++ % ports.length] };
    const forwarded = https.request({ ...target, method: "POST", path: request.url, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    forwarded.on("error", () => response.destroy());
    request.pipe(forwarded);
  });
  const port = await listen(server);
  const close = (): void => {
    server.closeAllConnections();
    server.close();
    agent.destroy();
  };
  return { port, close };
}

async function register(admin: Admin, namespace: string, caPem: string, port: number): Promise<readonly Manifest[]> {
  const definition: unknown = parse(await readFile(CRD, "utf8"));
  await admin.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).catch((error: unknown) => {
    if (!String(error).includes("AlreadyExists")) throw error;
  });
  await admin.call("POST", `/api/v1/namespaces/${namespace}/services`, {
    metadata: { name: SERVICE },
    spec: { type: "ExternalName", externalName: "localhost" },
  });
  const configurations = await renderConfigurations(namespace, ["pod-eviction"], { caPem, port });
  for (const configuration of configurations) await createManifest(admin, configuration);
  return configurations;
}

/** Creates a budget over a rollout group; tries again while the API server has not yet taken the definition up. */
export async function createBudget({ admin, namespace }: Stage, group: string, spec: object = {}): Promise<void> {
  const path = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`;
  const body = {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ZoneAwarePodDisruptionBudget",
    metadata: { name: group },
    spec: { selector: { matchLabels: { "rollout-group": group } }, ...spec },
  };
  for (let tries = 1; ; tries++) {
    try {
      await admin.call("POST", path, body);
      return;
    } catch (error) {
      if (tries === 50 || !String(error).includes("404")) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}
