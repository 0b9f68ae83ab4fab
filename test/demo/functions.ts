/**
 * The webhooks beside the embedded cluster, as the manifests register them: behind a Service, with the certificate that
 * the reconciler makes.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { composeFunctions } from "../../functions/compose.ts";
import { runServer } from "../../functions/http/server.ts";
import type { Clock } from "../../infra/clock.ts";
import { dig, type Draft, numberOf } from "../emulator/objects.ts";
import type { Store } from "../emulator/store.ts";
import type { Emulator } from "../emulator/index.ts";
import { freePort } from "../loopback.ts";

interface DemoFunctionsOptions {
  readonly emulator: Emulator;
  readonly clock: Clock;
  /** Has the kubeconfig, and gets the certificate. */
  readonly folder: string;
  readonly namespace: string;
  readonly stop: AbortSignal;
}

const WEBHOOKS = { "pod-eviction": "mutating", "no-downscale": "validating" } as const;
const MANIFESTS = join(import.meta.dirname, "../../infra/manifests");
const SECRET = "rollout-operator-self-signed-certificate";
const LOOK_MS = 50;

/** Resolves once the API server calls the webhooks; `serving` resolves after `stop`. */
export async function startFunctions({
  emulator,
  clock,
  folder,
  namespace,
  stop,
}: DemoFunctionsOptions): Promise<{ serving: Promise<void> }> {
  const { store } = emulator;
  const [port, ownPort] = [await freePort(), await freePort()];
  const [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")];
  const secret = await until(
    () => store.get("secrets", namespace, SECRET) as { readonly data?: Readonly<Record<string, string>> } | undefined,
  );
  if (!secret) return { serving: Promise.resolve() };
  for (const [file, key] of [
    [certFile, "tls.crt"],
    [keyFile, "tls.key"],
  ] as const)
    await writeFile(file, Buffer.from(secret.data?.[key] ?? "", "base64"), { mode: 0o600 });
  const files = { SERVER_TLS_CERT_FILE: certFile, SERVER_TLS_KEY_FILE: keyFile };
  const server = {
    SERVER_ADDRESS: "127.0.0.1",
    SERVER_TLS_PORT: String(port),
    SERVER_PORT: String(ownPort),
    LOG_LEVEL: "error",
  };
  const env = {
    KUBECONFIG: join(folder, "kubeconfig"),
    KUBERNETES_NAMESPACE: namespace,
    NAMESPACES: "*",
    ...files,
    ...server,
  };
  const serving = runServer(await composeFunctions(env, clock), stop);
  await deployFunctions(store, namespace);
  for (const [name, type] of Object.entries(WEBHOOKS)) {
    const plural = `${type}webhookconfigurations.admissionregistration.k8s.io`;
    const { metadata } = store.create(plural, await readConfiguration(name, namespace, port));
    // The reconciler gives it the CA.
    await until(() => JSON.stringify(store.get(plural, undefined, metadata.name)).includes("caBundle"));
  }
  return { serving };

  /** Undefined after `stop`. */
  async function until<T>(look: () => T | undefined | false): Promise<T | undefined> {
    for (;;) {
      const found = look();
      if (found) return found;
      if (stop.aborted) return undefined;
      await clock.sleep(LOOK_MS, stop);
    }
  }
}

const DEPLOYMENTS = "deployments.apps";

/**
 * The Deployment of the functions, and the Service in front of them: scaled to none, the API server reaches no webhook
 * until it is scaled up again.
 */
export async function deployFunctions(store: Store, namespace: string): Promise<void> {
  const { metadata, ...rest } = parse(await readFile(join(MANIFESTS, "functions/deployment.yaml"), "utf8")) as Draft;
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: "rollout-operator", namespace } };
  store.create("services", { ...service, spec: {} });
  const follow = (): void => {
    const deployment = store.get(DEPLOYMENTS, namespace, metadata.name ?? "");
    const replicas = numberOf(dig(deployment, "spec", "replicas")) ?? 0;
    const spec = replicas > 0 ? { type: "ExternalName", externalName: "127.0.0.1" } : { type: "ClusterIP" };
    if (store.get("services", namespace, service.metadata.name)) store.update("services", { ...service, spec });
    if (!deployment) return;
    const counts = { replicas, readyReplicas: replicas, availableReplicas: replicas, updatedReplicas: replicas };
    const status = { observedGeneration: deployment.metadata["generation"], ...counts };
    store.update(DEPLOYMENTS, { ...deployment, status });
  };
  store.subscribe(({ resource }) => void (resource === DEPLOYMENTS && setImmediate(follow)));
  store.create(DEPLOYMENTS, { ...rest, metadata: { ...metadata, namespace } });
  follow();
}

/**
 * The embedded cluster has no admission policies, so the no-downscale webhook judges whole StatefulSets, too, as the
 * original registers it.
 */
async function readConfiguration(name: string, namespace: string, port: number): Promise<Draft> {
  const text = await readFile(join(MANIFESTS, `webhooks/${name}.yaml`), "utf8");
  const own = text.replaceAll("zonewise", namespace).replace("port: 443", `port: ${port}`);
  return parse(
    own.replace("[statefulsets/scale, deployments/scale, replicasets/scale]", "[statefulsets, statefulsets/scale]"),
  ) as Draft;
}
