/**
 * The AdmissionReview protocol of all webhooks, behind `rim.ts`: a webhook gets a request and returns its answer.
 *
 *   1. POST with `application/json` and, where an audience is set, a token of the cluster      else 405, 400, 401
 *   2. the body: no larger than a stored object makes it, in time, UTF-8, JSON                 else 413, 408, 400
 *   3. an AdmissionReview of a known version, with a request                                   else 400 with the problem
 *   4. the webhook, until the deadline; a fault becomes the answer of its `onFault`
 *   5. the answer in the version of the review, one log line, the metrics
 */
import type { IncomingMessage } from "node:http";
import { unlessAborted } from "../../infra/deadline.ts";
import { parseGoDuration } from "../../infra/duration.ts";
import { hasCode } from "../../infra/errors.ts";
import type { HttpRefusal } from "./body.ts";
import type { AdmissionRequest, Answer, Webhook } from "./webhook.ts";
import { readReview, type Review, writeReview } from "./review.ts";
import {
  type Exchange,
  type Handler,
  type HttpAnswer,
  refuseRequest,
  requestPath,
  type Rim,
  serveEndpoint,
  TIMEOUT_SHARE,
} from "./rim.ts";
import type { Log, LogLevel } from "../../infra/log.ts";
import type { WebhookMetrics } from "../../infra/metrics/metrics.ts";

interface Received {
  readonly review: Review;
  readonly bytes: number;
}

/** The handlers of webhooks, by their paths. */
export function routeWebhooks(webhooks: readonly Webhook[], rim: Rim): ReadonlyMap<string, Handler> {
  return new Map(
    webhooks.flatMap((webhook) => webhook.paths.map((path) => [path, serveWebhook(webhook, rim)] as const)),
  );
}

/** Serves a webhook over HTTP. */
export function serveWebhook(webhook: Webhook, rim: Rim): Handler {
  const route = routeOf(webhook.paths[0] ?? "");
  // An API server sends the same URL each time.
  let granted = { url: "", ms: Number.POSITIVE_INFINITY };
  const deadlineMs = (url: string): number => {
    if (url !== granted.url) granted = { url, ms: readTimeout(url) };
    return TIMEOUT_SHARE * Math.min(granted.ms, rim.requestTimeoutMs);
  };
  const answer = async (exchange: Exchange): Promise<HttpAnswer> => {
    const received = await receive(exchange.request, rim, exchange.signal);
    if (!("status" in received)) return await judge(webhook, rim, { ...exchange, ...received });
    return { ...refuseRequest(received), log: () => rim.log.warn("request refused", { route, ...received }) };
  };
  return serveEndpoint({ route, deadlineMs, answer }, rim);
}

async function judge(webhook: Webhook, rim: Rim, exchange: Exchange & Received): Promise<HttpAnswer> {
  const { request, signal, deadlineAt, bytes } = exchange;
  const { apiVersion, request: review } = exchange.review;
  const context = { path: requestPath(request.url ?? ""), signal, deadlineAt, log: rim.log };
  const handled = rim.tasks.track(webhook.handle(review, context));
  const verdict = await unlessAborted(handled, signal).then(
    (answer) => ({ answer }),
    (fault: unknown) => ({ answer: webhook.onFault(fault, review), fault }),
  );
  return {
    status: 200,
    text: writeReview(apiVersion, review.uid, verdict.answer),
    headers: { "content-type": "application/json" },
    receivedBytes: bytes,
    attributes: {
      "zonewise.uid": review.uid,
      "k8s.namespace.name": review.namespace,
      "zonewise.name": review.name,
      "zonewise.allowed": verdict.answer.allowed,
      "zonewise.reason": verdict.answer.reason,
    },
    log: (seconds) => logAnswer({ name: webhook.name, request: review, ...verdict, seconds }, rim),
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

interface Answered {
  readonly name: Webhook["name"];
  readonly request: AdmissionRequest;
  readonly answer: Answer;
  /** The error, if the answer is that of `onFault`. */
  readonly fault?: unknown;
  readonly seconds: number;
}

/** Terms of the log lines, as runbooks search for them (§8.7). */
const MESSAGES: Readonly<Record<Webhook["name"], { readonly method: string; readonly subject: string }>> = {
  noDownscale: { method: "admission.NoDownscale()", subject: "downscale" },
  prepareDownscale: { method: "admission.prepareDownscale()", subject: "prepared downscale" },
  podEviction: { method: "admission.PodEviction()", subject: "pod eviction" },
  podDeletion: { method: "admission.PodDeletion()", subject: "pod deletion" },
  phasedDefaults: { method: "admission.PhasedDefaults()", subject: "phased rollout" },
  phasedValidation: { method: "admission.PhasedValidation()", subject: "phased rollout or gate" },
  raisePartition: { method: "admission.RaisePartition()", subject: "template of a phased rollout" },
  zpdbValidation: { method: "admission.ZoneAwarePdbValidatorHandler()", subject: "zone-aware budget" },
};

/** Writes the log line and the metric of one answer. */
function logAnswer(
  { name, request, answer, fault, seconds }: Answered,
  { log, metrics }: { readonly log: Log; readonly metrics: WebhookMetrics },
): void {
  const { allowed, reason = "" } = answer;
  const verdict = allowed ? "allowed" : "denied";
  const { method, subject } = MESSAGES[name];
  metrics.answered({ webhook: name, result: fault === undefined ? verdict : "fault", reason });
  log[levelOf(answer, fault)](`${subject} ${verdict}`, () => ({
    method,
    ...describeRequest(request),
    ...(reason && { reason }),
    ...(answer.code !== undefined && { code: answer.code }),
    ...(answer.message && { message: answer.message }),
    ...(answer.warnings && { warnings: answer.warnings }),
    ...answer.log,
    ...(fault !== undefined && { error: fault }),
    seconds: Math.round(seconds * 1e6) / 1e6,
  }));
}

/** Identifies the request. */
function describeRequest({
  uid,
  kind,
  resource,
  namespace,
  name,
  subResource,
  operation,
  dryRun,
  userInfo,
}: AdmissionRequest) {
  return {
    "object.name": name,
    "object.namespace": namespace,
    "object.resource": resource.resource,
    "request.uid": uid,
    "request.operation": operation,
    "request.subresource": subResource,
    "request.dry_run": dryRun,
    "request.gvk": [kind.group, kind.version, kind.kind].filter((part) => part !== "").join("/"),
    "request.username": userInfo?.username,
  };
}

/** Ordinary answers are below the default level. */
function levelOf({ allowed, message, warnings = [] }: Answer, fault: unknown): LogLevel {
  if (fault !== undefined) return "error";
  if (warnings.length > 0) return "warn";
  return allowed && !message ? "debug" : "info";
}
