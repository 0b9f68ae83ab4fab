/**
 * `runServer` serves handlers by path over TLS, follows the certificate and drains requests; it serves `/ready` and
 * `/metrics` over plain HTTP. `runPlain` serves plain HTTP alone, without draining.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import http, { type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { Clock } from "../../infra/clock.ts";
import type { WebhookSettings } from "../../infra/config/config.ts";
import { messageOf, RolloutError } from "../../infra/errors.ts";
import type { Log } from "../../infra/log.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";
import { TEXT_TYPE } from "../../infra/metrics/registry.ts";
import type { FunctionsComposition } from "../compose.ts";
import { type BackgroundTasks, type Handler, requestPath, type Rim } from "./rim.ts";

export interface Served extends Pick<FunctionsComposition, "configuration" | "metrics"> {
  readonly rim: Pick<Rim, "clock" | "log" | "tasks" | "tracer">;
  readonly routes: ReadonlyMap<string, Handler>;
}

/** Serves until `stop` fires and all requests are answered; rejects with `BadConfiguration`, or if a port is in use. */
export async function runServer({ configuration, rim, routes, metrics }: Served, stop: AbortSignal): Promise<void> {
  const { clock, log, tasks, tracer } = rim;
  const { address, port, tlsPort, requestTimeoutMs } = configuration;
  const files = filesOf(configuration);
  const secure = https.createServer(CONNECTION_TIMEOUTS, byPath(routes));
  let isServed = false;
  const health = healthListener(metrics, () => isServed);
  const counted = countRequests(secure);
  const plain = http.createServer(CONNECTION_TIMEOUTS, health);

  await listen(plain, { what: "ready and metrics", port, address, log });
  const following = followCertificate({ files, clock, log, signal: stop }, (pair) => {
    secure.setSecureContext(pair);
    ready.resolve();
  });
  const ready = Promise.withResolvers<void>();
  await Promise.race([ready.promise, following]);
  if (!stop.aborted) await listen(secure, { what: "webhooks", port: tlsPort, address, log });
  isServed = secure.listening;
  await following;
  log.info("draining");
  await finishRequests(counted, tasks, { graceMs: requestTimeoutMs + AFTERWARDS_MS, clock });
  // The plain server closes last, and is ready until then: the kubelet also probes a pod that is being deleted, and
  // would report each failed probe.
  plain.close().closeAllConnections();
  await tracer?.flush();
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

/**
 * Milliseconds between two reads of the certificate: a new one is in use that long, at most, after the kubelet has
 * replaced its files.
 */
const RELOAD_MS = 5000;

interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

interface Following {
  readonly files: CertificateFiles;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Calls `onPair` with the pair, and with each new one, until the signal fires: its files are a mounted Secret, which the
 * kubelet replaces at some time after a change. An unusable pair is logged once and ignored.
 */
async function followCertificate(
  { files, clock, log, signal }: Following,
  onPair: (pair: KeyPair) => void,
): Promise<void> {
  let used = "";
  let complaint = "";
  while (!signal.aborted) {
    try {
      const pair = await readPair(files);
      const text = pair.cert + pair.key;
      // Only a new pair is checked: that costs more than all else that a server at rest does.
      if (text !== used) {
        const { validTo: validUntil } = checkPair(pair);
        onPair(pair);
        log.info("certificate loaded", { ...files, validUntil });
        used = text;
      }
      complaint = "";
    } catch (error) {
      const problem = messageOf(error);
      if (problem !== complaint) log.warn("certificate cannot be used", { ...files, problem });
      complaint = problem;
    }
    await clock.sleep(RELOAD_MS, signal);
  }
}

/** Rejects if a file is missing. */
async function readPair({ certFile, keyFile }: CertificateFiles): Promise<KeyPair> {
  const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
  return { cert, key };
}

/** Throws if one is not PEM, or if key and certificate do not match, as one may be older than the other. */
function checkPair({ cert, key }: KeyPair): X509Certificate {
  const certificate = new X509Certificate(cert);
  if (!certificate.checkPrivateKey(createPrivateKey(key))) throw new Error("the key is not the certificate's");
  return certificate;
}

/** Longer than the API server keeps an idle connection (90 s), so that none is closed while a request is on its way. */
const IDLE_CONNECTION_MS = 180_000;
/**
 * Timeouts of a server that API servers call. API servers open more connections than they need at once and keep the
 * rest. Node.js measures the time for a request from the start of the connection, and an API server does not repeat a
 * request that this timeout cuts off. A request that has arrived has its own deadline (rim.ts).
 */
export const CONNECTION_TIMEOUTS = {
  keepAliveTimeout: IDLE_CONNECTION_MS,
  headersTimeout: IDLE_CONNECTION_MS,
  requestTimeout: IDLE_CONNECTION_MS,
};
/** Milliseconds that webhooks may need after their deadline, to cancel preparations and release Leases. */
export const AFTERWARDS_MS = 6000;
/** Milliseconds between two checks whether a request has arrived. */
const CHECK_MS = 50;
/**
 * Milliseconds without a request until idle connections are closed. A request that arrives during the close is lost.
 * After this time, the connections in use have had their last answer, and the others are rarely used.
 */
const QUIET_MS = 3000;

/** A server that can end without cutting off a request: it counts its requests. */
export interface CountedServer {
  readonly server: Server;
  /** All requests so far. */
  readonly requests: () => number;
  readonly unanswered: () => number;
  /** From now on each answer is the last on its connection, and tells the client so. */
  readonly sayGoodbye: () => void;
}

/** Counts the requests of a server from now on. */
export function countRequests(server: Server): CountedServer {
  // No Set: one that changes with each request keeps responses until the next full garbage collection.
  const open: ServerResponse[] = [];
  let requests = 0;
  let isLeaving = false;
  server.prependListener("request", (_request, response: ServerResponse) => {
    requests++;
    open.push(response);
    if (isLeaving) endConnection(response);
    response.once("close", () => open.splice(open.indexOf(response), 1));
  });
  return {
    server,
    requests: () => requests,
    unanswered: () => open.length,
    sayGoodbye() {
      isLeaving = true;
      for (const response of open) endConnection(response);
    },
  };
}

function endConnection(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader("connection", "close");
}

/**
 * Ends connections one answer at a time, and the server once no request has come for `QUIET_MS`. Resolves once all
 * requests are answered and all tasks have ended, or after `graceMs` milliseconds.
 */
export async function finishRequests(
  counted: CountedServer,
  tasks: BackgroundTasks,
  { graceMs, clock }: { readonly graceMs: number; readonly clock: Clock },
): Promise<void> {
  const ended = new AbortController();
  const late = clock.sleep(graceMs, ended.signal);
  const quiet = Promise.all([untilQuiet(counted, ended.signal, clock), tasks.settled()]);
  await Promise.race([quiet, late]);
  ended.abort();
  counted.server.close().closeAllConnections();
}

/** Resolves once no request has come or been open for `QUIET_MS`, or no connection is left. */
async function untilQuiet(counted: CountedServer, ended: AbortSignal, clock: Clock): Promise<void> {
  counted.sayGoodbye();
  let seen = counted.requests();
  for (let quietMs = 0; quietMs < QUIET_MS && !ended.aborted && (await hasConnections(counted.server));) {
    await clock.sleep(CHECK_MS, ended);
    const isQuiet = counted.unanswered() === 0 && counted.requests() === seen;
    quietMs = isQuiet ? quietMs + CHECK_MS : 0;
    seen = counted.requests();
  }
}

const hasConnections = (server: Server): Promise<boolean> =>
  new Promise((resolve) => server.getConnections((error, count) => resolve(error !== null || count > 0)));
