/**
 * Peak memory of the bundled processes where one tenant has as many objects as a namespace may well have, each with
 * annotations of the greatest size that Kubernetes allows, or with as many labels.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parse } from "yaml";
import { RETRY_ANNOTATION } from "../../reconciler/gates/gate.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import { add, statefulSet } from "../builders/objects.ts";
import { type Emulator, startEmulator } from "../emulator/index.ts";
import type { KubeObject } from "../emulator/store.ts";
import { PATH } from "./eviction-setup.ts";
import { freePort } from "../loopback.ts";
import { readPeakMb } from "./peak.ts";
import { MALLOC_ENV, NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { evictionRequest, reviewRequest, sendLoad } from "./review-load.ts";
import { prepareServers } from "./review-server.ts";
import { atMost, type Bench, type BenchEnvironment, type Row } from "./row.ts";

/** Below the limit in the manifests, 256 MiB. */
const AIM_MB = 220;
const SETS = 500;
/** Of each other kind that a tenant may create. */
const OTHERS = 100;
const TICKS = 3;
const REVIEWS = 2;
/** The API server's limit for all annotations of an object. */
const ANNOTATION_BYTES = 256 * 1024 - 100;
const GROUP = "tenant";
const labels = { "rollout-group": GROUP };

type Large = "annotations" | "labels";

export const benchLargeObjects: Bench = async (environment) => [
  ...(await benchWith("annotations", environment)),
  ...(await benchWith("labels", environment)),
];

async function benchWith(large: Large, environment: BenchEnvironment): Promise<readonly Row[]> {
  const emulator = await startEmulator();
  try {
    fill(emulator, environment.root, large);
    const kubeconfig = join(environment.scratch, "large-objects-kubeconfig");
    await emulator.writeKubeconfig(kubeconfig);
    const row = (process: string, peakMb: number): Row => ({
      what: `peak memory of ${process}, ${SETS} StatefulSets and ${OTHERS} of each other kind with ${large} of 256 KiB`,
      figure: `${peakMb.toFixed(0)} MB`,
      aim: atMost(AIM_MB, " MB", peakMb),
    });
    return [
      row("the reconciler", await measureReconciler(environment, kubeconfig)),
      row("the functions", await measureFunctions(environment, kubeconfig)),
      row("the status page", await measureStatusPage(environment, kubeconfig)),
    ];
  } finally {
    await emulator.stop();
  }
}

function fill({ store }: Emulator, root: string, large: Large): void {
  for (const name of ["zoneawarepoddisruptionbudgets", "rolloutgates", "rolloutgroups", "phasedrollouts"]) {
    const text = readFileSync(join(root, `infra/manifests/crds/${name}.yaml`), "utf8");
    store.create("customresourcedefinitions.apiextensions.k8s.io", parse(text) as KubeObject);
  }
  // Another text each: equal ones could be kept once.
  const noted = (i: number, annotation: string) => ({
    [annotation]: String(i).padEnd(ANNOTATION_BYTES - annotation.length, `${i}-`),
  });
  const labelled = (i: number) => (large === "labels" ? manyLabels(i) : {});
  const traits = (i: number, annotation = "note") => ({
    labels: { ...labelled(i), ...labels },
    ...(large === "annotations" && { annotations: noted(i, annotation) }),
  });
  for (let i = 0; i < SETS; i++) {
    const name = `zone-${i}`;
    const podLabels = { ...labelled(i), name, ...labels };
    const template = { metadata: { labels: podLabels }, spec: { containers: [{ name: "app", image: "app:1" }] } };
    // One of ours is read: the part that is remembered must not keep the whole.
    const own = { ...traits(i, ANNOTATIONS.downscaleLeader), spec: { template } };
    store.create("statefulsets.apps", statefulSet(name, i === 0 ? 1 : 0, own));
  }
  const check = { name: "errors", query: { url: "http://127.0.0.1:9090", expr: "vector(0)" }, successWhen: "NoData" };
  for (let i = 0; i < OTHERS; i++) {
    const matchLabels = i === 0 ? labels : { other: `o${i}` };
    const budget = { maxUnavailable: 1, selector: { matchLabels } };
    const gate = { group: `none-${i}`, when: ["BetweenZones"], checks: [check] };
    add(store, "ZoneAwarePodDisruptionBudget", `budget-${i}`, { ...traits(i), spec: budget });
    add(store, "RolloutGate", `gate-${i}`, { ...traits(i, RETRY_ANNOTATION), spec: gate });
    add(store, "RolloutGroup", `group-${i}`, { ...traits(i), spec: {} });
    add(store, "PhasedRollout", `phased-${i}`, { ...traits(i), spec: { targetRef: `none-${i}` } });
  }
}

/** Half as many characters as an annotation may have: a StatefulSet has its own and those of its pods. */
function manyLabels(i: number): Record<string, string> {
  const length = 63;
  const count = Math.floor(ANNOTATION_BYTES / 2 / (2 * length));
  const names = Array.from({ length: count }, (_, n) => `l${n}-${i}-`.padEnd(length, "x"));
  return Object.fromEntries(names.map((name) => [name, name]));
}

/** A process of ours, which the next line of its log that has the text lets go on. */
function start(script: readonly string[], env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [...NODE_ARGS, ...script], {
    env: { ...process.env, ...MALLOC_ENV, KUBERNETES_NAMESPACE: "default", SERVER_ADDRESS: "127.0.0.1", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const logged = async (text: string): Promise<void> => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${script.join(" ")} ended without ${text}`);
      if (value.includes(text)) return;
    }
  };
  return { child, logged };
}

async function end(child: ChildProcess): Promise<number> {
  const peakMb = readPeakMb(child.pid);
  child.kill("SIGKILL");
  await once(child, "exit");
  return peakMb;
}

async function measureReconciler({ dist }: BenchEnvironment, kubeconfig: string): Promise<number> {
  const env = { KUBECONFIG: kubeconfig, RECONCILE_INTERVAL: "1s" };
  const { child, logged } = start([join(dist, "reconciler/main.js")], env);
  for (let tick = 0; tick < TICKS; tick++) await logged('"msg":"tick"');
  return await end(child);
}

async function measureFunctions({ dist, scratch }: BenchEnvironment, kubeconfig: string): Promise<number> {
  const startServer = await prepareServers(scratch, await readFile(kubeconfig, "utf8"));
  const args = [...NODE_ARGS, ...SERVER_ARGS, join(dist, "functions/serve.js")];
  const { target, metrics, pid, end } = await startServer(args, reviewRequest(3));
  const requests = [evictionRequest(PATH, "zone-0-0")];
  for (let review = 0; review < REVIEWS; review++)
    await Promise.all([
      sendLoad(target, { requests, count: 1, connections: 1 }),
      read(`http://127.0.0.1:${metrics}/metrics`),
    ]);
  const peakMb = readPeakMb(pid);
  await end();
  return peakMb;
}

async function measureStatusPage({ dist }: BenchEnvironment, kubeconfig: string): Promise<number> {
  const port = await freePort();
  const script = ["--optimize-for-size", "--no-maglev", join(dist, "functions/status/main.js")];
  const { child, logged } = start(script, { KUBECONFIG: kubeconfig, SERVER_PORT: String(port) });
  await logged('"what":"status page"');
  for (let view = 0; view < REVIEWS; view++) await read(`http://127.0.0.1:${port}/`);
  return await end(child);
}

async function read(url: string): Promise<void> {
  const answer = await fetch(url);
  await answer.text();
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`);
}
