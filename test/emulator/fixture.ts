/** The fixture of the emulator's own tests: a cluster without controllers, and a client. */
import type { TestContext } from "node:test";
import { connect } from "../cluster/conformance/client.ts";
import type { Answer } from "../cluster/conformance/client.ts";
import { startEmulator } from "./index.ts";
import type { EmulatorOptions } from "./index.ts";

/** Stops at the end of the test. */
export async function startFixture(t: TestContext, options: EmulatorOptions = {}) {
  const emulator = await startEmulator({ controllers: false, ...options });
  const client = connect(emulator.kubeconfig());
  t.after(async () => {
    client.close();
    await emulator.stop();
  });
  const call = (method: string, path: string, body?: unknown, type?: string): Promise<Answer> =>
    client.call({ method, path, body, type });
  return { emulator, client, call };
}

export const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
export const MERGE = "application/merge-patch+json";

export function configMap(
  name: string,
  data: Record<string, string> = {},
  labels: Record<string, string> = {},
): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels }, data };
}
