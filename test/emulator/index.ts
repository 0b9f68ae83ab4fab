/** The embedded local cluster: an API server over HTTPS, with the controllers and kubelets that Zonewise meets. */
import { writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import { generateCertificates } from "../../infra/certs/generate.ts";
import { createAdmission } from "./admission/admission.ts";
import { systemClock } from "./clock.ts";
import type { Clock } from "./clock.ts";
import { startControllers } from "./controllers/index.ts";
import { withDefaults } from "./defaults.ts";
import { createFaults } from "./faults.ts";
import type { Faults } from "./faults.ts";
import { createRegistry } from "./registry.ts";
import { serve } from "./server.ts";
import { createStore } from "./store.ts";
import type { Store } from "./store.ts";
import { ADMIN_TOKEN, createTokens } from "./tokens.ts";
import { runUpkeep, seed } from "./upkeep.ts";

export interface EmulatorOptions {
  readonly clock?: Clock;
  /** For the dice of faults with a probability. */
  readonly faultSeed?: number;
  /** False leaves out the controllers and kubelets: objects then change by requests alone. */
  readonly controllers?: boolean;
}

export interface Emulator {
  readonly url: string;
  readonly caPem: string;
  /** Of the cluster's administrator. */
  readonly token: string;
  /** A kubeconfig as JSON, with token authentication. */
  kubeconfig(): Record<string, unknown>;
  writeKubeconfig(path: string): Promise<void>;
  readonly store: Store;
  readonly faults: Faults;
  /** Cuts all connections and ends all timers. */
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";

export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const { clock = systemClock } = options;
  const store = createStore(clock);
  const registry = createRegistry(store);
  const faults = createFaults(options.faultSeed);
  const tokens = createTokens(store, clock);
  const api = { store, clock, registry, faults, tokens, admission: createAdmission(store) };
  const { caPem, certPem, keyPem } = await generateCertificates({
    dnsNames: ["localhost", "kubernetes.default.svc"],
    ipAddresses: [HOST],
    organization: "zonewise-emulator",
    validityDays: 365,
    // TLS clients check it against the real time, whatever the emulator's clock says.
    now: new Date(),
  });
  const stopUpkeep = runUpkeep(store);
  seed(store, clock);
  // What controllers create gets the defaults that the API server would have given it.
  const defaulting: Store = { ...store, create: (resource, object) => store.create(resource, withDefaults(resource, object)) };
  const stopControllers = options.controllers === false ? () => {} : startControllers(defaulting, clock);

  const server = createServer(
    { key: keyPem, cert: certPem, keepAliveTimeout: 60_000 },
    (request, response) => void serve(api, request, response),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, HOST, resolve);
  });
  const address = server.address();
  const url = `https://${HOST}:${typeof address === "object" && address ? address.port : 0}`;
  const kubeconfig = (): Record<string, unknown> => ({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "zonewise",
    clusters: [{ name: "zonewise", cluster: { server: url, "certificate-authority-data": Buffer.from(caPem).toString("base64") } }],
    users: [{ name: "admin", user: { token: ADMIN_TOKEN } }],
    contexts: [{ name: "zonewise", context: { cluster: "zonewise", user: "admin" } }],
  });

  return {
    url,
    caPem,
    token: ADMIN_TOKEN,
    kubeconfig,
    writeKubeconfig: (path) => writeFile(path, `${JSON.stringify(kubeconfig(), null, 2)}\n`, { mode: 0o600 }),
    store,
    faults,
    stop: async () => {
      stopControllers();
      stopUpkeep();
      faults.cutWatches();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
