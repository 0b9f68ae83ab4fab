/** One webhook behind the rim, over TLS. */
import { createServer, type Server } from "node:https";
import { serveWebhook } from "../../functions/http/admission.ts";
import { createBackgroundTasks } from "../../functions/http/rim.ts";
import { createBodyReader } from "../../functions/http/rim.ts";
import type { Webhook } from "../../functions/http/webhook.ts";
import { systemClock } from "../../infra/clock.ts";
import { createMetrics } from "../../infra/metrics/metrics.ts";
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
