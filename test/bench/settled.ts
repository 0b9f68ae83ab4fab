/**
 * What an installation costs while nothing happens: 20 groups of 3 x 3 pods on the embedded cluster, a run of the
 * reconciler each minute that takes over from the one before, and two processes of functions. With ORIGINAL, the
 * original's daemon as well.
 *
 *   npm run bench -- settled
 *   ORIGINAL=/path/to/rollout-operator BENCH_SECONDS=180 npm run bench -- settled
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { certify } from "../certify.ts";
import { freePort } from "../loopback.ts";
import { startDaemon } from "./original.ts";
import { readCpuMs, readResidentMb } from "./peak.ts";
import { end, MALLOC_ENV, NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { atMost, type Bench, type BenchEnvironment, median, type Row } from "./row.ts";

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 180);
/** Until the first handover is over, and every group has been read whole. */
const WARM_UP_SECONDS = 75;
const RUN_EVERY_MS = 60_000;
const SAMPLE_MS = 500;
const SIZE = { groups: 20, replicas: 3 };
const NAME = "rollout-operator.default.svc";
const CLUSTER = join(import.meta.dirname, "settled-cluster.ts");
const AS_POD = join(import.meta.dirname, "as-pod.js");
const AIMS = { cpuSeconds: 0.6, residentMb: 150, calls: 60 };

export const benchSettled: Bench = async (environment) => {
  const ours = await measureOurs(environment);
  const { cpu, resident, most, calls } = ours;
  const total = cpu.reconciler + cpu.functions;
  const what = `settled, ${SIZE.groups} groups of 3 x ${SIZE.replicas} pods, ${SECONDS} s as installed`;
  const rows: Row[] = [
    {
      what: `${what}: CPU`,
      figure: `${total.toFixed(2)} s (reconciler ${cpu.reconciler.toFixed(2)}, functions ${cpu.functions.toFixed(2)})`,
      aim: atMost(AIMS.cpuSeconds, " s", total),
    },
    {
      what: `${what}: memory`,
      figure: `${resident.toFixed(0)} MB (${most.toFixed(0)} MB while runs overlap)`,
      aim: atMost(AIMS.residentMb, " MB", resident),
    },
    { what: `${what}: API calls`, figure: listCalls(calls), aim: atMost(AIMS.calls, "", sumOf(calls)) },
  ];
  return process.env["ORIGINAL"] ? [...rows, await measureOriginal(environment, what)] : rows;
};

interface Figures {
  /** Seconds. */
  readonly cpu: { readonly reconciler: number; readonly functions: number };
  /** MB of all processes: the median of the time, and the most. */
  readonly resident: number;
  readonly most: number;
  readonly calls: Calls;
}

/** The number of calls by verb and kind. */
type Calls = ReadonlyMap<string, number>;

async function measureOurs({ dist, scratch }: BenchEnvironment): Promise<Figures> {
  const tls = await certify(NAME);
  const files = {
    SERVER_TLS_CERT_FILE: join(scratch, "settled.crt"),
    SERVER_TLS_KEY_FILE: join(scratch, "settled.key"),
  };
  await writeFile(files.SERVER_TLS_CERT_FILE, tls.certPem);
  await writeFile(files.SERVER_TLS_KEY_FILE, tls.keyPem);
  const ports = [await freePort(), await freePort()];
  const cluster = await startCluster({ port: ports[0], ca: tls.caPem });
  const env = {
    ...(await writeAccount(cluster.kubeconfig, join(scratch, "settled-account"))),
    KUBERNETES_NAMESPACE: "default",
    NODE_COMPILE_CACHE: join(scratch, "settled-cache"),
  };
  const runs = startRuns(() => startNode([join(dist, "reconciler/main.js")], env));
  const servers: ChildProcess[] = [];
  for (const port of ports) {
    const own = { SERVER_ADDRESS: "127.0.0.1", SERVER_TLS_PORT: String(port), SERVER_PORT: String(await freePort()) };
    servers.push(startNode([...SERVER_ARGS, join(dist, "functions/serve.js")], { ...env, ...files, ...own }));
  }
  try {
    await sleep(WARM_UP_SECONDS * 1000);
    await cluster.calls();
    const before = { runs: runs.cpuMs(), servers: cpuOf(servers), ended: endedCpuMs() };
    const sizes = await sampleFor(SECONDS, () => residentOf([...runs.living(), ...servers]));
    const reconciler = runs.cpuMs() - before.runs + endedCpuMs() - before.ended;
    const functions = cpuOf(servers) - before.servers;
    return {
      cpu: { reconciler: reconciler / 1000, functions: functions / 1000 },
      resident: median(sizes),
      most: Math.max(...sizes),
      calls: await cluster.calls(),
    };
  } finally {
    await Promise.all([runs.end(), ...[...servers, cluster.child].map(end)]);
  }
}

/** As in a pod, by its ServiceAccount: a kubeconfig takes another quarter of a start. */
async function writeAccount(kubeconfig: string, folder: string): Promise<Readonly<Record<string, string>>> {
  const { clusters, users } = JSON.parse(kubeconfig) as Kubeconfig;
  const { server = "", "certificate-authority-data": ca = "" } = clusters[0]?.cluster ?? {};
  await mkdir(folder);
  await writeFile(join(folder, "ca.crt"), Buffer.from(ca, "base64"));
  await writeFile(join(folder, "token"), users[0]?.user.token ?? "");
  const { hostname, port } = new URL(server);
  return { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, BENCH_ACCOUNT: folder };
}

interface Kubeconfig {
  readonly clusters: readonly {
    readonly cluster: { readonly server: string; readonly "certificate-authority-data": string };
  }[];
  readonly users: readonly { readonly user: { readonly token: string } }[];
}

async function measureOriginal({ scratch }: BenchEnvironment, what: string): Promise<Row> {
  const cluster = await startCluster({});
  const daemon = await startDaemon({ namespace: "default", kubeconfig: cluster.kubeconfig, scratch });
  try {
    await sleep(WARM_UP_SECONDS * 1000);
    await cluster.calls();
    const before = cpuOf([daemon]);
    const sizes = await sampleFor(SECONDS, () => residentOf([daemon]));
    const cpu = (cpuOf([daemon]) - before) / 1000;
    return {
      what: `${what}: the original`,
      figure: `${cpu.toFixed(2)} s of CPU, ${median(sizes).toFixed(0)} MB, API calls: ${listCalls(await cluster.calls())}`,
    };
  } finally {
    await Promise.all([daemon, cluster.child].map(end));
  }
}

async function startCluster(webhook: { readonly port?: number | undefined; readonly ca?: string }) {
  const child = spawn(process.execPath, [CLUSTER, JSON.stringify({ ...SIZE, ...webhook })], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  if (!child.stdout) throw new Error("the cluster has no output");
  const [kubeconfig] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const calls = async (): Promise<Calls> => {
    child.send("calls");
    const [counts] = (await once(child, "message")) as [Record<string, number>];
    return new Map(Object.entries(counts));
  };
  return { child, kubeconfig, calls };
}

/** A pod has no KUBECONFIG: with that of the caller, the processes would serve another cluster than the one measured. */
function startNode(script: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
  const { KUBECONFIG: _, ...inherited } = process.env;
  return spawn(process.execPath, [...NODE_ARGS, "--import", AS_POD, ...script], {
    env: { ...inherited, ...MALLOC_ENV, ...env },
    stdio: ["ignore", "ignore", "inherit"],
  });
}

/** As the CronJob does: another run each minute, whether the one before has ended or not. */
function startRuns(start: () => ChildProcess) {
  const all: ChildProcess[] = [];
  const begin = (): void => void all.push(start());
  begin();
  const timer = setInterval(begin, RUN_EVERY_MS);
  const living = (): ChildProcess[] =>
    all.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  return {
    living,
    /** Of those that have not ended. */
    cpuMs: () => cpuOf(living()),
    end: async () => {
      clearInterval(timer);
      await Promise.all(living().map(end));
    },
  };
}

const sumOf = (calls: Calls): number => [...calls.values()].reduce((sum, count) => sum + count, 0);

/** The sum, and in brackets what is in it, the most frequent first. */
function listCalls(calls: Calls): string {
  const listed = [...calls].toSorted(([, a], [, b]) => b - a).map(([what, count]) => `${count} ${what}`);
  return `${sumOf(calls)} (${listed.join(", ")})`;
}

const cpuOf = (processes: readonly ChildProcess[]): number =>
  processes.reduce((sum, { pid = 0 }) => sum + ofLiving(() => readCpuMs(pid)), 0);

const residentOf = (processes: readonly ChildProcess[]): number =>
  processes.reduce((sum, { pid = 0 }) => sum + ofLiving(() => readResidentMb(pid)), 0);

/** 0 for a process that has just ended, and is not known to have. */
function ofLiving(read: () => number): number {
  try {
    return read() || 0;
  } catch {
    return 0;
  }
}

/** Milliseconds of CPU of the children of this process that have ended, in steps of 10. */
function endedCpuMs(): number {
  // proc(5): cutime and cstime are the 16th and 17th; the name before them may have blanks.
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

async function sampleFor(seconds: number, sample: () => number): Promise<number[]> {
  const end = performance.now() + seconds * 1000;
  const sizes: number[] = [];
  while (performance.now() < end) {
    sizes.push(sample());
    await sleep(SAMPLE_MS);
  }
  return sizes;
}
