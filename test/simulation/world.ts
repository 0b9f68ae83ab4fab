/**
 * The world: an API server with its controllers and kubelets, webhook servers, the CronJob's reconcilers and the pods'
 * endpoints, all under one seed. People act on it from people.ts; safety.ts and stability.ts judge it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { compose as composeWebhooks } from "../../functions/compose.ts";
import { serveWebhook } from "../../functions/http/admission.ts";
import { compose as composeReconciler } from "../../reconciler/run/compose.ts";
import { run } from "../../reconciler/run/run.ts";
import type { Machine } from "../../infra/machine.ts";
import { createApi } from "../emulator/index.ts";
import type { Draft } from "../emulator/objects.ts";
import type { Store } from "../emulator/store.ts";
import type { Draw } from "./draw.ts";
import type { Sent } from "./http.ts";
import { createNetwork, type NetworkOptions, type WebhookServer } from "./network.ts";
import { createProcess, type Process } from "./process.ts";
import type { Schedule } from "./schedule.ts";
import { budgetObject, type Fault, NAMESPACE, type Shape, zoneObject } from "./shape.ts";

export interface WorldOptions {
  readonly schedule: Schedule;
  readonly draw: Draw;
  readonly shape: Shape;
  readonly onCall: NetworkOptions["onCall"];
  readonly onReview: NetworkOptions["onReview"];
  /** A process begins, ends, or writes a line to its log. */
  readonly onProcess: (name: string, text: string) => void;
  readonly onFault: (fault: Fault, site: string) => void;
}

export interface World {
  readonly store: Store;
  readonly ask: ReturnType<typeof createNetwork>["ask"];
  readonly processes: () => readonly Process[];
  /** UIDs of the pods that are prepared for their shutdown. */
  readonly prepared: ReadonlySet<string>;
  /** No fault happens any more. */
  readonly calm: () => void;
  readonly stop: () => void;
}

const MANIFESTS = join(import.meta.dirname, "../../infra/manifests");
const readManifest = (path: string): Draft => parse(readFileSync(join(MANIFESTS, path), "utf8")) as Draft;

const DEFINITIONS = ["replicatemplates", "rolloutgates", "rolloutgroups", "zoneawarepoddisruptionbudgets"].map((name) =>
  readManifest(`crds/${name}.yaml`),
);
const WEBHOOKS = {
  "pod-eviction": "mutating",
  "prepare-downscale": "mutating",
  "no-downscale": "validating",
  "zpdb-validation": "validating",
} as const;
const CONFIGURATIONS = Object.entries(WEBHOOKS).map(
  ([name, type]) =>
    [`${type}webhookconfigurations.admissionregistration.k8s.io`, readManifest(`webhooks/${name}.yaml`)] as const,
);

const ENVIRONMENT = {
  KUBERNETES_NAMESPACE: NAMESPACE,
  SERVER_TLS_SELF_SIGNED_CERT_ENABLED: "false",
  LOG_FORMAT: "logfmt",
};
/** The CronJob's schedule. */
const MINUTE_MS = 60_000;
/** Between the death of a webhook server and its successor. */
const RESTART_MS = 3000;

export function createWorld({ schedule, draw, shape, ...on }: WorldOptions): World {
  const processes = new Set<Process>();
  const servers = new Set<WebhookServer>();
  const prepared = new Set<string>();
  const counts = new Map<string, number>();
  let isCalm = false;
  const strikes = (fault: Fault, site: string): boolean => {
    if (isCalm || !draw.chance(shape.faults[fault])) return false;
    on.onFault(fault, site);
    return true;
  };
  const network = createNetwork({ ...on, schedule, draw, strikes, servers: () => [...servers], pods: answerForPod });
  const { api, stop } = createApi({ clock: schedule, post: network.post });
  network.serveFrom(api);
  const { store } = api;

  for (const definition of DEFINITIONS) store.create("customresourcedefinitions.apiextensions.k8s.io", definition);
  const labels = { "kubernetes.io/metadata.name": NAMESPACE };
  store.create("namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE, labels } });
  const spec = { type: "ExternalName", externalName: "localhost" };
  const metadata = { name: "rollout-operator", namespace: NAMESPACE };
  store.create("services", { apiVersion: "v1", kind: "Service", metadata, spec });
  for (const [resource, configuration] of CONFIGURATIONS) store.create(resource, configuration);
  if (shape.budget !== undefined)
    store.create("zoneawarepoddisruptionbudgets.rollout-operator.grafana.com", budgetObject(shape.budget));
  for (const zone of shape.zones) store.create("statefulsets.apps", zoneObject(shape, zone));

  for (let i = 0; i < shape.webhookServers; i++) schedule.after(i, startServer);
  schedule.after(draw.below(MINUTE_MS), startJob);

  function startProcess(kind: string): { readonly process: Process; readonly machine: Machine; readonly env: object } {
    const number = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, number);
    const skewMs = shape.skewMs === 0 ? 0 : draw.between(-shape.skewMs, shape.skewMs);
    const process = createProcess(schedule, `${kind}-${number}`, skewMs);
    processes.add(process);
    on.onProcess(process.name, `starts, its clock ${skewMs} ms ahead`);
    process.onDeath(() => {
      processes.delete(process);
      on.onProcess(process.name, "is killed");
    });
    const machine = {
      ...process.clock,
      connect: () => Promise.resolve(network.connectionOf(process)),
      open: network.openPods(process),
      write: (line: string) => on.onProcess(process.name, line.trimEnd()),
    };
    return { process, machine, env: { ...ENVIRONMENT, POD_NAME: process.name } };
  }

  function startServer(): void {
    const { process, machine, env } = startProcess("webhooks");
    process.onDeath(() => schedule.after(RESTART_MS, startServer));
    void composeWebhooks({ ...env }, machine).then(({ webhooks, rim }) => {
      const routes = new Map(
        webhooks.flatMap((webhook) => webhook.paths.map((path) => [path, serveWebhook(webhook, rim)] as const)),
      );
      const server = { process, routes };
      servers.add(server);
      process.onDeath(() => servers.delete(server));
    });
  }

  /** `concurrencyPolicy: Forbid` is a promise of the CronJob controller that a lost node breaks: runs may overlap. */
  function startJob(): void {
    schedule.after(MINUTE_MS, startJob);
    const { process, machine, env } = startProcess("reconciler");
    void composeReconciler({ ...env }, machine)
      .then(({ run: input }) => run({ ...input, stop: new AbortController().signal }))
      .then(({ exitCode }) => {
        processes.delete(process);
        on.onProcess(process.name, `ends with ${exitCode}`);
      });
  }

  function answerForPod({ host, method }: Sent): { readonly status: number; readonly body: string } | undefined {
    const [name = ""] = host.split(".");
    const pod = store.get("pods", NAMESPACE, name);
    if (!pod) return undefined;
    if (method === "POST") prepared.add(pod.metadata.uid);
    else prepared.delete(pod.metadata.uid);
    return { status: 200, body: "{}" };
  }

  return {
    store,
    ask: network.ask,
    processes: () => [...processes],
    prepared,
    calm: () => void (isCalm = true),
    stop: () => {
      for (const process of processes) process.kill();
      stop();
    },
  };
}
