/** Logs and counts an answered review, once each. */
import type { Log, LogLevel } from "../../infra/log.ts";
import type { WebhookMetrics } from "../../infra/metrics/metrics.ts";
import type { AdmissionRequest, Answer, Webhook } from "./webhook.ts";

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
export function logAnswer(
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
