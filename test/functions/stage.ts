/** Handlers against the embedded cluster, without its controllers, and pods with scripted answers. */
import { createServer, type Server } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { recordInAnnotation } from "../../functions/downscale/downscale-record.ts";
import { createPrepareDownscale } from "../../functions/downscale/prepare-downscale.ts";
import type { PrepareTools } from "../../functions/downscale/prepare-zone.ts";
import { createBackgroundTasks } from "../../functions/http/rim.ts";
import type { AdmissionRequest, Answer, RequestContext, Webhook } from "../../functions/http/webhook.ts";
import { type Clock, systemClock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { createLog, type LogFields } from "../../infra/log.ts";
import { createPodHttp, type PodHttp } from "../../infra/pod-http.ts";
import { judged, verdict } from "../../reconciler/budget/verdict.ts";
import type { Reserver } from "../../reconciler/budget/act/reserve.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import type { Clock as EmulatorClock } from "../emulator/clock.ts";
import { type Emulator, startEmulator } from "../emulator/index.ts";
import { listen, toLoopback } from "../loopback.ts";
import { connectionOf } from "./connection.ts";
import { pod, statefulSet } from "../builders/objects.ts";
import { review } from "../builders/reviews.ts";

export interface Stage {
  readonly emulator: Emulator;
  /** The methods and paths of the calls made through the cluster. */
  readonly cluster: Cluster;
  readonly calls: string[];
}

/** Stops at the end of the test. The cluster's clock is `clock` or the machine's. */
export async function setStage(t: TestContext, clock?: EmulatorClock): Promise<Stage> {
  const emulator = await startEmulator({ controllers: false, ...(clock && { clock }) });
  const calls: string[] = [];
  const observer = {
    answered: ({ method, path, status }: { method: string; path: string; status: string }) =>
      void calls.push(`${method} ${path} ${status}`),
    rateLimited: () => {},
  };
  const connection = connectionOf(emulator);
  t.after(async () => {
    connection.close();
    await emulator.stop();
  });
  return { emulator, calls, cluster: connectCluster(connection, { timeoutMs: 30_000, observer }) };
}

/** The path of a kubeconfig of the cluster's administrator, for other processes. */
export async function writeKubeconfig(t: TestContext, { emulator }: Pick<Stage, "emulator">): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "functions-"));
  t.after(() => rm(folder, { recursive: true }));
  await emulator.writeKubeconfig(join(folder, "kubeconfig"));
  return join(folder, "kubeconfig");
}

interface ZoneTraits {
  readonly replicas?: number;
  /** The number of ready pods; all by default. */
  readonly ready?: number;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string | undefined>;
  readonly group?: string;
}

const PREPARED = {
  "grafana.com/prepare-downscale-http-path": "prepare",
  "grafana.com/prepare-downscale-http-port": "8080",
};

/** Creates a StatefulSet that wants its pods prepared, with its pods. */
export function createZone({ emulator: { store } }: Stage, name: string, traits: ZoneTraits = {}): StatefulSet {
  const { replicas = 3, ready = replicas, group = "ingester" } = traits;
  const annotations = JSON.parse(JSON.stringify({ ...PREPARED, ...traits.annotations })) as Record<string, string>;
  const labels = {
    "grafana.com/prepare-downscale": "true",
    ...(group && { "rollout-group": group }),
    ...traits.labels,
  };
  const created = store.create(
    "statefulsets.apps",
    statefulSet(name, replicas, {
      labels,
      annotations,
      spec: { serviceName: "ingester", revisionHistoryLimit: 10 },
      status: {
        observedGeneration: 1,
        replicas,
        readyReplicas: ready,
        updatedReplicas: ready,
        currentRevision: "1",
        updateRevision: "1",
      },
    }),
  );
  const owner = { name, uid: created.metadata.uid };
  for (let ordinal = 0; ordinal < replicas; ordinal++) {
    const containerStatuses = [{ name: "c", ready: ordinal < ready, state: { running: {} } }];
    const status = { phase: "Running", containerStatuses };
    store.create("pods", pod(`${name}-${ordinal}`, { labels: { name }, owner, status }));
  }
  return created;
}

/** A review of an update of the StatefulSet from its replicas to `to`, as the API server sends it. */
export function reviewOf(zone: StatefulSet, to: number | null, more: Partial<AdmissionRequest> = {}): AdmissionRequest {
  const object = structuredClone(zone) as { spec: { replicas?: number | null } };
  object.spec.replicas = to;
  const name = zone.metadata?.name ?? "";
  return review("StatefulSet", name, { uid: `uid-${name}-${to}`, oldObject: zone, object, ...more });
}

/** The same through the scale subresource. */
export function scaleReviewOf(zone: StatefulSet, to: number, more: Partial<AdmissionRequest> = {}): AdmissionRequest {
  const scale = (replicas: number | undefined): object => ({
    apiVersion: "autoscaling/v1",
    kind: "Scale",
    spec: { replicas },
  });
  const kind = { group: "autoscaling", version: "v1", kind: "Scale" };
  return reviewOf(zone, to, {
    kind,
    subResource: "scale",
    oldObject: scale(zone.spec?.replicas),
    object: scale(to),
    ...more,
  });
}

export interface Entry extends LogFields {
  readonly msg: string;
}

/** A log that keeps its entries. */
export function keepingLog() {
  const entries: Entry[] = [];
  const log = createLog({
    level: "debug",
    write: (line) => void entries.push(JSON.parse(line) as Entry),
    now: () => new Date(),
  });
  return { log, entries };
}

/** Calls a handler like the rim, with a deadline in `timeoutMs` milliseconds by the clock of its process. */
export async function callWebhook(
  webhook: Webhook,
  request: AdmissionRequest,
  { timeoutMs = 9000, clock = systemClock }: { readonly timeoutMs?: number; readonly clock?: Clock } = {},
): Promise<Answer> {
  const context: RequestContext = {
    path: "",
    signal: AbortSignal.timeout(timeoutMs),
    deadlineAt: clock.monotonic() + timeoutMs,
    log: keepingLog().log,
  };
  return await webhook.handle(request, context);
}

export interface Pods {
  readonly podHttp: PodHttp;
  /** `POST ingester-zone-a-2`, as they came. */
  readonly seen: string[];
}

/** A pod's answer: a status, or no answer. */
export type Script = (method: string, pod: string) => number | Promise<number>;

/** One plain HTTP server for all pods. */
export async function playPods(t: TestContext, script: Script = () => 200): Promise<Pods> {
  const seen: string[] = [];
  const server: Server = createServer((request, response) => {
    const method = request.method ?? "";
    const pod = request.headers.host?.split(".")[0] ?? "";
    seen.push(`${method} ${pod}`);
    void Promise.resolve(script(method, pod)).then((status) => response.writeHead(status).end());
  });
  const port = await listen(server);
  t.after(() => (server.closeAllConnections(), server.close()));
  const real = createPodHttp({ timeoutMs: 30_000, clock: systemClock, lookup: toLoopback });
  // The annotation sets the pods' port; here they all share one.
  const podHttp: PodHttp = {
    send: (method, url, request) => real.send(method, url.replace(":8080/", `:${port}/`), request),
  };
  return { podHttp, seen };
}

/** The reserver of a cluster without disruption budgets. */
const noBudgets: Pick<Reserver, "reserveDownscale" | "release"> = {
  reserveDownscale: async () => judged(verdict("Allowed", "there is no budget")),
  release: async () => {},
};

/**
 * One process of prepare-downscale, in a cluster without disruption budgets and whose pods confirm every preparation,
 * as far as `tools` has nothing else.
 */
export function startPrepareDownscale(tools: Pick<PrepareTools, "cluster" | "clock"> & Partial<PrepareTools>): Webhook {
  return createPrepareDownscale({
    podHttp: { send: async () => ({ status: 200, body: "" }) },
    clusterDomain: "x",
    record: recordInAnnotation(tools, "rollout-operator-zone-tracker"),
    reserver: noBudgets,
    emitEvents: () => {},
    tasks: createBackgroundTasks(),
    ...tools,
  });
}
