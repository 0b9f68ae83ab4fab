/**
 * The AdmissionReview protocol of all webhooks, behind `rim.ts`: a webhook gets a request and returns its answer.
 *
 *   1. POST with `application/json` and, where an audience is set, a token of the cluster      else 405, 400, 401
 *   2. the body: no larger than a stored object makes it, in time, UTF-8, JSON                 else 413, 408, 400
 *   3. an AdmissionReview of a known version, with a request                                   else 400 with the problem
 *   4. the webhook, until the deadline; a fault becomes the answer of its `onFault`
 *   5. the answer in the version of the review, one log line, the metrics
 */
import * as z from "zod";
import type { IncomingMessage } from "node:http";
import { unlessAborted } from "../../infra/deadline.ts";
import { parseGoDuration } from "../../infra/duration.ts";
import { hasCode } from "../../infra/errors.ts";
import {
  type HttpRefusal,
  type Exchange,
  type Handler,
  type HttpAnswer,
  refuseRequest,
  requestPath,
  type Rim,
  serveEndpoint,
  TIMEOUT_SHARE,
  undecodable,
} from "./rim.ts";
import type { AdmissionRequest, Answer, Webhook } from "./webhook.ts";
import type { LogLevel } from "../../infra/log.ts";

interface Received {
  readonly review: Review;
  readonly bytes: number;
}

export function routeWebhooks(webhooks: readonly Webhook[], rim: Rim): ReadonlyMap<string, Handler> {
  return new Map(
    webhooks.flatMap((webhook) => webhook.paths.map((path) => [path, serveWebhook(webhook, rim)] as const)),
  );
}

export function serveWebhook(webhook: Webhook, rim: Rim): Handler {
  const route = routeOf(webhook.paths[0] ?? "");
  const deadlineMs = (url: string): number => TIMEOUT_SHARE * Math.min(readTimeout(url), rim.requestTimeoutMs);
  const answer = async (exchange: Exchange): Promise<HttpAnswer> => {
    const received = await receive(exchange.request, rim, exchange.signal);
    if (!("status" in received)) return await judge(webhook, rim, { ...exchange, ...received });
    return { ...refuseRequest(received), log: () => rim.log.warn("request refused", { route, ...received }) };
  };
  return serveEndpoint({ route, deadlineMs, answer }, rim);
}

interface Verdict {
  readonly answer: Answer;
  /** The error, if the answer is that of `onFault`. */
  readonly fault?: unknown;
}

async function judge(webhook: Webhook, rim: Rim, exchange: Exchange & Received): Promise<HttpAnswer> {
  const { request, signal, deadlineAt, bytes } = exchange;
  const { apiVersion, request: review } = exchange.review;
  const context = { path: requestPath(request.url ?? ""), signal, deadlineAt, log: rim.log };
  const handled = rim.tasks.track(webhook.handle(review, context));
  const verdict: Verdict = await unlessAborted(handled, signal).then(
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

interface Answered extends Verdict {
  readonly name: Webhook["name"];
  readonly request: AdmissionRequest;
  readonly seconds: number;
}

function logAnswer({ name, request, answer, fault, seconds }: Answered, { log, metrics }: Rim): void {
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

const describeRequest = ({ kind, resource, userInfo, ...request }: AdmissionRequest) => ({
  "object.name": request.name,
  "object.namespace": request.namespace,
  "object.resource": resource.resource,
  "request.uid": request.uid,
  "request.operation": request.operation,
  "request.subresource": request.subResource,
  "request.dry_run": request.dryRun,
  "request.gvk": [kind.group, kind.version, kind.kind].filter((part) => part !== "").join("/"),
  "request.username": userInfo?.username,
});

/** Ordinary answers are below the default level. */
function levelOf({ allowed, message, warnings = [] }: Answer, fault: unknown): LogLevel {
  if (fault !== undefined) return "error";
  if (warnings.length > 0) return "warn";
  return allowed && !message ? "debug" : "info";
}

/** An answer has the version of its request. */
const VERSIONS: ReadonlySet<unknown> = new Set(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]);

/** Characters; the API server passes on more. */
const MAX_MESSAGE_LENGTH = 2000;
const MAX_WARNING_LENGTH = 400;

// Go writes null for a field that is not set. Missing fields are filled in afterwards: zod notes each value that it
// transforms in WeakMaps, which keep a review in memory until the next full garbage collection.
const text = z.string().nullish();

const REQUEST = z.object({
  uid: z.string().min(1),
  operation: text,
  subResource: text,
  namespace: text,
  name: text,
  dryRun: z.boolean().nullish(),
  kind: z.object({ group: text, version: text, kind: text }).nullish(),
  resource: z.object({ group: text, version: text, resource: text }).nullish(),
  object: z.unknown().optional(),
  oldObject: z.unknown().optional(),
  userInfo: z.object({ username: text, groups: z.array(z.string()).nullish() }).nullish(),
  options: z.object({ fieldManager: text }).nullish().catch(undefined),
});

const REVIEW = z.object({
  apiVersion: z.unknown().optional(),
  kind: z.unknown().optional(),
  request: z.unknown().optional(),
});

interface Review {
  readonly apiVersion: string;
  readonly request: AdmissionRequest;
}

function readReview(body: unknown): Review | { readonly problem: string } {
  const review = REVIEW.safeParse(body);
  if (!review.success) return { problem: undecodable("it is not an object") };
  const { apiVersion, kind: found, request: sent } = review.data;
  if (found !== "AdmissionReview" || typeof apiVersion !== "string" || !VERSIONS.has(apiVersion))
    return { problem: `Unsupported group version kind: ${name(apiVersion)}, Kind=${name(found)}` };
  const request = REQUEST.safeParse(sent);
  return request.success
    ? { apiVersion, request: readRequest(request.data) }
    : { problem: undecodable(explain(request.error)) };
}

function readRequest(sent: z.infer<typeof REQUEST>): AdmissionRequest {
  const { operation, subResource, namespace, name, kind, resource, userInfo, dryRun, options, ...rest } = sent;
  return {
    ...rest,
    operation: operation ?? "",
    kind: readTexts(["group", "version", "kind"], kind),
    resource: readTexts(["group", "version", "resource"], resource),
    dryRun: dryRun ?? false,
    ...(subResource && { subResource }),
    ...(namespace && { namespace }),
    ...(name && { name }),
    ...(userInfo && { userInfo: readUser(userInfo) }),
    ...(options?.fieldManager && { fieldManager: options.fieldManager }),
  };
}

const readUser = ({ username, groups }: NonNullable<z.infer<typeof REQUEST>["userInfo"]>) => ({
  username: username ?? "",
  ...(groups && { groups }),
});

/** The texts of an object, "" for those that are not set. */
const readTexts = <K extends string>(
  keys: readonly K[],
  sent: Readonly<Partial<Record<K, string | null | undefined>>> | null | undefined,
): Record<K, string> => Object.fromEntries(keys.map((key) => [key, sent?.[key] ?? ""])) as Record<K, string>;

/** The text of the AdmissionReview that carries the answer. */
function writeReview(apiVersion: string, uid: string, { allowed, code, message, warnings, patch }: Answer): string {
  const status = { ...(code !== undefined && { code }), ...(message && { message: cut(message, MAX_MESSAGE_LENGTH) }) };
  return JSON.stringify({
    kind: "AdmissionReview",
    apiVersion,
    response: {
      uid,
      allowed,
      ...(Object.keys(status).length > 0 && { status }),
      ...(warnings && warnings.length > 0 && { warnings: warnings.map((warning) => cut(warning, MAX_WARNING_LENGTH)) }),
      ...(patch && { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") }),
    },
  });
}

const name = (value: unknown): string => (typeof value === "string" ? cut(value, 100) : typeof value);

function explain({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `${["request", ...path].join(".")}: ${message}`).join("; ");
}

function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest)}...` : text;
}
