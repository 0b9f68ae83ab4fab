/** The properties of a call that ended with a code. */
interface ErrorFacts {
  /** The same call can succeed later. */
  readonly retryable: boolean;
  /** For a write: nothing was written, or it is unknown, as the write may have taken effect or still may. */
  readonly effect: "none" | "unknown";
  /** The data that was read is outdated: gather and decide again. */
  readonly superseded?: true;
}

/** The error codes, in one word that a caller can branch on, and their properties. */
const CODES = {
  BadConfiguration: { retryable: false, effect: "none" },
  /** 401: no or wrong credentials. */
  Unauthorized: { retryable: false, effect: "none" },
  /** 403: RBAC, or an admission webhook that said no. */
  Forbidden: { retryable: false, effect: "none" },
  NotFound: { retryable: false, effect: "none", superseded: true },
  /** 409 on create: the name is taken. */
  AlreadyExists: { retryable: false, effect: "none", superseded: true },
  /** 409: a precondition (resourceVersion, UID) no longer holds. */
  Conflict: { retryable: true, effect: "none", superseded: true },
  /** 410: the watch or the list's continuation is too old; list again. */
  Expired: { retryable: true, effect: "none", superseded: true },
  /** 400 and 422: the request itself is wrong. */
  Invalid: { retryable: false, effect: "none" },
  /** 429, or a wait for our own token bucket that was too long: the server has executed nothing, or was not called. */
  Throttled: { retryable: true, effect: "none" },
  /**
   * The API server could not call an admission webhook, or could not read its answer: it writes only after all have
   * answered.
   */
  WebhookFailed: { retryable: true, effect: "none" },
  /** Our deadline passed, or the server's (408, 504). */
  Timeout: { retryable: true, effect: "unknown" },
  /** The caller's signal fired, maybe after the request was sent. */
  Cancelled: { retryable: false, effect: "unknown" },
  /** No answer: refused, reset, DNS, TLS. */
  Unreachable: { retryable: true, effect: "unknown" },
  /** 5xx, or an answer that is not JSON. */
  ServerError: { retryable: true, effect: "unknown" },
  /**
   * We no longer hold the Lease, or cannot be sure: nothing may be written. A write that is under way may still take
   * effect.
   */
  LeaseLost: { retryable: false, effect: "unknown" },
  /** A list older than what this process has already seen. */
} as const satisfies Readonly<Record<string, ErrorFacts>>;

export type ErrorCode = keyof typeof CODES;

export interface RolloutErrorDetails {
  readonly cause?: unknown;
  /** HTTP status of the answer, if there was one. */
  readonly status?: number;
  /** Milliseconds that the server asked us to wait (Retry-After). */
  readonly retryAfterMs?: number;
}

/** The only error class: `code` names the error, `cause` keeps its reason. */
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

  /** The facts that follow from the code. */
  get facts(): ErrorFacts {
    return CODES[this.code];
  }
}

/** True if `error` is a RolloutError with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is RolloutError {
  return error instanceof RolloutError && codes.includes(error.code);
}

/** True if the API server has not answered: the next call would wait as long. */
export function isUnanswered(error: unknown): error is RolloutError {
  return hasCode(error, "Timeout", "Unreachable");
}

/** True if the same call can succeed later. */
export function isRetryable(error: unknown): error is RolloutError {
  return error instanceof RolloutError && error.facts.retryable;
}

/**
 * True if the data that was read is outdated, as another writer was faster or the read was stale: gather and decide
 * again.
 */
export function isSuperseded(error: unknown): error is RolloutError {
  return error instanceof RolloutError && error.facts.superseded === true;
}

/** True if the call can succeed later, with newly gathered data. */
export function isTransient(error: unknown): error is RolloutError {
  return isRetryable(error) || isSuperseded(error);
}

/**
 * True if a write that failed like this wrote nothing; after any other error it may have taken effect, or still may.
 */
export function wroteNothing(error: unknown): error is RolloutError {
  return error instanceof RolloutError && error.facts.effect === "none";
}

/**
 * True if a write was refused for its content: nothing was written, and the data that was read may still be current.
 */
export function isRefused(error: unknown): error is RolloutError {
  return wroteNothing(error) && !isSuperseded(error);
}

/** For `.catch(absent)`: resolves a missing object with undefined; throws any other error. */
export function absent(error: unknown): undefined {
  if (!hasCode(error, "NotFound")) throw error;
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
