/** What went wrong, in one word a caller can branch on. `retryable` of each is stated beside it. */
const RETRYABLE = {
  BadConfiguration: false,
  /** 401: no or wrong credentials. */
  Unauthorized: false,
  /** 403: RBAC, or an admission webhook that said no. */
  Forbidden: false,
  NotFound: false,
  /** 409 on create: the name is taken. */
  AlreadyExists: false,
  /** 409: a precondition (resourceVersion, UID) no longer holds; gather and decide anew. */
  Conflict: true,
  /** 410: the watch or the list's continuation is too old; list again. */
  Expired: true,
  /** 400 and 422: the request itself is wrong. */
  Invalid: false,
  /** 429, or our own token bucket. */
  Throttled: true,
  /** Our deadline passed; a write may or may not have taken effect. */
  Timeout: true,
  /** The caller's signal fired. */
  Cancelled: false,
  /** No answer: refused, reset, DNS, TLS; a write may or may not have taken effect. */
  Unreachable: true,
  /** 5xx. */
  ServerError: true,
  /** We no longer hold the Lease, or cannot be sure: nothing may be written. */
  LeaseLost: false,
  /** A list older than what this process has already seen. */
  StaleRead: true,
} as const;

export type ErrorCode = keyof typeof RETRYABLE;

export interface RolloutErrorDetails {
  readonly cause?: unknown;
  /** HTTP status of the answer, where there was one. */
  readonly status?: number;
  /** Milliseconds the server asked us to wait (Retry-After). */
  readonly retryAfterMs?: number;
}

/** The one error class: `code` says what, `cause` keeps why. */
export class RolloutError extends Error {
  override readonly name = "RolloutError";
  readonly code: ErrorCode;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, details: RolloutErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.retryAfterMs = details.retryAfterMs;
  }

  /** Whether doing the same again, freshly gathered, can succeed. */
  get retryable(): boolean {
    return RETRYABLE[this.code];
  }
}

/** True if `error` is a RolloutError with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is RolloutError {
  return error instanceof RolloutError && codes.includes(error.code);
}

const REFUSALS: readonly ErrorCode[] = ["Forbidden", "Invalid", "Throttled", "Unauthorized"];

/**
 * True if a write was refused as it is, also by a webhook that could not be called: nothing was written. A `Conflict` wrote nothing either,
 * but says that all is to be gathered again; after any other error the write may have taken effect, or may still.
 */
export function isRefused(error: unknown): error is RolloutError {
  return hasCode(error, ...REFUSALS) || (hasCode(error, "ServerError") && error.message.includes("failed calling webhook"));
}

/** For `.catch(absent)`: what is not there is undefined; throws whatever else was the matter. */
export function absent(error: unknown): undefined {
  if (!hasCode(error, "NotFound")) throw error;
}

/** The words of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
