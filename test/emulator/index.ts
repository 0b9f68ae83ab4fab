/**
 * The embedded local cluster: an API server over HTTPS, with the controllers and kubelets that Zonewise
 * depends on.
 */
import { createServer } from "node:https";
import { writeFile } from "node:fs/promises";
import type { Connection } from "../../infra/kubernetes/connection.ts";
import { make } from "../builders/objects.ts";
import { certify } from "../certify.ts";
import { listen } from "../loopback.ts";
import { createAdmission } from "./admission/admission.ts";
import type { PostReview } from "./admission/call-webhook.ts";
import type { Api } from "./api.ts";
import { type Clock, systemClock } from "./clock.ts";
import { startControllers } from "./controllers/index.ts";
import { withDefaults } from "./defaults.ts";
import { createFaults } from "./faults.ts";
import { openTo } from "./in-process.ts";
import { put, timestamp } from "./objects.ts";
import { CRDS, createRegistry } from "./registry.ts";
import { serve } from "./server.ts";
import { type Store, createStore } from "./store.ts";
import { ADMIN_TOKEN, createTokens } from "./tokens.ts";

/** Creates two namespaces, and a ready node in each of three zones: node-1 in zone-1 and so on. */
function seedCluster(store: Store, clock: Clock): void {
  for (const name of ["default", "kube-system"])
    store.create("namespaces", withDefaults("namespaces", make("Namespace", name)));
  const time = timestamp(clock.now());
  const ready = {
    type: "Ready",
    status: "True",
    reason: "Simulated",
    lastHeartbeatTime: time,
    lastTransitionTime: time,
  };
  const status = { conditions: [ready], nodeInfo: { kubeletVersion: "" } };
  for (const n of [1, 2, 3]) {
    const metadata = { name: `node-${n}`, labels: { "topology.kubernetes.io/zone": `zone-${n}` } };
    store.create("nodes", { apiVersion: "v1", kind: "Node", metadata, spec: {}, status });
  }
}

/** Works in later turns of the event loop. Returns a function that stops it. */
function startCleanup(store: Store): () => void {
  let timer: NodeJS.Immediate | undefined;
  const emptyNamespaces = (): void => {
    timer = undefined;
    for (const namespace of store.list("namespaces")) {
      if (!namespace.metadata.deletionTimestamp) continue;
      const remaining = store.resources().map((resource) => removeAll(store, resource, namespace.metadata.name));
      if (remaining.every((count) => count === 0))
        store.update("namespaces", put(namespace, ["spec", "finalizers"], []));
    }
  };
  const unsubscribe = store.subscribe(({ type, resource, object }) => {
    if (resource === CRDS && type === "DELETED") setImmediate(() => removeAll(store, object.metadata.name));
    if (resource === "namespaces" || type === "DELETED") timer ??= setImmediate(emptyNamespaces);
  });
  return () => {
    unsubscribe();
    clearImmediate(timer);
  };
}

/** Begins the deletion of all objects that are not terminating yet; returns how many remain. */
function removeAll(store: Store, resource: string, namespace?: string): number {
  for (const { metadata } of store.list(resource, namespace))
    if (!metadata.deletionTimestamp) store.remove(resource, metadata.namespace, metadata.name);
  return store.list(resource, namespace).length;
}

export interface EmulatorOptions {
  readonly clock?: Clock;
  /** False omits the controllers and kubelets: then only requests change objects. */
  readonly controllers?: boolean;
}

export interface ApiOptions extends EmulatorOptions {
  /** Sends reviews to webhooks; over TLS by default. */
  readonly post?: PostReview;
  /** By how many milliseconds a controller is late right now; 0 by default. */
  readonly lateMs?: (controller: string) => number;
}

export type Emulator = Awaited<ReturnType<typeof startEmulator>>;

const HOST = "127.0.0.1";

/** All emulators of a process have the same ones. */
let certificates: ReturnType<typeof certify> | undefined;

/** The API server with its objects and controllers, without a socket: `serve` answers requests. */
export function createApi({ clock = systemClock, controllers = true, post, lateMs }: ApiOptions = {}) {
  const store = createStore(clock);
  const registry = createRegistry(store);
  const faults = createFaults();
  const admission = createAdmission(store, post);
  const api: Api = { store, clock, registry, faults, tokens: createTokens(store, clock), admission };
  const stopCleanup = startCleanup(store);
  seedCluster(store, clock);
  // Objects that controllers create get the API server's defaults, too.
  const defaulting: Store = {
    ...store,
    create: (resource, object) => store.create(resource, withDefaults(resource, object)),
  };
  const stopControllers = controllers ? startControllers(defaulting, clock, lateMs) : () => {};
  return { api, stop: () => (stopControllers(), stopCleanup()) };
}

export async function startEmulator(options: ApiOptions = {}) {
  const { caPem, certPem, keyPem } = await (certificates ??= certify("localhost"));
  const { api, stop } = createApi(options);
  const { store, registry, faults } = api;

  const tls = { key: keyPem, cert: certPem, keepAliveTimeout: 60_000 };
  const server = createServer(tls, (request, response) => void serve(api, request, response));
  const url = `https://${HOST}:${await listen(server, HOST)}`;
  /** With the administrator's token. */
  const kubeconfig = () => ({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "zonewise",
    clusters: [
      {
        name: "zonewise",
        cluster: { server: url, "certificate-authority-data": Buffer.from(caPem).toString("base64") },
      },
    ],
    users: [{ name: "admin", user: { token: ADMIN_TOKEN } }],
    contexts: [{ name: "zonewise", context: { cluster: "zonewise", user: "admin" } }],
  });
  return {
    url,
    caPem,
    token: ADMIN_TOKEN,
    kubeconfig,
    writeKubeconfig: (path: string) => writeFile(path, JSON.stringify(kubeconfig()), { mode: 0o600 }),
    store,
    registry,
    faults,
    /** Its requests take no socket. */
    connection: (): Connection => ({
      server: new URL(url),
      namespace: undefined,
      authorize: async () => ({ headers: { Authorization: `Bearer ${ADMIN_TOKEN}` } }),
      open: openTo(api),
      close: () => {},
    }),
    /** Breaks all connections and cancels all timers. */
    stop: async () => {
      stop();
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}
