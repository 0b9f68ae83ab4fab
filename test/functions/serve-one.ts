/** One webhook behind the rim, over TLS, and registered in the embedded cluster. */
import { createServer, type Server } from "node:https";
import { serveWebhook } from "../../functions/http/admission.ts";
import { createBackgroundTasks } from "../../functions/http/rim.ts";
import { createBodyReader } from "../../functions/http/rim.ts";
import type { Webhook } from "../../functions/http/webhook.ts";
import { systemClock } from "../../infra/clock.ts";
import { createMetrics } from "../../infra/metrics/metrics.ts";
import type { TestContext } from "node:test";
import { certify } from "../certify.ts";
import type { Emulator } from "../emulator/index.ts";
import { listen } from "../loopback.ts";
import { keepingLog } from "./stage.ts";

export async function serve(
  webhook: Webhook,
  identity: { readonly cert: string; readonly key: string },
): Promise<{ readonly server: Server; readonly port: number }> {
  const handler = serveWebhook(webhook, {
    clock: systemClock,
    log: keepingLog().log,
    metrics: createMetrics().webhooks,
    tasks: createBackgroundTasks(),
    readBody: createBodyReader(),
    requestTimeoutMs: 10_000,
  });
  const server = createServer(identity, (request, response) => void handler(request, response));
  return { server, port: await listen(server) };
}

interface Registration {
  readonly type: "Mutating" | "Validating";
  readonly group: string;
  readonly resources: readonly string[];
  readonly operations?: readonly string[];
  readonly timeoutSeconds?: number;
  readonly reinvocationPolicy?: string | undefined;
}

/** Serves a webhook until the test ends, and registers it without conditions. */
export async function register(
  t: TestContext,
  { store }: Emulator,
  webhook: Webhook,
  { type, group, resources, operations = ["CREATE", "UPDATE"], ...more }: Registration,
): Promise<void> {
  const { caPem, certPem, keyPem } = await certify("localhost");
  const { server, port } = await serve(webhook, { cert: certPem, key: keyPem });
  t.after(() => (server.closeAllConnections(), server.close()));
  const name = webhook.name.toLowerCase();
  const clientConfig = {
    url: `https://localhost:${port}${webhook.paths[0]}`,
    caBundle: Buffer.from(caPem).toString("base64"),
  };
  store.create(`${type.toLowerCase()}webhookconfigurations.admissionregistration.k8s.io`, {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: `${type}WebhookConfiguration`,
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.com`,
        admissionReviewVersions: ["v1"],
        sideEffects: "NoneOnDryRun",
        clientConfig,
        rules: [{ apiGroups: [group], apiVersions: ["v1"], operations, resources }],
        failurePolicy: "Fail",
        timeoutSeconds: 10,
        ...more,
      },
    ],
  });
}
