/**
 * The rim of every webhook: it does all that HTTP and AdmissionReview require, so that a webhook sees a request and
 * returns an answer.
 *
 *   1. POST with `application/json` and, where an audience is set, a token of the cluster      else 405, 400, 401
 *   2. the body: at most 3 MiB, in time, UTF-8, JSON                                           else 413, 408, 400
 *   3. an AdmissionReview of a known version, with a request                                   else 400 with the problem
 *   4. the webhook, until the deadline; a fault becomes the answer of its `onFault`
 *   5. the answer in the version of the review, one log line, the metrics
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../infra/clock.ts";
import { startDeadline, unlessAborted } from "../../infra/deadline.ts";
import { parseGoDuration } from "../../infra/duration.ts";
import { hasCode } from "../../infra/errors.ts";
import type { Log } from "../../infra/log.ts";
import type { WebhookMetrics } from "../../infra/metrics/webhook-metrics.ts";
import type { ReadBody, HttpRefusal } from "./body.ts";
import { logAnswer } from "./answer-log.ts";
import type { Webhook } from "./webhook.ts";
import { readReview, type Review, writeReview } from "./review.ts";
import type { BackgroundTasks } from "./background-tasks.ts";

export interface Rim {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WebhookMetrics;
  readonly tasks: BackgroundTasks;
  readonly readBody: ReadBody;
  /** Upper bound of a request in milliseconds, also if its caller grants more. */
  readonly requestTimeoutMs: number;
  /** Resolves with true if the Authorization header is valid. Without it, every caller is admitted. */
  readonly authenticate?: ((authorization: string | undefined) => Promise<boolean>) | undefined;
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

interface Received {
  readonly review: Review;
  readonly bytes: number;
}

/** Share of the caller's timeout that a request may use; the rest is for the way back (§8.3). */
const TIMEOUT_SHARE = 0.9;

/** Serves a webhook over HTTP; never rejects. */
export function serveWebhook(webhook: Webhook, rim: Rim): Handler {
  const serve = serveOne(webhook, rim);
  return async (request, response) => {
    try {
      await serve(request, response);
    } catch (error) {
      rim.log.error("unexpected error; the request is answered with 500", { error });
      if (!response.headersSent) refuse(response, { status: 500, message: "internal error" });
    }
  };
}

function serveOne(webhook: Webhook, rim: Rim): Handler {
  const { clock, log, metrics } = rim;
  const route = routeOf(webhook.paths[0] ?? "");
  // An API server sends the same URL each time.
  let granted = { url: "", ms: Number.POSITIVE_INFINITY };
  return async (request, response) => {
    const { url = "" } = request;
    if (url !== granted.url) granted = { url, ms: readTimeout(url) };
    const start = clock.monotonic();
    const seconds = (): number => (clock.monotonic() - start) / 1000;
    const method = request.method ?? "";
    metrics.requestStarted(method, route);
    const deadlineMs = TIMEOUT_SHARE * Math.min(granted.ms, rim.requestTimeoutMs);
    using deadline = startDeadline(deadlineMs, undefined, clock);
    response.on("close", () => {
      if (!response.writableFinished) deadline.cancel();
    });
    const received = await receive(request, rim, deadline.signal);
    let sentBytes: number;
    if ("status" in received) {
      sentBytes = refuse(response, received);
      log.warn("request refused", { route, ...received });
    } else {
      const { apiVersion, request: review } = received.review;
      const handled = rim.tasks.track(
        webhook.handle(review, {
          path: requestPath(url),
          signal: deadline.signal,
          deadlineAt: start + deadlineMs,
          log,
        }),
      );
      const verdict = await unlessAborted(handled, deadline.signal).then(
        (answer) => ({ answer }),
        (fault: unknown) => ({ answer: webhook.onFault(fault, review), fault }),
      );
      sentBytes = send(response, 200, {
        type: "application/json",
        text: writeReview(apiVersion, review.uid, verdict.answer),
      });
      logAnswer({ name: webhook.name, request: review, ...verdict, seconds: seconds() }, rim);
    }
    const receivedBytes = "bytes" in received ? received.bytes : 0;
    metrics.requestDone({ method, route, status: response.statusCode, seconds: seconds(), receivedBytes, sentBytes });
  };
}

/** `/admission/no-downscale` -> `admission_no_downscale` (§9). */
function routeOf(path: string): string {
  return path
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((part) => part !== "")
    .join("_");
}

/**
 * Without the query, and without a slash at the end: a configuration with one has API servers open new connections
 * (§0.4).
 */
export const requestPath = (url: string): string => (url.split("?")[0] ?? "").replace(/\/$/, "");

/** The `timeout` of the query in milliseconds; Infinity without a valid one. */
function readTimeout(url: string): number {
  const text = new URLSearchParams(url.split("?")[1] ?? "").get("timeout") ?? "";
  const ms = parseGoDuration(text);
  return ms !== undefined && ms > 0 ? ms : Number.POSITIVE_INFINITY;
}

async function receive(request: IncomingMessage, rim: Rim, signal: AbortSignal): Promise<Received | HttpRefusal> {
  if (request.method !== "POST") return { status: 405, message: "POST an AdmissionReview" };
  if (request.headers["content-type"] !== "application/json") return { status: 400, message: "wrong content type" };
  try {
    if (rim.authenticate && !(await unlessAborted(isKnown(request, rim), signal)))
      return { status: 401, message: "a bearer token of the cluster for our audience is needed" };
    const body = await rim.readBody(request, signal);
    if ("status" in body) return body;
    const review = readReview(body.value);
    return "problem" in review ? { status: 400, message: review.problem } : { review, bytes: body.bytes };
  } catch (error) {
    return hasCode(error, "Timeout")
      ? { status: 408, message: "the body took too long" }
      : { status: 400, message: "the body was cut off" };
  }
}

async function isKnown({ headers }: IncomingMessage, { authenticate, log }: Rim): Promise<boolean> {
  try {
    return (await authenticate?.(headers.authorization)) ?? true;
  } catch (error) {
    log.error("the caller's token could not be checked; the request is refused", { error });
    return false;
  }
}

/** Closes the connection, as the rest of the body is not read. */
function refuse(response: ServerResponse, { status, message }: HttpRefusal): number {
  response.setHeader("connection", "close");
  if (status === 401) response.setHeader("www-authenticate", "Bearer");
  if (status === 405) response.setHeader("allow", "POST");
  return send(response, status, { type: "text/plain; charset=utf-8", text: `${message}\n` });
}

function send(
  response: ServerResponse,
  status: number,
  { type, text }: { readonly type: string; readonly text: string },
): number {
  const bytes = Buffer.byteLength(text);
  // Node sends a string in one write with the headers, but not a buffer.
  response.writeHead(status, { "content-type": type, "content-length": bytes }).end(text);
  return bytes;
}
