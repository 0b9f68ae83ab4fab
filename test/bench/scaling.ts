/**
 * A tick over 50 mirroring StatefulSets of 100 pods each; half of the pods are to be removed, but not
 * prepared long enough.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import type { KubeObject } from "../emulator/store.ts";
import { startEmulator, type Emulator } from "../emulator/index.ts";
import { listen } from "../loopback.ts";
import { readPeakMb } from "./peak.ts";
import { NODE_ARGS } from "./process.ts";
import { atMost, median, type Bench } from "./row.ts";

const ZONES = 50;
const REPLICAS = 100;
const WANTED = 50;
const AT_ONCE = 32;
/** The response time of a pod, milliseconds. */
const ANSWER_MS = 5;
const TICKS = 6;

export const benchScaling: Bench = async ({ root, dist, scratch }) => {
  const pods = await playPods();
  const emulator = await startEmulator({ controllers: false });
  try {
    const kubeconfig = join(scratch, "kubeconfig");
    await emulator.writeKubeconfig(kubeconfig);
    createZones(
      emulator,
      parse(readFileSync(join(root, "infra/manifests/crds/replicatemplates.yaml"), "utf8")) as KubeObject,
      pods.port,
    );
    const names = join(root, "test/cluster/stage/pod-names.ts");
    const env = {
      ...process.env,
      KUBECONFIG: kubeconfig,
      KUBERNETES_NAMESPACE: "default",
      RECONCILE_INTERVAL: "100ms",
    };
    const child = spawn(process.execPath, [...NODE_ARGS, "--import", names, join(dist, "reconciler/main.js")], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ticks: number[] = [];
    let peakMb = Number.NaN;
    for await (const line of createInterface(child.stdout)) {
      const entry = JSON.parse(line) as { msg: string; ms: number; waiting?: number };
      if (entry.msg !== "tick") continue;
      if (entry.waiting !== ZONES) throw new Error(`${entry.waiting} zones wait, not ${ZONES}`);
      ticks.push(entry.ms);
      if (ticks.length !== TICKS) continue;
      peakMb = readPeakMb(child.pid);
      child.kill();
    }
    const floorMs = ((ZONES * (REPLICAS - WANTED)) / AT_ONCE) * ANSWER_MS;
    const tickMs = median(ticks.slice(1, TICKS));
    const what = `a tick over ${ZONES} mirroring zones of ${REPLICAS} pods, delayed downscale pending`;
    return [
      { what: `${what}: requests to pods in flight`, figure: `${pods.most()}`, aim: atMost(AT_ONCE, "", pods.most()) },
      {
        what: `${what}: time`,
        figure: `${Math.round(tickMs)} ms, ${(tickMs / floorMs).toFixed(2)} times ${ZONES * (REPLICAS - WANTED)} answers of ${ANSWER_MS} ms, ${AT_ONCE} at once`,
      },
      { what: `${what}: peak memory`, figure: `${peakMb.toFixed(0)} MB` },
    ];
  } finally {
    pods.close();
    await emulator.stop();
  }
};

async function playPods() {
  let inFlight = 0;
  let most = 0;
  const server = createServer((_request, response) => {
    most = Math.max(most, ++inFlight);
    void sleep(ANSWER_MS).then(() => {
      inFlight--;
      response.end(JSON.stringify({ timestamp: Math.floor(Date.now() / 1000) }));
    });
  });
  return {
    port: await listen(server, "localhost"),
    most: () => most,
    close: () => server.close().closeAllConnections(),
  };
}

function createZones({ store }: Emulator, definition: KubeObject, port: number): void {
  store.create("customresourcedefinitions.apiextensions.k8s.io", definition);
  const apiVersion = "rollout-operator.grafana.com/v1";
  const metadata = { name: "template", namespace: "default" };
  store.create("replicatemplates.rollout-operator.grafana.com", {
    apiVersion,
    kind: "ReplicaTemplate",
    metadata,
    spec: { replicas: WANTED },
  });
  for (let i = 0; i < ZONES; i++) {
    const name = `g${Math.floor(i / 2)}-zone-${"ab".charAt(i % 2)}`;
    const annotations = {
      "grafana.com/rollout-mirror-replicas-from-resource-name": "template",
      "grafana.com/rollout-mirror-replicas-from-resource-kind": "ReplicaTemplate",
      "grafana.com/rollout-mirror-replicas-from-resource-api-version": apiVersion,
      "grafana.com/rollout-mirror-replicas-from-resource-write-back": "false",
      "grafana.com/rollout-delayed-downscale": "1h",
      "grafana.com/rollout-prepare-delayed-downscale-url": `http://pod:${port}/prepare`,
    };
    store.create("statefulsets.apps", {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name, namespace: "default", labels: { "rollout-group": `g${Math.floor(i / 2)}` }, annotations },
      spec: {
        serviceName: name,
        replicas: REPLICAS,
        updateStrategy: { type: "OnDelete" },
        selector: { matchLabels: { name } },
        template: { metadata: { labels: { name } } },
      },
      status: {
        observedGeneration: 1,
        replicas: REPLICAS,
        readyReplicas: REPLICAS,
        updatedReplicas: REPLICAS,
        currentRevision: "r",
        updateRevision: "r",
      },
    });
  }
}
