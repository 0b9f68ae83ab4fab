/** The one log line and the one count of an answered review. */
import type { Log, LogLevel } from "../../infra/log.ts";
import type { WebhookMetrics } from "../../infra/metrics/webhook-metrics.ts";
import type { AdmissionRequest, Answer, Webhook } from "./webhook.ts";

export interface Answered {
  readonly answer: Answer;
  /** Why the handler itself gave none, if so. */
  readonly fault?: unknown;
  readonly seconds: number;
}

/** What runbooks search for (§8.7). */
const MESSAGES: Readonly<Record<Webhook["name"], { readonly method: string; readonly subject: string }>> = {
  noDownscale: { method: "admission.NoDownscale()", subject: "downscale" },
  prepareDownscale: { method: "admission.prepareDownscale()", subject: "prepared downscale" },
  podEviction: { method: "admission.PodEviction()", subject: "pod eviction" },
  zpdbValidation: { method: "admission.ZoneAwarePdbValidatorHandler()", subject: "zone-aware budget" },
};

export function logAnswer(
  name: Webhook["name"],
  request: AdmissionRequest,
  { answer, fault, seconds }: Answered,
  { log, metrics }: { readonly log: Log; readonly metrics: WebhookMetrics },
): void {
  const { allowed, reason = "" } = answer;
  const verdict = allowed ? "allowed" : "denied";
  const { method, subject } = MESSAGES[name];
  metrics.answered({ webhook: name, result: fault === undefined ? verdict : "fault", reason });
  log[levelOf(answer, fault)](`${subject} ${verdict}`, {
    method,
    ...describeRequest(request),
    ...(reason && { reason }),
    ...(answer.code !== undefined && { code: answer.code }),
    ...(answer.message && { message: answer.message }),
    ...(answer.warnings && { warnings: answer.warnings }),
    ...answer.log,
    ...(fault !== undefined && { error: fault }),
    seconds: Math.round(seconds * 1e6) / 1e6,
  });
}

/** What leaves no doubt about which request it was. */
function describeRequest({ uid, kind, resource, namespace, name, subResource, operation, dryRun, userInfo }: AdmissionRequest) {
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

/** Everyday answers stay below the default level. */
function levelOf({ allowed, message, warnings = [] }: Answer, fault: unknown): LogLevel {
  if (fault !== undefined) return "error";
  if (warnings.length > 0) return "warn";
  return allowed && !message ? "debug" : "info";
}
