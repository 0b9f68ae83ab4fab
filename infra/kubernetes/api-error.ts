/** Converts responses of the API server and network errors to a RolloutError. */
import { decodeStatus } from "./protobuf.ts";
import { type ErrorCode, messageOf, RolloutError } from "../errors.ts";

/** The fields of a failure's metav1.Status that are read. */
export interface Status {
  readonly status: "Failure";
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}

const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  408: "Timeout",
  409: "Conflict",
  410: "Expired",
  429: "Throttled",
  504: "Timeout",
};

/** The error of an unsuccessful response, with the server's message and its Status as the cause. */
export function errorOfStatus(httpStatus: number, body: Buffer | string, retryAfterMs?: number): RolloutError {
  const status = parseStatus(body);
  const said = status?.message ?? ((typeof body === "string" && body.trim().slice(0, 500)) || "no explanation");
  return new RolloutError(
    codeOf(httpStatus, status),
    `${said} (${httpStatus}${status?.reason ? ` ${status.reason}` : ""})`,
    {
      status: httpStatus,
      ...(status && { cause: status }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    },
  );
}

function codeOf(httpStatus: number, status: Status | undefined): ErrorCode {
  if (httpStatus === 409 && status?.reason === "AlreadyExists") return "AlreadyExists";
  if (httpStatus === 500 && isOfWebhook(status)) return "WebhookFailed";
  return CODE_OF_STATUS[httpStatus] ?? (httpStatus >= 400 && httpStatus < 500 ? "Invalid" : "ServerError");
}

/**
 * True if a webhook with failurePolicy Fail did not return a valid AdmissionReview. Its reason is the same as that of
 * any internal error.
 */
function isOfWebhook(status: Status | undefined): boolean {
  return (
    status?.reason === "InternalError" &&
    status.message?.startsWith('Internal error occurred: failed calling webhook "') === true
  );
}

function parseStatus(body: Buffer | string): Status | undefined {
  try {
    const value: unknown = typeof body === "string" ? JSON.parse(body) : decodeStatus(body);
    return isStatus(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

// The API server omits the kind after the `?timeout=`.
export function isStatus(value: unknown): value is Status {
  return typeof value === "object" && value !== null && "status" in value && value.status === "Failure";
}

/**
 * The error of a call; `what` names its verb, resource and object. A failure that is no RolloutError means that no
 * response arrived: `Unreachable`.
 */
export function errorOfCall(what: string, failure: unknown): RolloutError {
  const known =
    failure instanceof RolloutError ? failure : new RolloutError("Unreachable", explain(failure), { cause: failure });
  return new RolloutError(known.code, `${what}: ${known.message}`, {
    ...(known.cause !== undefined && { cause: known.cause }),
    ...(known.status !== undefined && { status: known.status }),
    ...(known.retryAfterMs !== undefined && { retryAfterMs: known.retryAfterMs }),
  });
}

// If every address of a host refuses the connection, the error is an AggregateError without a message.
function explain(failure: unknown): string {
  if (failure instanceof AggregateError && failure.message === "") return failure.errors.map(explain).join("; ");
  return messageOf(failure);
}
