/**
 * The rim: one HTTP exchange, from the request to its metrics, of webhooks and of the node API alike.
 *
 *   1. the request counts as in flight; its deadline runs, and ends early if the caller disconnects
 *   2. the endpoint reads the body and answers; an unexpected error is logged, and answered with 500
 *   3. the answer in one write, the endpoint's log line, the metrics
 *
 * TLS, certificates and draining: `server.ts`.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Clock } from "../../infra/clock.ts";
import { startDeadline, unlessAborted } from "../../infra/deadline.ts";
import type { Log } from "../../infra/log.ts";
import type { WebhookMetrics } from "../../infra/metrics/metrics.ts";
import { type Attributes, NO_TRACER, type Span, type Tracer } from "../../infra/tracing/tracer.ts";
import { isUtf8 } from "node:buffer";
import { messageOf } from "../../infra/errors.ts";

export interface Rim {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WebhookMetrics;
  /** Without one, nothing is recorded. */
  readonly tracer?: Tracer;
  readonly tasks: BackgroundTasks;
  readonly readBody: ReadBody;
  /** Upper bound of a request in milliseconds, also if its caller grants more. */
  readonly requestTimeoutMs: number;
  /** Resolves with true if the Authorization header is valid. Without it, every caller is admitted. */
  readonly authenticate?: ((authorization: string | undefined) => Promise<boolean>) | undefined;
}

/** Never rejects. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Share of a request's time that its work may use; the rest is for sending the answer (§8.3). */
export const TIMEOUT_SHARE = 0.9;

export interface Exchange {
  readonly request: IncomingMessage;
  /** Fires at the deadline, or when the caller has gone. */
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
  /** The deadline by `clock.monotonic`, milliseconds. */
  readonly deadlineAt: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
  /** Its Content-Length is added. */
  readonly headers: OutgoingHttpHeaders;
  readonly receivedBytes?: number | undefined;
  /** Attributes of its span. */
  readonly attributes?: Attributes;
  /** Writes the log line, once the answer is sent. */
  readonly log?: (seconds: number) => void;
}

interface Endpoint {
  /** For the metrics. */
  readonly route: string;
  readonly deadlineMs: (url: string) => number;
  readonly answer: (exchange: Exchange) => Promise<HttpAnswer>;
}

export function serveEndpoint(endpoint: Endpoint, rim: Pick<Rim, "clock" | "log" | "metrics" | "tracer">): Handler {
  const { tracer = NO_TRACER } = rim;
  return async (request, response) => {
    try {
      await tracer.span(
        () => spanOf(endpoint, request),
        (span) => serveOne(endpoint, rim, { request, response, span }),
      );
    } catch (error) {
      rim.log.error("unexpected error; the request is answered with 500", { error });
      if (!response.headersSent) send(response, refuseRequest({ status: 500, message: "internal error" }));
    }
  };
}

const spanOf = ({ route }: Endpoint, { headers: caller, method = "" }: IncomingMessage) => ({
  name: `${method} ${route}`,
  kind: "server" as const,
  attributes: { "http.request.method": method, "http.route": route },
  caller,
});

interface Served {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly span: Span;
}

async function serveOne(
  { route, deadlineMs, answer }: Endpoint,
  { clock, metrics }: Pick<Rim, "clock" | "metrics">,
  { request, response, span }: Served,
): Promise<void> {
  const start = clock.monotonic();
  const seconds = (): number => (clock.monotonic() - start) / 1000;
  const { method = "", url = "" } = request;
  metrics.requestStarted(method, route);
  const ms = deadlineMs(url);
  using deadline = startDeadline(ms, undefined, clock);
  response.on("close", () => {
    if (!response.writableFinished) deadline.cancel();
  });
  const answered = await answer({ request, signal: deadline.signal, deadlineMs: ms, deadlineAt: start + ms });
  const sentBytes = send(response, answered);
  answered.log?.(seconds());
  const { status, receivedBytes = 0, attributes } = answered;
  span.set({ "http.response.status_code": status, ...attributes });
  metrics.requestDone({ method, route, status, seconds: seconds(), receivedBytes, sentBytes });
}

/** An answer that closes the connection, as the rest of the body is not read. By default it says `message` as text. */
export function refuseRequest({ status, message }: HttpRefusal, json?: object): HttpAnswer {
  return {
    status,
    text: json === undefined ? `${message}\n` : JSON.stringify(json),
    headers: {
      connection: "close",
      "content-type": json === undefined ? "text/plain; charset=utf-8" : "application/json",
      ...(status === 401 && { "www-authenticate": "Bearer" }),
      ...(status === 405 && { allow: "POST" }),
    },
  };
}

function send(response: ServerResponse, { status, text, headers }: HttpAnswer): number {
  const bytes = Buffer.byteLength(text);
  // Node sends a string in one write with the headers, but not a buffer.
  response.writeHead(status, { ...headers, "content-length": bytes }).end(text);
  return bytes;
}

/**
 * The path without the query and without a trailing slash: a trailing slash in the webhook configuration makes API
 * servers open new connections (§0.4).
 */
export function requestPath(url: string): string {
  const query = url.indexOf("?");
  const path = query < 0 ? url : url.slice(0, query);
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

/**
 * Work that continues after an answer, such as the cancellation of a preparation: the process ends only when it is done.
 */
export interface BackgroundTasks {
  readonly track: <T>(task: Promise<T>) => Promise<T>;
  /** Resolves once every tracked task has ended. */
  readonly settled: () => Promise<void>;
}

/**
 * Counts tasks instead of keeping them: a Set that changes with each request keeps what it held until the next full
 * garbage collection, as V8 links the tables that it outgrows.
 */
export function createBackgroundTasks(): BackgroundTasks {
  const now = { running: 0, waiting: [] as (() => void)[] };
  const ended = (): void => {
    if (--now.running === 0) for (const resume of now.waiting.splice(0)) resume();
  };
  return {
    track: (task) => {
      now.running++;
      task.then(ended, ended);
      return task;
    },
    settled: async () => {
      while (now.running > 0) await new Promise<void>((resolve) => now.waiting.push(resolve));
    },
  };
}

const MIB = 1024 * 1024;
/** Bytes of the largest object that etcd stores, unless it is configured otherwise. */
const ETCD_BYTES = 1.5 * MIB;
/**
 * Bytes of a review: the object twice, before and after, of which JSON may write each byte as six (`\u003c`), and what
 * the API server says of the request.
 */
export const MAX_BODY = 2 * 6 * ETCD_BYTES + MIB / 4;
/**
 * Values and keys of a review. In stored objects each takes 4 bytes on average, or more: the densest are the
 * `managedFields` of variables with short names, with 5. Forged bodies could block the process and fill its memory: an
 * object with one key takes 200 bytes there.
 */
export const MAX_VALUES = (2 * ETCD_BYTES) / 4;

/** An HTTP answer without an AdmissionReview. */
export interface HttpRefusal {
  readonly status: number;
  readonly message: string;
}

interface Body {
  readonly value: unknown;
  readonly bytes: number;
}

/** Bytes of all bodies that are still being received: slow senders must not fill the memory. */
const MAX_BUFFERED = 48 * MIB;

const TOO_MUCH: HttpRefusal = { status: 429, message: "too many bodies at once, try again" };

/**
 * Reads the whole body; any that is too large, not UTF-8 or not JSON is refused. Rejects when `signal` fires or the
 * caller disconnects.
 */
type ReadBody = (request: IncomingMessage, signal: AbortSignal) => Promise<Body | HttpRefusal>;

/** A reader of bodies that bounds them together: one for a process. `largest` is the bound of a body, in bytes. */
export function createBodyReader(largest = MAX_BODY): ReadBody {
  let buffered = 0;
  const tooLarge: HttpRefusal = { status: 413, message: `the body is larger than ${largest} bytes` };
  return async (request, signal) => {
    if (Number(request.headers["content-length"] ?? 0) > largest) return tooLarge;
    let own = 0;
    const take = (bytes: number): HttpRefusal | undefined => {
      own += bytes;
      buffered += bytes;
      if (own > largest) return tooLarge;
      return buffered > MAX_BUFFERED ? TOO_MUCH : undefined;
    };
    try {
      const raw = await unlessAborted(collect(request, take), signal);
      return "status" in raw ? raw : parse(raw);
    } finally {
      buffered -= own;
    }
  };
}

/** Uses events: leaving an async iterator early would destroy the connection before the answer is sent. */
function collect(
  request: IncomingMessage,
  take: (bytes: number) => HttpRefusal | undefined,
): Promise<Buffer | HttpRefusal> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let refusal: HttpRefusal | undefined;
    request.on("data", (chunk: Buffer) => {
      refusal ??= take(chunk.length);
      if (!refusal) return void chunks.push(chunk);
      chunks.length = 0;
      resolve(refusal);
    });
    request.on("end", () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.on("error", reject);
    request.on("close", () => {
      if (!request.complete) reject(new Error("the caller disconnected"));
    });
  });
}

/** The message about a body that cannot be understood. */
export const undecodable = (why: string): string => `Request could not be decoded: ${why}`;

function parse(raw: Buffer): Body | HttpRefusal {
  if (!isUtf8(raw)) return { status: 400, message: undecodable("it is not UTF-8") };
  // Each value takes a byte or more.
  if (raw.length > MAX_VALUES && hasMoreValues(raw, MAX_VALUES))
    return { status: 413, message: `the body has more than ${MAX_VALUES} values and keys` };
  try {
    return { value: JSON.parse(raw.toString()), bytes: raw.length };
  } catch (error) {
    return { status: 400, message: undecodable(messageOf(error)) };
  }
}

const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACE] = [...Buffer.from(String.raw`"\,:[{`)];

/** Counts the commas and the beginnings of objects and lists, one before each value or key, and the colons of keys. */
function hasMoreValues(json: Buffer, most: number): boolean {
  let values = 0;
  let isText = false;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i];
    if (byte === QUOTE) isText = !isText;
    else if (isText && byte === BACKSLASH) i++;
    else if (!isText && (byte === COMMA || byte === COLON || byte === BRACKET || byte === BRACE)) values++;
  }
  return values > most;
}
