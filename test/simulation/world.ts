/**
 * The world: an API server with its controllers and kubelets, webhook servers, the CronJob's reconcilers and the pods'
 * endpoints, all under one seed. People act on it from people.ts; safety.ts and stability.ts judge it.
 */
import type { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { composeFunctions as composeWebhooks } from "../../functions/compose.ts";
import { compose as composeReconciler } from "../../reconciler/run/compose.ts";
import { run } from "../../reconciler/run/run.ts";
import type { Connection } from "../../infra/kubernetes/connection.ts";
import { type CertificateOptions, generateCertificates } from "../../infra/certs/act/generate.ts";
import { runJob } from "../../infra/certs/act/run-job.ts";
import { messageOf } from "../../infra/errors.ts";
import { createApi } from "../emulator/index.ts";
import { dig, type Draft, fieldsOf, listOf, put } from "../emulator/objects.ts";
import { ADMIN_TOKEN } from "../emulator/tokens.ts";
import type { KubeObject, Store } from "../emulator/store.ts";
import {
  GATE_CHECK,
  gateObject,
  GATES,
  PHASED_CHECK,
  PHASED_ROLLOUTS,
  phasedObject,
  phasedSet,
} from "./checks/objects.ts";
import { createPrometheus } from "./checks/prometheus.ts";
import { CERTIFICATE_ENVIRONMENT, kubeletDelay, mountSecret, whyNotTrusted } from "./certificates/trust.ts";
import type { Draw } from "./draw.ts";
import type { HostAnswer, Sent } from "../emulator/in-process.ts";
import { knowAccounts, tokenOf } from "./accounts.ts";
import { CONFIGURATIONS as DELETION_CONFIGURATIONS, withoutConditions } from "./deletions/shape.ts";
import { createNetwork, type NetworkOptions, type WebhookServer } from "./network.ts";
import { createFleet, type Fleet, type FleetOptions, type Started } from "./nodes/fleet.ts";
import { waitForTokens } from "./nodes/tokens.ts";
import { createProcess, type Process } from "./process.ts";
import type { Schedule } from "./schedule.ts";
import { BUDGETS, NAMESPACE, TWIN, VALIDATING } from "./names.ts";
import { budgetObject, DELAYED_PATH, type Shape, templateObject, TEMPLATES, zoneObject } from "./shape.ts";
import { forBoth, twinObjects } from "./wider.ts";
import { add } from "../builders/objects.ts";

export interface WorldOptions {
  readonly schedule: Schedule;
  readonly draw: Draw;
  readonly shape: Shape;
  readonly onCall: NetworkOptions["onCall"];
  readonly onSent?: NetworkOptions["onSent"];
  readonly onReview: NetworkOptions["onReview"];
  readonly onArrival: NetworkOptions["onArrival"];
  readonly onUnanswered: NetworkOptions["onUnanswered"];
  /** A process begins, ends, or writes a line to its log. */
  readonly onProcess: (name: string, text: string) => void;
  /** True if this fault happens at this call site now. */
  readonly strikes: NetworkOptions["strikes"];
  readonly onHandshake: NetworkOptions["onHandshake"];
  /** The stream of what happens to nodes. */
  readonly nodeDraw: Draw;
  readonly onHost: FleetOptions["onHost"];
  /** The Secret with the certificate, if there is one as the world begins. */
  readonly secret: Draft | undefined;
}

export interface World {
  readonly store: Store;
  readonly ask: ReturnType<typeof createNetwork>["ask"];
  readonly disturb: ReturnType<typeof createNetwork>["disturb"];
  /** A process of somebody who is no part of the world. */
  readonly admit: (name: string) => { readonly process: Process; readonly connection: Connection };
  readonly processes: () => readonly Process[];
  /** UIDs of the pods that are prepared for their shutdown. */
  readonly prepared: ReadonlySet<string>;
  /** UIDs of the pods that know that they go later, and since when. */
  readonly leaving: ReadonlyMap<string, number>;
  /** The certificates that the webhook servers show. */
  readonly shown: () => readonly (X509Certificate | undefined)[];
  /** The nodes whose hosts get updates. */
  readonly fleet: Fleet | undefined;
  /** Checks are answered as the shape says from now on, and hosts do no more wrong. */
  readonly calm: () => void;
  readonly stop: () => void;
}

const MANIFESTS = join(import.meta.dirname, "../../infra/manifests");
const readManifest = (path: string): Draft => parse(readFileSync(join(MANIFESTS, path), "utf8")) as Draft;

const DEFINITIONS = [
  "phasedrollouts",
  "replicatemplates",
  "rolloutgates",
  "rolloutgroups",
  "zoneawarepoddisruptionbudgets",
].map((name) => readManifest(`crds/${name}.yaml`));
const WEBHOOKS = {
  "pod-eviction": "mutating",
  "prepare-downscale": "mutating",
  "no-downscale": "validating",
  "zpdb-validation": "validating",
  "phased-defaults": "mutating",
  "phased-validation": "validating",
  "raise-partition": "mutating",
} as const;
const CONFIGURATIONS = Object.entries(WEBHOOKS).map(
  ([name, type]) =>
    [`${type}webhookconfigurations.admissionregistration.k8s.io`, readManifest(`webhooks/${name}.yaml`)] as const,
);
const [EVICTION_WEBHOOK, VALIDATING_CONFIGURATIONS] = [
  "pod-eviction-zonewise",
  "validatingwebhookconfigurations.admissionregistration.k8s.io",
];
const DELETION = readManifest("pod-deletion-webhook/pod-deletion.yaml");

const ENVIRONMENT = {
  KUBERNETES_NAMESPACE: NAMESPACE,
  SERVER_TLS_SELF_SIGNED_CERT_ENABLED: "false",
  LOG_FORMAT: "logfmt",
};
/** The CronJob's schedule. */
const MINUTE_MS = 60_000;
/** Between the death of a webhook server and its successor. */
const RESTART_MS = 3000;
/** For which a controller of the cluster stands still. */
const STALLS_MS = [200, 1000, 5000];
/** Between two certificate jobs. */
const CERTIFICATES_MS = 180_000;

const STATUS_FIELDS = ["schema", "openAPIV3Schema", "properties", "status", "properties"];

/** As it was before it had the field for what is reserved. */
const withoutReservations = (definition: Draft): Draft => {
  const copy = structuredClone(definition);
  for (const version of listOf(dig(copy, "spec", "versions")))
    delete fieldsOf(dig(version, ...STATUS_FIELDS))["disruptedPods"];
  return copy;
};

/** A webhook that judges, and cannot change what it is asked about. */
const asValidating = (configuration: Draft): Draft => ({
  ...configuration,
  kind: "ValidatingWebhookConfiguration",
  webhooks: listOf(configuration["webhooks"]).map((webhook) => put(fieldsOf(webhook), PATH, VALIDATING)),
});
const PATH = ["clientConfig", "service", "path"];

const underIgnore = (configuration: Draft): Draft => ({
  ...configuration,
  webhooks: listOf(configuration["webhooks"]).map((webhook) => ({ ...(webhook as object), failurePolicy: "Ignore" })),
});

/** The original's configurations have no conditions, and send whole StatefulSets, too. */
const asOriginal = (configuration: Draft): Draft => ({
  ...configuration,
  webhooks: listOf(withoutConditions(configuration)["webhooks"]).map((webhook) => {
    const rules = listOf(dig(webhook, "rules")).map((rule) => ({
      ...(rule as object),
      resources: ["statefulsets", "statefulsets/scale"],
    }));
    return { ...(webhook as object), rules };
  }),
});

export function createWorld({ schedule, draw, nodeDraw, shape, strikes, secret, ...on }: WorldOptions): World {
  const processes = new Set<Process>();
  const servers = new Set<WebhookServer>();
  const prepared = new Set<string>();
  const leaving = new Map<string, number>();
  const counts = new Map<string, number>();
  const stalledUntil = new Map<string, number>();
  const prometheus = createPrometheus({
    schedule,
    draw,
    checks: {
      ...(shape.gate && { [GATE_CHECK]: shape.gate }),
      ...(shape.phased && { [PHASED_CHECK]: shape.phased }),
    },
    onAnswer: (text) => on.onProcess("prometheus", text),
  });
  const network = createNetwork({
    ...on,
    schedule,
    draw,
    strikes,
    servers: () => [...servers],
    hosts,
    // Who asks matters to nobody else, and is told in logs.
    tokenOf: shape.deletions ? tokenOf : () => ADMIN_TOKEN,
    // A page a pod and a few calls a second are too slow for the time that a webhook has: nothing could settle.
    pageSize: shape.callsPerSecond === undefined ? shape.pageSize : undefined,
    whyNotTrusted: ({ mount }, ca) =>
      shape.certificate ? whyNotTrusted(mount.shown(), ca, schedule.now()) : undefined,
  });
  const { api: bare, stop } = createApi({ clock: schedule, post: network.post, lateMs });
  const api = knowAccounts(waitForTokens(bare, schedule));
  network.serveFrom(api);
  const { store } = api;

  for (const definition of DEFINITIONS)
    store.create(
      "customresourcedefinitions.apiextensions.k8s.io",
      shape.evictions?.older && definition.metadata.name === BUDGETS ? withoutReservations(definition) : definition,
    );
  for (const name of [NAMESPACE, ...(shape.twin ? [TWIN] : [])]) {
    const labels = { "kubernetes.io/metadata.name": name };
    add(store, "Namespace", name, { labels });
  }
  const spec = { type: "ExternalName", externalName: "localhost" };
  const metadata = { name: "rollout-operator", namespace: NAMESPACE };
  store.create("services", { apiVersion: "v1", kind: "Service", metadata, spec });
  const deletion = shape.deletions && (shape.deletions.conditions ? DELETION : withoutConditions(DELETION));
  for (const [resource, configuration] of [
    ...CONFIGURATIONS.map(([resource, configuration]) =>
      shape.evictions?.validating && configuration.metadata.name === EVICTION_WEBHOOK
        ? ([VALIDATING_CONFIGURATIONS, asValidating(configuration)] as const)
        : ([resource, configuration] as const),
    ),
    ...(deletion ? [[DELETION_CONFIGURATIONS, deletion] as const] : []),
  ])
    store.create(resource, registered(configuration));
  if (secret) store.create("secrets", secret);
  if (shape.budget !== undefined) store.create(BUDGETS, budgetObject(shape));
  for (const zone of shape.zones) store.create("statefulsets.apps", zoneObject(shape, zone));
  if (shape.twin) {
    const { zones, budget } = twinObjects(shape);
    store.create(BUDGETS, budget);
    for (const zone of zones) store.create("statefulsets.apps", zone);
  }
  if (shape.mirrored) store.create(TEMPLATES, templateObject(shape));
  if (shape.gate) store.create(GATES, gateObject(shape.gate));
  if (shape.phased) store.create("statefulsets.apps", phasedSet(shape.phased));
  if (shape.phased) store.create(PHASED_ROLLOUTS, phasedObject(shape.phased));

  /** As this cluster's administrators have it. */
  function registered(configuration: Draft): Draft {
    const isOriginal = shape.downscales?.asOriginal === true && /downscale/.test(configuration.metadata.name ?? "");
    const judging = isOriginal ? asOriginal(configuration) : configuration;
    const one = shape.twin ? forBoth(judging) : judging;
    return shape.ignore ? underIgnore(one) : one;
  }

  const environment = {
    ...ENVIRONMENT,
    USE_ZONE_TRACKER: String(shape.tracker),
    ...(shape.twin && { NAMESPACES: `${NAMESPACE},${TWIN}` }),
    ...(shape.certificate && CERTIFICATE_ENVIRONMENT),
    ...(shape.callsPerSecond !== undefined && {
      KUBERNETES_CLIENT_QPS: String(shape.callsPerSecond),
      KUBERNETES_CLIENT_BURST: String(shape.callsPerSecond),
    }),
    ...(shape.nodes && { NODE_UPDATES: "true", NODE_UPDATES_NAMESPACE: NAMESPACE }),
  };
  const fleet =
    shape.nodes &&
    createFleet({ ...on, api, schedule, draw: nodeDraw, shape, nodes: shape.nodes, strikes, startProcess });
  for (let i = 0; i < shape.webhookServers; i++) schedule.after(i, startServer);
  schedule.after(draw.below(MINUTE_MS), startJob);
  if (shape.certificate) schedule.after(draw.between(1, CERTIFICATES_MS), startCertificateJob);

  /** A controller that stands still does nothing of its kind until it goes on. */
  function lateMs(controller: string): number {
    const now = schedule.now();
    const until = stalledUntil.get(controller) ?? 0;
    if (until > now) return until - now;
    if (!strikes("controllerStalls", controller)) return 0;
    const ms = draw.of(STALLS_MS);
    stalledUntil.set(controller, now + ms);
    return ms;
  }

  function startProcess(kind: string): Started {
    const number = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, number);
    const skewMs = shape.skewMs === 0 ? 0 : draw.between(-shape.skewMs, shape.skewMs);
    const process = createProcess(schedule, `${kind}-${number}`, skewMs, shape.suspends);
    processes.add(process);
    on.onProcess(process.name, `starts, its clock ${skewMs} ms ahead`);
    process.onDeath(() => {
      processes.delete(process);
      on.onProcess(process.name, "is killed");
    });
    const machine = {
      ...process.clock,
      connect: () => Promise.resolve(network.connectionOf(process)),
      open: network.openHosts(process),
      write: (line: string) => on.onProcess(process.name, line.trimEnd()),
      generate: (options: CertificateOptions) => {
        const made = generateCertificates(options);
        schedule.waitFor(made);
        return made;
      },
    };
    return {
      process,
      machine,
      env: { ...environment, POD_NAME: process.name },
    };
  }

  function startServer(): void {
    const { process, machine, env } = startProcess("webhooks");
    process.onDeath(() => schedule.after(RESTART_MS, startServer));
    void composeWebhooks({ ...env }, machine).then(({ routes }) => {
      const mount = mountSecret(store, schedule, () => kubeletDelay(draw));
      const server = { process, routes, mount };
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

  /** Daily on a real cluster: what matters is that it runs while the certificate is due. */
  function startCertificateJob(): void {
    schedule.after(CERTIFICATES_MS, startCertificateJob);
    const { process, machine, env } = startProcess("certificates");
    const ended = (what: string): void => {
      processes.delete(process);
      on.onProcess(process.name, what);
    };
    void runJob({ ...env }, { stop: new AbortController().signal, machine }).then(
      (code) => ended(`ends with ${code}`),
      (error: unknown) => ended(`fails: ${messageOf(error)}`),
    );
  }

  function hosts(sent: Sent): HostAnswer | "silent" | undefined {
    const [name = ""] = sent.host.split(".");
    const pod = store.get("pods", NAMESPACE, name);
    return pod ? answerForPod(pod, sent) : prometheus.answer(sent);
  }

  /** A pod with the annotation `sim/refuses` prepares nothing, and says since when it would have. */
  function answerForPod({ metadata: { uid, annotations } }: KubeObject, { method, path }: Sent): HostAnswer {
    const isDelayed = path.endsWith(`/${DELAYED_PATH}`);
    if (annotations?.["sim/refuses"] !== undefined) return { status: 503, body: JSON.stringify({ timestamp: 1 }) };
    if (method !== "POST") (isDelayed ? leaving : prepared).delete(uid);
    else if (!isDelayed) prepared.add(uid);
    else if (!leaving.has(uid)) leaving.set(uid, schedule.now());
    const at = leaving.get(uid);
    const answer = JSON.stringify(at === undefined ? {} : { timestamp: Math.floor(at / 1000) });
    return { status: 200, body: answer };
  }

  return {
    store,
    ask: network.ask,
    disturb: network.disturb,
    admit: (name) => {
      const process = createProcess(schedule, name, 0);
      return { process, connection: network.connectionOf(process) };
    },
    processes: () => [...processes],
    prepared,
    leaving,
    shown: () => [...servers].map(({ mount }) => mount.shown()),
    fleet,
    calm() {
      prometheus.calm();
      fleet?.calm();
    },
    stop: () => {
      for (const process of processes) process.kill();
      stop();
    },
  };
}
