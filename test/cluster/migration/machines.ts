/**
 * Plays what a control plane without containers lacks: the processes of the namespace's pods, and the proxy of the
 * original's Service. A process runs while its pod is there; a connection goes to a ready pod that the Service
 * selects at that moment, and stays there.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, connect, type Server } from "node:net";
import { join } from "node:path";
import type { PodObject, Secret } from "../../../infra/kubernetes/resources.ts";
import { listen } from "../../loopback.ts";
import { writeKubeconfig } from "../stage/access.ts";
import type { Admin } from "../stage/client.ts";
import { follow, type Followed } from "../stage/follow.ts";
import { startEntry } from "../stage/process.ts";
import { until } from "../stage/until.ts";
import { SECRET, type Shape } from "./original.ts";
import { startStandIn } from "./stand-in.ts";

interface Process {
  /** Where it serves webhooks; undefined if it does not. */
  readonly port?: number;
  readonly end: () => unknown;
  readonly output: () => string;
}

interface Variable {
  readonly name: string;
  readonly value?: string;
}

interface PodState {
  pod: PodObject;
  readonly process: Promise<Process | undefined>;
}

interface Place {
  readonly admin: Admin;
  readonly namespace: string;
  readonly folder: string;
  readonly original: Shape;
  /** For all our processes. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Machines {
  /** The port of the Service's proxy. */
  readonly port: number;
  /** Starts to run pods; the namespace's ServiceAccounts may come later. */
  readonly start: () => Promise<void>;
  /** Resolves when every process serves: the simulated kubelets call a pod ready that still starts. */
  readonly serving: () => Promise<void>;
  readonly outputs: () => Promise<string>;
  readonly close: () => Promise<void>;
}

/** The entries of jobs, by their label, which is their ServiceAccount's name, too. */
const JOBS: Readonly<Record<string, string>> = {
  "zonewise-reconciler": "reconciler/run/main.ts",
  "zonewise-certificates": "infra/certs/act/main.ts",
};
const SERVING = /"msg":"listening","what":"webhooks","port":(?<port>\d+)/;

export async function openMachines(place: Place): Promise<Machines> {
  const { admin, namespace } = place;
  const pods = new Map<string, PodState>();
  const ended: PodState[] = [];
  let selector: Readonly<Record<string, string>> = {};
  let connections = 0;
  const stopped = new AbortController();

  function onPod(type: string, pod: PodObject): void {
    const { uid = "", deletionTimestamp } = pod.metadata ?? {};
    const isEnding = type === "DELETED" || deletionTimestamp !== undefined;
    const state = pods.get(uid) ?? (isEnding ? undefined : { pod, process: runPod(place, pod).catch(describeFailure) });
    if (!state) return; // it has ended
    state.pod = pod;
    pods.set(uid, state);
    if (!isEnding) return;
    pods.delete(uid);
    ended.push(state);
    void state.process.then((process) => process?.end());
  }

  async function pickPort(): Promise<number | undefined> {
    const chosen = [...pods.values()].filter(({ pod }) => isReady(pod) && hasLabels(pod.metadata?.labels, selector));
    return (await chosen[connections++ % chosen.length]?.process)?.port;
  }

  const proxy: Server = createServer((socket) => {
    socket.on("error", () => {});
    void pickPort().then((port) => {
      if (port === undefined) return void socket.destroy();
      const target = connect(port, "127.0.0.1");
      target.on("error", () => socket.destroy());
      target.on("close", () => socket.destroy());
      socket.on("close", () => target.destroy());
      socket.pipe(target).pipe(socket);
    });
  });

  return {
    port: await listen(proxy, "localhost"),
    async start() {
      await follow(admin, `/api/v1/namespaces/${namespace}/services`, stopped.signal, (_type, service) => {
        if (service.metadata?.name === place.original.operator) selector = selectorOf(service);
      });
      await follow(admin, `/api/v1/namespaces/${namespace}/pods`, stopped.signal, onPod);
    },
    async serving() {
      await Promise.all([...pods.values()].map(({ process }) => process));
    },
    async outputs() {
      const processes = await Promise.all([...ended, ...pods.values()].map(({ process }) => process));
      return processes.map((process) => process?.output() ?? "").join("\n");
    },
    async close() {
      stopped.abort();
      await Promise.all([...pods.values()].map(async ({ process }) => (await process)?.end()));
      proxy.close();
    },
  };
}

const describeFailure = (error: unknown): Process => ({ end: () => {}, output: () => String(error) });
const hasLabels = (labels: Readonly<Record<string, string>> = {}, wanted: Readonly<Record<string, string>>): boolean =>
  Object.entries(wanted).every(([key, value]) => labels[key] === value);
const isReady = ({ status }: PodObject): boolean =>
  status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
const selectorOf = (service: Followed): Readonly<Record<string, string>> =>
  (service as { readonly spec?: { readonly selector?: Readonly<Record<string, string>> } }).spec?.selector ?? {};

/** Starts what the pod's container would run; undefined for the pods of zones. */
async function runPod(place: Place, pod: PodObject): Promise<Process | undefined> {
  const { name = "", labels = {} } = pod.metadata ?? {};
  if (hasLabels(labels, place.original.labels)) return await runStandIn(place);
  const account = labels["app.kubernetes.io/name"] ?? "";
  if (account === "zonewise-functions") return await runFunctions(place, pod, name);
  const file = JOBS[account];
  return file === undefined ? undefined : await runJob(place, pod, { account, file });
}

async function runStandIn(place: Place): Promise<Process> {
  const { cert = "", key = "" } = await readSecret(place, place.original.secret, "cert");
  const { port, kill } = await startStandIn({ cert, key });
  return { port, end: kill, output: () => "" };
}

async function runFunctions(place: Place, pod: PodObject, name: string): Promise<Process> {
  const data = await readSecret(place, SECRET, "tls.crt");
  const folder = join(place.folder, name);
  await mkdir(folder, { recursive: true });
  const files = { SERVER_TLS_CERT_FILE: join(folder, "tls.crt"), SERVER_TLS_KEY_FILE: join(folder, "tls.key") };
  await writeFile(files.SERVER_TLS_CERT_FILE, data["tls.crt"] ?? "");
  await writeFile(files.SERVER_TLS_KEY_FILE, data["tls.key"] ?? "", { mode: 0o600 });
  const env = await buildEnvironment(place, pod, "zonewise-functions");
  const running = startEntry("functions/serve.ts", { ...env, ...files, SERVER_TLS_PORT: "0", SERVER_PORT: "0" });
  await running.untilOutput(SERVING);
  const port = Number(SERVING.exec(running.output())?.groups?.["port"]);
  return { port, end: running.end, output: running.output };
}

async function runJob(
  place: Place,
  pod: PodObject,
  { account, file }: { account: string; file: string },
): Promise<Process> {
  const name = pod.metadata?.name ?? "";
  const env = await buildEnvironment(place, pod, account);
  const running = startEntry(file, { ...env, POD_NAME: name });
  void running.exited.then(async (code) => {
    const status = { phase: code === 0 ? "Succeeded" : "Failed" };
    await place.admin
      .call("PATCH", `/api/v1/namespaces/${place.namespace}/pods/${name}/status`, { status })
      .catch(() => {});
  });
  return { end: running.end, output: running.output };
}

async function buildEnvironment(place: Place, pod: PodObject, account: string): Promise<Record<string, string>> {
  const kubeconfig = await writeKubeconfig(place, account);
  const own = { KUBERNETES_NAMESPACE: place.namespace, KUBECONFIG: kubeconfig, SERVER_ADDRESS: "127.0.0.1" };
  return { PATH: process.env["PATH"] ?? "", ...variablesOf(pod), ...own, ...place.env };
}

/** What the pod's container is told by values. */
function variablesOf(pod: PodObject): Record<string, string> {
  const { containers = [] } = (pod.spec ?? {}) as {
    readonly containers?: readonly { readonly env?: readonly Variable[] }[];
  };
  const { env = [] } = containers[0] ?? {};
  return Object.fromEntries(env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value] as const])));
}

/** Resolves once the Secret has the key, as a kubelet waits for the content of a volume; rejects after some minutes. */
async function readSecret({ admin, namespace }: Place, name: string, key: string): Promise<Record<string, string>> {
  let data: Readonly<Record<string, string>> = {};
  await until(`the Secret has ${key}`, async () => {
    ({ data = {} } = await admin.call<Secret>("GET", `/api/v1/namespaces/${namespace}/secrets/${name}`));
    return data[key] !== undefined;
  });
  return Object.fromEntries(Object.entries(data).map(([name, text]) => [name, Buffer.from(text, "base64").toString()]));
}
