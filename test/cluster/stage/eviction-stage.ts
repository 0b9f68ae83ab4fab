/**
 * Webhook server processes behind one Service, and the configuration that sends the namespace's evictions to
 * them.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { certify } from "../../certify.ts";
import { applyRbac, writeKubeconfig } from "./access.ts";
import { startBalancer, type Reviews } from "./balancer.ts";
import type { Admin } from "./client.ts";
import { define } from "./definitions.ts";
import {
  type Configuration,
  createManifest,
  deleteManifest,
  type Manifest,
  renderConfigurations,
  type Registration as Rendered,
  SERVICE,
} from "./manifests.ts";
import { type TestProcess, startEntry } from "./process.ts";
import type { Stage } from "./stage.ts";

/** How the webhook is registered: as in our manifests, as the original's validating webhook, or both. */
export type Registration = "ours" | "original's" | "both";

export interface Webhooks {
  readonly processes: readonly TestProcess[];
  /** The reviews of evictions with the annotation `storm`. */
  readonly reviews: Reviews;
  /** Kills the next process in turn and replaces it; resolves once the new one listens. */
  readonly replaceOne: () => Promise<void>;
  /** Kills one; requests are sent to it for a moment, as by a Service that does not know yet. */
  readonly killOne: () => Promise<void>;
  /** Done at the end of the test, too. */
  readonly close: () => Promise<void>;
}

/** Until a Service no longer sends to a process that is dead. */
const NOTED_MS = 1000;

interface Options {
  readonly registration?: Registration;
  /** The webhooks to register, by the names of their configurations. */
  readonly hooks?: readonly string[];
  /** Webhooks that are registered besides: of an optional folder, or for more resources. */
  readonly optional?: Pick<Rendered, "rendering" | "more"> & { readonly hooks: readonly string[] };
  /** For the processes. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts `count` processes until the end of the test; resolves once all listen and the webhook is registered. */
export async function serveWebhooks(
  stage: Stage,
  count: number,
  { registration = "ours", hooks = ["pod-eviction"], optional, env = {} }: Options = {},
): Promise<Webhooks> {
  const { admin, namespace, folder } = stage;
  const name = `${SERVICE}.${namespace}.svc`;
  const tls = await certify(name);
  const files = { SERVER_TLS_CERT_FILE: join(folder, "tls.crt"), SERVER_TLS_KEY_FILE: join(folder, "tls.key") };
  await Promise.all([
    writeFile(files.SERVER_TLS_CERT_FILE, tls.certPem),
    writeFile(files.SERVER_TLS_KEY_FILE, tls.keyPem, { mode: 0o600 }),
  ]);
  await applyRbac(admin, namespace, "functions");
  const own = {
    PATH: process.env["PATH"] ?? "",
    KUBERNETES_NAMESPACE: namespace,
    KUBECONFIG: await writeKubeconfig(stage, "zonewise-functions"),
    SERVER_ADDRESS: "127.0.0.1",
  };
  const startOne = (): TestProcess => {
    const one = startEntry("functions/serve.ts", { ...own, ...files, ...env, SERVER_TLS_PORT: "0", SERVER_PORT: "0" });
    stage.processes.push(one);
    return one;
  };
  const processes = Array.from({ length: count }, startOne);
  const ports: (number | undefined)[] = await Promise.all(processes.map(portOf));
  const balancer = await startBalancer(tls, name, ports);
  const server = { caPem: tls.caPem, port: balancer.port };
  const configurations: Manifest[] = [];
  const close = async (): Promise<void> => {
    for (const configuration of configurations) await deleteManifest(admin, configuration);
    balancer.close();
    await Promise.all(processes.map((one) => one.kill()));
  };
  stage.defer(close);
  configurations.push(...(await register({ admin, namespace }, { registration, hooks, optional }, server)));
  let replaced = 0;
  return {
    processes,
    reviews: balancer.reviews,
    async replaceOne() {
      const index = replaced++ % count;
      ports[index] = undefined;
      await processes[index]?.kill();
      const next = startOne();
      processes[index] = next;
      ports[index] = await portOf(next);
    },
    async killOne() {
      await processes[0]?.kill();
      setTimeout(() => (ports[0] = undefined), NOTED_MS).unref();
    },
    close,
  };
}

async function portOf(running: TestProcess): Promise<number> {
  const line = /"msg":"listening","what":"webhooks","port":(?<port>\d+)/;
  await running.untilOutput(line);
  return Number(line.exec(running.output())?.groups?.["port"]);
}

async function register(
  { admin, namespace }: { readonly admin: Admin; readonly namespace: string },
  {
    registration,
    hooks,
    optional,
  }: Required<Pick<Options, "registration" | "hooks">> & {
    readonly optional: Options["optional"] | undefined;
  },
  server: { readonly caPem: string; readonly port: number },
): Promise<Manifest[]> {
  await define(admin, "zoneawarepoddisruptionbudgets");
  await admin.call("POST", `/api/v1/namespaces/${namespace}/services`, {
    metadata: { name: SERVICE },
    spec: { type: "ExternalName", externalName: "localhost" },
  });
  const ours = await renderConfigurations(namespace, hooks, server);
  const originals = ours.map(asOriginal);
  const configurations = { ours, "original's": originals, both: [...ours, ...originals] }[registration];
  const more = optional ? await renderConfigurations(namespace, optional.hooks, { ...server, ...optional }) : [];
  for (const configuration of [...configurations, ...more]) await createManifest(admin, configuration);
  return [...configurations, ...more];
}

/** Returns the same webhooks, registered as the original registers them. */
function asOriginal(configuration: Configuration): Configuration {
  const webhooks = configuration.webhooks.map((webhook) => {
    const service = webhook.clientConfig.service as { readonly path: string };
    const path = service.path.replace("mutate-pod-eviction", "pod-eviction");
    return { ...webhook, clientConfig: { ...webhook.clientConfig, service: { ...service, path } } };
  });
  return { ...configuration, kind: "ValidatingWebhookConfiguration", webhooks };
}

/** Creates a budget for a rollout group. */
export async function createBudget(
  { admin, namespace }: Pick<Stage, "admin" | "namespace">,
  group: string,
  spec: object = {},
): Promise<void> {
  const path = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`;
  const body = {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ZoneAwarePodDisruptionBudget",
    metadata: { name: group },
    spec: { selector: { matchLabels: { "rollout-group": group } }, ...spec },
  };
  await admin.call("POST", path, body);
}
