/** What a webhook is: the contract between the rim (admission.ts) and the handlers. */
import type { Log } from "../../infra/log.ts";

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export interface GroupVersionResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** The `request` of an AdmissionReview, as far as we read it. The objects are as the API server sent them: each handler reads what it needs. */
export interface AdmissionRequest {
  readonly uid: string;
  /** `CREATE`, `UPDATE`, `DELETE` or `CONNECT`; "" if the request does not say. */
  readonly operation: string;
  readonly subResource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** False unless the request says true. */
  readonly dryRun: boolean;
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly object?: unknown;
  readonly oldObject?: unknown;
  readonly userInfo?: { readonly username?: string };
}

export interface Answer {
  readonly allowed: boolean;
  /** `status.code`; without one the API server answers a denial with 400. */
  readonly code?: number;
  /** `status.message`: what the user reads. */
  readonly message?: string;
  readonly warnings?: readonly string[];
  /** JSON Patch (RFC 6902) on the object under admission. */
  readonly patch?: readonly object[];
  /** One word for the log line and the metric. */
  readonly reason?: string;
  /** More for the log line. */
  readonly log?: Readonly<Record<string, unknown>>;
}

export interface Context {
  /** The path that was asked, without its query. */
  readonly path: string;
  /** Fires when the request's time is up, or its caller has gone. */
  readonly signal: AbortSignal;
  /** The same moment by `clock.monotonic`, milliseconds. */
  readonly deadlineAt: number;
  readonly log: Log;
}

export interface Webhook {
  readonly name: "noDownscale" | "prepareDownscale" | "podEviction" | "zpdbValidation";
  /** Where `serve` has it; the first is the canonical one. */
  readonly paths: readonly string[];
  readonly handle: (request: AdmissionRequest, context: Context) => Promise<Answer>;
  /** The webhook's own way to fail, open or closed: asked when `handle` rejects or has not answered by the deadline. Must not throw. */
  readonly onFault: (error: unknown, request: AdmissionRequest) => Answer;
}
