/**
 * `runServer` serves handlers by path over TLS, follows the certificate and drains requests; it serves `/ready` and
 * `/metrics` over plain HTTP. `runPlain` serves plain HTTP alone, without draining.
 */
import http, { type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { WebhookSettings } from "../../infra/config/config.ts";
import { RolloutError } from "../../infra/errors.ts";
import type { Log } from "../../infra/log.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";
import { TEXT_TYPE } from "../../infra/metrics/registry.ts";
import { type CertificateFiles, followCertificate } from "./certificate.ts";
import type { FunctionsComposition } from "../compose.ts";
import { AFTERWARDS_MS, CONNECTION_TIMEOUTS, countRequests, drain } from "./drain.ts";
import { type Handler, requestPath } from "./rim.ts";

/**
 * Milliseconds between two reads of the certificate: a new one is in use that long, at most, after the kubelet has
 * replaced its files.
 */
const RELOAD_MS = 5000;

/** The handlers of a server by path, and their dependencies. */
export interface Served extends Pick<FunctionsComposition, "configuration" | "metrics" | "tasks" | "log" | "tracer"> {
  readonly rim: Pick<FunctionsComposition["rim"], "clock">;
  readonly routes: ReadonlyMap<string, Handler>;
}

/** Serves until `stop` fires and all requests are answered; rejects with `BadConfiguration`, or if a port is in use. */
export async function runServer(
  { configuration, rim, routes, metrics, tasks, log, tracer }: Served,
  stop: AbortSignal,
): Promise<void> {
  const { address, port, tlsPort, requestTimeoutMs } = configuration;
  const files = filesOf(configuration);
  const secure = https.createServer(CONNECTION_TIMEOUTS, byPath(routes));
  let isServed = false;
  const health = healthListener(metrics, () => isServed);
  const counted = countRequests(secure);
  const plain = http.createServer(CONNECTION_TIMEOUTS, health);

  await listen(plain, { what: "ready and metrics", port, address, log });
  const following = followCertificate({ files, everyMs: RELOAD_MS, clock: rim.clock, log, signal: stop }, (pair) => {
    secure.setSecureContext(pair);
    ready.resolve();
  });
  const ready = Promise.withResolvers<void>();
  await Promise.race([ready.promise, following]);
  if (!stop.aborted) await listen(secure, { what: "webhooks", port: tlsPort, address, log });
  isServed = secure.listening;
  await following;
  log.info("draining");
  await drain([counted], tasks, { graceMs: requestTimeoutMs + AFTERWARDS_MS, clock: rim.clock });
  // The plain server closes last, and is ready until then: the kubelet also probes a pod that is being deleted, and
  // would report each failed probe.
  plain.close().closeAllConnections();
  await tracer.flush();
  log.info("drained");
}

/** Milliseconds for a request to a plain server, which has no body. */
const PLAIN_MS = 10_000;

export interface Plain {
  readonly configuration: Pick<WebhookSettings, "address" | "port">;
  readonly answer: Handler;
  readonly log: Log;
  /** For the log line. */
  readonly what: string;
}

/**
 * Serves over plain HTTP until `stop` fires, which closes all connections at once: only for answers without state.
 * Rejects if the port is in use. `onListening` gets the server's address.
 */
export async function runPlain(
  { configuration: { address, port }, answer, log, what }: Plain,
  stop: AbortSignal,
  onListening: (url: string) => void = () => {},
): Promise<void> {
  const timeouts = { headersTimeout: PLAIN_MS, requestTimeout: PLAIN_MS };
  const server = http.createServer(timeouts, (request, response) => void answer(request, response));
  await listen(server, { what, port, address, log });
  onListening(`http://${address ?? "localhost"}:${portOf(server)}`);
  if (!stop.aborted) await new Promise((resolve) => stop.addEventListener("abort", resolve, { once: true }));
  server.close().closeAllConnections();
}

interface Listening {
  readonly what: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** All addresses unless given. */
  readonly address: string | undefined;
  readonly log: Log;
}

/** Rejects if the port is in use. */
async function listen(server: Server, { what, port, address: host, log }: Listening): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, ...(host !== undefined && { host }) }, resolve);
  });
  log.info("listening", { what, port: portOf(server) });
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** `/ready` and `/metrics` (§8.1). */
export function healthListener(metrics: Pick<Metrics, "render">, isReady: () => boolean): RequestListener {
  const answer = async ({ url }: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = url?.split("?")[0];
    if (path === "/ready") response.writeHead(isReady() ? 200 : 503).end();
    else if (path === "/metrics") {
      response.writeHead(200, { "content-type": TEXT_TYPE }).end(await metrics.render());
    } else response.writeHead(404).end();
  };
  return (request, response) => void answer(request, response);
}

function byPath(routes: ReadonlyMap<string, Handler>): RequestListener {
  return (request, response) => {
    const handler = routes.get(requestPath(request.url ?? ""));
    if (handler) void handler(request, response);
    else response.writeHead(404, { connection: "close" }).end();
  };
}

function filesOf({ certFile, keyFile }: FunctionsComposition["configuration"]): CertificateFiles {
  if (certFile === undefined || keyFile === undefined)
    throw new RolloutError(
      "BadConfiguration",
      "bad configuration: SERVER_TLS_CERT_FILE and SERVER_TLS_KEY_FILE have to be set to serve the webhooks over TLS",
    );
  return { certFile, keyFile };
}
