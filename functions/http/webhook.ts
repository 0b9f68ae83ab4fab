/** The contract between the rim (admission.ts) and the webhooks. */
import type { Log } from "../../infra/log.ts";

/**
 * The `request` of an AdmissionReview, with the fields that webhooks read. The objects are as the API server sent them.
 */
export interface AdmissionRequest {
  readonly uid: string;
  /** `CREATE`, `UPDATE`, `DELETE` or `CONNECT`; "" if it is missing. */
  readonly operation: string;
  readonly subResource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** False if it is missing. */
  readonly dryRun: boolean;
  readonly kind: Readonly<Record<"group" | "version" | "kind", string>>;
  readonly resource: Readonly<Record<"group" | "version" | "resource", string>>;
  readonly object?: unknown;
  readonly oldObject?: unknown;
  readonly userInfo?: { readonly username?: string; readonly groups?: readonly string[] };
  /** The field manager that the caller names (`options.fieldManager`). */
  readonly fieldManager?: string;
}

export interface Answer {
  readonly allowed: boolean;
  /** `status.code`; without one the API server answers a denial with 400. */
  readonly code?: number;
  /** `status.message`, shown to the user. */
  readonly message?: string;
  readonly warnings?: readonly string[];
  /** JSON Patch (RFC 6902) on the object under admission. */
  readonly patch?: readonly object[];
  /** One word for the log line and the metric. */
  readonly reason?: string;
  /** Further fields of the log line. */
  readonly log?: Readonly<Record<string, unknown>>;
}

export interface RequestContext {
  /** The path of the request, without its query and without a slash at the end. */
  readonly path: string;
  /** Fires at the request's deadline, or when its caller has gone. */
  readonly signal: AbortSignal;
  /** The deadline by `clock.monotonic`, milliseconds. */
  readonly deadlineAt: number;
  readonly log: Log;
}

export interface Webhook {
  readonly name:
    | "noDownscale"
    | "prepareDownscale"
    | "podEviction"
    | "podDeletion"
    | "zpdbValidation"
    | "phasedDefaults"
    | "phasedValidation"
    | "raisePartition";
  /** The paths that the server routes to it; the first is the canonical one. */
  readonly paths: readonly string[];
  readonly handle: (request: AdmissionRequest, context: RequestContext) => Promise<Answer>;
  /** The answer when `handle` rejects or misses the deadline: fails open or closed. Must not throw. */
  readonly onFault: (error: unknown, request: AdmissionRequest) => Answer;
}
