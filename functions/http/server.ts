/** Serves all webhooks by path over TLS, and `/ready` and `/metrics` over plain HTTP: for clusters without Knative. */
import http, { type RequestListener, type ServerResponse } from "node:http";
import https from "node:https";
import { RolloutError } from "../../infra/errors.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";
import { type Handler, requestPath, serveWebhook } from "./admission.ts";
import { type CertificateFiles, followCertificate } from "./certificate.ts";
import type { Composition } from "../compose.ts";
import { AFTERWARDS_MS, countRequests, drain, IDLE_CONNECTION_MS } from "./drain.ts";
import { listen, portOf } from "./listen.ts";

/**
 * Milliseconds between two reads of the certificate: a new one is in use that long, at most, after the kubelet has
 * replaced its files.
 */
const RELOAD_MS = 1000;

/** What a server serves: handlers by path, and all that its life needs. */
export interface Served extends Pick<Composition, "configuration" | "metrics" | "tasks" | "log"> {
  readonly rim: Pick<Composition["rim"], "clock">;
  readonly routes: ReadonlyMap<string, Handler>;
}

/** Serves all webhooks by their paths, as `runServer` does. */
export async function runWebhooks(composition: Composition, stop: AbortSignal): Promise<void> {
  const { webhooks, rim } = composition;
  const routes = new Map(
    webhooks.flatMap((webhook) => webhook.paths.map((path) => [path, serveWebhook(webhook, rim)] as const)),
  );
  await runServer({ ...composition, routes }, stop);
}

/** Serves until `stop` fires and all requests are answered; rejects with `BadConfiguration`, or if a port is in use. */
export async function runServer(
  { configuration, rim, routes, metrics, tasks, log }: Served,
  stop: AbortSignal,
): Promise<void> {
  const { address, port, tlsPort, requestTimeoutMs } = configuration;
  const files = filesOf(configuration);
  const timeouts = {
    keepAliveTimeout: IDLE_CONNECTION_MS,
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
  };
  const secure = https.createServer(timeouts, byPath(routes));
  let isServed = false;
  const plain = http.createServer(
    timeouts,
    healthListener(metrics, () => isServed),
  );
  const counted = countRequests(secure);

  await listen(plain, port, address);
  log.info("listening", { what: "ready and metrics", port: portOf(plain) });
  const following = followCertificate({ files, everyMs: RELOAD_MS, clock: rim.clock, log, signal: stop }, (pair) => {
    secure.setSecureContext(pair);
    ready.resolve();
  });
  const ready = Promise.withResolvers<void>();
  await Promise.race([ready.promise, following]);
  if (!stop.aborted) await listen(secure, tlsPort, address);
  isServed = secure.listening;
  if (!stop.aborted) log.info("listening", { what: "webhooks", port: portOf(secure) });
  await following;
  log.info("draining");
  await drain([counted], tasks, { graceMs: requestTimeoutMs + AFTERWARDS_MS, clock: rim.clock });
  // Last, and ready to the end: the kubelet probes a pod that is being deleted, and would report each probe that fails.
  plain.close();
  plain.closeAllConnections();
  log.info("drained");
}

/** `/ready` and `/metrics` (§8.1). */
export function healthListener(
  metrics: Pick<Metrics, "render" | "contentType">,
  isReady: () => boolean,
): RequestListener {
  const answer = async (path: string | undefined, response: ServerResponse): Promise<void> => {
    if (path === "/ready") response.writeHead(isReady() ? 200 : 503).end();
    else if (path === "/metrics")
      response.writeHead(200, { "content-type": metrics.contentType }).end(await metrics.render());
    else response.writeHead(404).end();
  };
  return (request, response) => void answer(request.url?.split("?")[0], response);
}

function byPath(routes: ReadonlyMap<string, Handler>): RequestListener {
  return (request, response) => {
    const handler = routes.get(requestPath(request.url ?? ""));
    if (handler) void handler(request, response);
    else response.writeHead(404, { connection: "close" }).end();
  };
}

function filesOf({ certFile, keyFile }: Composition["configuration"]): CertificateFiles {
  if (certFile === undefined || keyFile === undefined)
    throw new RolloutError(
      "BadConfiguration",
      "bad configuration: SERVER_TLS_CERT_FILE and SERVER_TLS_KEY_FILE have to be set to serve the webhooks over TLS",
    );
  return { certFile, keyFile };
}
