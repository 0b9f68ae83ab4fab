/** The functions that the real Prometheus scrapes, and the queries of the dashboard. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeKubeconfig } from "../stage/access.ts";
import { startEntry } from "../stage/process.ts";
import type { Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { fillVariables } from "./prometheus-server.ts";

const DASHBOARD = new URL("../../../infra/observability/dashboard.json", import.meta.url);

interface Functions {
  readonly metrics: number;
  readonly webhooks: number;
}

/** Starts the functions with the certificate that the reconciler has made. */
export async function startFunctions(stage: Stage): Promise<Functions> {
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
export async function writeCertificate({ call, namespace, folder }: Stage): Promise<string> {
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
export async function readPanels(): Promise<Map<string, string>> {
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
