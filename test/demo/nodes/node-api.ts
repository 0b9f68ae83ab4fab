/** The node API of the demonstration: the process that the Deployment runs, over TLS on loopback. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runServer } from "../../../functions/http/server.ts";
import { composeNodeApi } from "../../../functions/nodes/compose.ts";
import { certify } from "../../certify.ts";
import { systemClock } from "../../../infra/clock.ts";
import { freePort } from "../../loopback.ts";
import { HOME } from "./cluster.ts";

export interface DemoNodeApi {
  readonly url: URL;
  readonly caPem: string;
  readonly stop: () => Promise<void>;
}

/** Resolves once it serves; its certificate and the kubeconfig are in `folder`. */
export async function startNodeApi(folder: string): Promise<DemoNodeApi> {
  const { caPem, certPem, keyPem } = await certify("localhost");
  const [SERVER_TLS_CERT_FILE, SERVER_TLS_KEY_FILE] = [join(folder, "tls.crt"), join(folder, "tls.key")];
  await writeFile(SERVER_TLS_CERT_FILE, certPem);
  await writeFile(SERVER_TLS_KEY_FILE, keyPem, { mode: 0o600 });
  const [tlsPort, port] = [await freePort(), await freePort()];
  const env = {
    KUBECONFIG: join(folder, "kubeconfig"),
    KUBERNETES_NAMESPACE: HOME,
    SERVER_TLS_CERT_FILE,
    SERVER_TLS_KEY_FILE,
    SERVER_TLS_PORT: String(tlsPort),
    SERVER_PORT: String(port),
    SERVER_ADDRESS: "127.0.0.1",
    LOG_LEVEL: "error",
  };
  const stop = new AbortController();
  const serving = runServer(await composeNodeApi(env, systemClock), stop.signal);
  while (!(await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined))?.ok) await systemClock.sleep(20);
  return { url: new URL(`https://localhost:${tlsPort}`), caPem, stop: async () => (stop.abort(), await serving) };
}
