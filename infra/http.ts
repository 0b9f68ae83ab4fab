/**
 * The HTTP client: exchanges over connections of their own, within a deadline and with a bounded answer. Calls to the
 * Kubernetes API use kubernetes/request.ts instead: it keeps connections, and sends the time left with each call.
 */
import http from "node:http";
import https, { type RequestOptions } from "node:https";
import { urlToHttpOptions } from "node:url";
import type { Clock } from "./clock.ts";
import { startDeadline } from "./deadline.ts";
import { messageOf, RolloutError } from "./errors.ts";

/** Opens an HTTP request, as `https.request` does: to `options.protocol`, `host` or `hostname`, `port` and `path`. */
export type OpenRequest = (options: RequestOptions) => http.ClientRequest;

/** The parts of a machine that exchanges need: by default its network and its timers. */
export interface Carrier {
  /** Opens the request in place of the network. */
  readonly open?: OpenRequest | undefined;
  readonly clock?: Clock | undefined;
}

interface OnceOptions extends Omit<RequestOptions, "agent">, Pick<Carrier, "open"> {
  /** Ends the request; also ends the reading of the answer if that gets the same signal. */
  readonly signal: AbortSignal;
  readonly body?: string | undefined;
}

/**
 * Resolves with the head of the answer; the caller reads the body. Rejects with the signal's reason if it fires, or
 * with the error of the connection.
 */
export function requestOnce(url: URL, { body, signal, open, ...options }: OnceOptions): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const send = open ?? (url.protocol === "https:" ? https : http).request;
    const request = send({ ...urlToHttpOptions(url), ...options, signal, agent: false });
    request.on("error", (error) => reject(signal.aborted ? signal.reason : error));
    request.on("response", resolve);
    request.end(body);
  });
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

export interface Redirect {
  readonly status: number;
  readonly from: URL;
  readonly to: URL;
}

export interface ExchangeOptions extends OnceOptions {
  readonly headers?: http.OutgoingHttpHeaders;
  /** Characters of the answer at most; 1 MiB unless given. */
  readonly maxLength?: number;
  /**
   * The changes for the repeated request at a redirect's target; throws if the redirect is not followed. Without it, no
   * redirect is followed.
   */
  readonly onRedirect?: (redirect: Redirect) => Partial<Pick<ExchangeOptions, "method" | "headers" | "body">>;
}

const MAX_LENGTH = 1024 * 1024;
const MAX_REDIRECTS = 10;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Sends the request and reads the whole answer, whatever its status. Rejects as `requestOnce` and `readText`. */
export async function exchange(url: URL, options: ExchangeOptions, followed = 0): Promise<HttpResponse> {
  const { onRedirect, ...once } = options;
  const answer = await exchangeOnce(url, once);
  const { status, headers } = answer;
  if (!onRedirect || headers.location === undefined || !REDIRECTS.has(status)) return answer;
  if (followed === MAX_REDIRECTS) throw new Error(`more than ${MAX_REDIRECTS} redirects`);
  const to = new URL(headers.location, url);
  return await exchange(to, { ...options, ...onRedirect({ status, from: url, to }) }, followed + 1);
}

async function exchangeOnce(
  url: URL,
  { maxLength = MAX_LENGTH, headers, ...options }: Omit<ExchangeOptions, "onRedirect">,
): Promise<HttpResponse> {
  const { method = "GET", body = "", signal } = options;
  const length = method !== "GET" && { "content-length": Buffer.byteLength(body) };
  const answer = await requestOnce(url, { ...options, headers: { ...headers, ...length } });
  const text = await readText(answer, signal, maxLength);
  return { status: answer.statusCode ?? 0, headers: answer.headers, text };
}

const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 3_600_000;

/**
 * Milliseconds until a call may be repeated, by the Retry-After of its answer; undefined without one. At least a second,
 * as 0 would make a loop; at most an hour, as one wrong answer must not stop a caller for days; and up to a quarter
 * longer, so that callers do not come back all at once. Only seconds are
 * read: neither Kubernetes nor the node API sends a date
 * (https://kubernetes.io/docs/concepts/cluster-administration/flow-control/).
 */
export function readRetryAfter(headers: http.IncomingHttpHeaders, random = Math.random): number | undefined {
  const header = headers["retry-after"];
  if (header === undefined || !/^\d{1,9}$/.test(header)) return undefined;
  const ms = Math.min(Math.max(Number(header) * 1000, MIN_RETRY_MS), MAX_RETRY_MS);
  return Math.round(ms * (1 + random() / 4));
}

interface Bounds {
  /** Milliseconds by `clock`; by the system's unless given. */
  readonly timeoutMs: number;
  readonly clock?: Clock | undefined;
  /** The caller gives up when it fires. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs exchanges within one deadline. Rejects with a RolloutError whose message begins with `what`, which must carry no
 * credentials: `Timeout`, `Cancelled`, `ServerError` for an answer that is too long, the code of an error of ours, or
 * `Unreachable`.
 */
export async function withinDeadline<T>(
  what: string,
  { timeoutMs, clock, signal }: Bounds,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using deadline = startDeadline(timeoutMs, signal, clock);
  try {
    return await run(deadline.signal);
  } catch (cause) {
    const { code = "Unreachable", status } = cause instanceof RolloutError ? cause : {};
    const details = { cause, ...(status !== undefined && { status }) };
    throw new RolloutError(code, `${what}: ${describeFailure(cause)}`, details);
  }
}

/** Node.js gives no message if several addresses of a host have failed, only a code. */
function describeFailure(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "no answer";
  return messageOf(error) || code;
}

/** The body as it arrives; rejects with the signal's reason if the signal aborts the read. */
export async function* readChunks(answer: http.IncomingMessage, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of answer) yield chunk as Buffer;
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
}

/** The whole body; rejects as `readChunks`. */
export async function readBytes(answer: http.IncomingMessage, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of readChunks(answer, signal)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/**
 * The whole body as text, `most` characters at most; rejects with the signal's reason if the signal aborts the read.
 */
export async function readText(answer: http.IncomingMessage, signal: AbortSignal, most = Infinity): Promise<string> {
  // Decoded chunk by chunk, without joining buffers at the end: a page of a list has a few MB.
  answer.setEncoding("utf8");
  let text = "";
  try {
    for await (const chunk of answer) {
      text += chunk;
      if (text.length > most) throw new RolloutError("ServerError", `the answer is longer than ${most} characters`);
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
  return text;
}
