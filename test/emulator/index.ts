/** The embedded local cluster: an API server over HTTPS, with the controllers and kubelets that Zonewise meets. */
import { writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import { generateCertificates } from "../../infra/certs/generate.ts";
import { listen } from "../loopback.ts";
import { createAdmission } from "./admission/admission.ts";
import { type Clock, systemClock } from "./clock.ts";
import { startControllers } from "./controllers/index.ts";
import { withDefaults } from "./defaults.ts";
import { createFaults } from "./faults.ts";
import { createRegistry } from "./registry.ts";
import { serve } from "./server.ts";
import { createStore, type Store } from "./store.ts";
import { ADMIN_TOKEN, createTokens } from "./tokens.ts";
import { runUpkeep, seed } from "./upkeep.ts";

export interface EmulatorOptions {
  readonly clock?: Clock;
  /** For the dice of faults with a probability. */
  readonly faultSeed?: number;
  /** False leaves out the controllers and kubelets: objects then change by requests alone. */
  readonly controllers?: boolean;
}

export type Emulator = Awaited<ReturnType<typeof startEmulator>>;

const HOST = "127.0.0.1";

export async function startEmulator({ clock = systemClock, faultSeed, controllers = true }: EmulatorOptions = {}) {
  const store = createStore(clock);
  const registry = createRegistry(store);
  const faults = createFaults(faultSeed);
  const api = { store, clock, registry, faults, tokens: createTokens(store, clock), admission: createAdmission(store) };
  const { caPem, certPem, keyPem } = await generateCertificates({
    dnsNames: ["localhost"],
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
  const stopControllers = controllers ? startControllers(defaulting, clock) : () => {};

  const tls = { key: keyPem, cert: certPem, keepAliveTimeout: 60_000 };
  const server = createServer(tls, (request, response) => void serve(api, request, response));
  const url = `https://${HOST}:${await listen(server, HOST)}`;
  /** As JSON, with the administrator's token. */
  const kubeconfig = () => ({
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
    writeKubeconfig: (path: string) => writeFile(path, JSON.stringify(kubeconfig()), { mode: 0o600 }),
    store,
    faults,
    /** Cuts all connections and ends all timers. */
    stop: async () => {
      stopControllers();
      stopUpkeep();
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}
