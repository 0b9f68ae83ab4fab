/** Refusals as the API server words them (apimachinery's errors.go). */

export interface Cause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}

export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Record<string, unknown>;
  readonly status: "Success" | "Failure";
  readonly message?: string;
  readonly reason?: string;
  readonly details?: Record<string, unknown>;
  readonly code: number;
}

const CODES = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Expired: 410,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
} as const;
export type Reason = keyof typeof CODES;

/** An answer other than success. `status` is the body to send. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: Status;

  constructor(status: Status) {
    super(status.message ?? status.reason ?? String(status.code));
    this.status = status;
  }
}

export function hasReason(error: unknown, reason: Reason): error is ApiError {
  return error instanceof ApiError && error.status.reason === reason;
}

export function refusal(reason: Reason, message: string, details?: Record<string, unknown>): ApiError {
  return new ApiError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    reason,
    ...(details && { details }),
    code: CODES[reason],
  });
}

/** "<plural>.<group>" apart; the core group is "". */
export function splitResource(resource: string): { plural: string; group: string } {
  const dot = resource.indexOf(".");
  return dot < 0 ? { plural: resource, group: "" } : { plural: resource.slice(0, dot), group: resource.slice(dot + 1) };
}

function detailsOf(resource: string, name: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const { plural, group } = splitResource(resource);
  return { ...(name && { name }), ...(group && { group }), kind: plural, ...more };
}

export const notFound = (resource: string, name: string): ApiError =>
  refusal("NotFound", `${resource} "${name}" not found`, detailsOf(resource, name));

export const alreadyExists = (resource: string, name: string): ApiError =>
  refusal("AlreadyExists", `${resource} "${name}" already exists`, detailsOf(resource, name));

export const conflict = (
  resource: string,
  name: string,
  why = "the object has been modified; please apply your changes to the latest version and try again",
): ApiError => refusal("Conflict", `Operation cannot be fulfilled on ${resource} "${name}": ${why}`, detailsOf(resource, name));

export const forbidden = (resource: string, name: string, why: string): ApiError =>
  refusal("Forbidden", `${resource} "${name}" is forbidden: ${why}`, detailsOf(resource, name));

/** 422 with its causes; one is written alone, several in brackets. `resource` is "<Kind>.<group>" as the real message has it. */
export function invalid(kind: string, group: string, name: string, causes: readonly Cause[]): ApiError {
  const texts = causes.map(({ field, message }) => `${field}: ${message}`);
  const text = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const details = { ...(name && { name }), ...(group && { group }), kind, causes };
  return refusal("Invalid", `${kind}${group && `.${group}`} "${name}" is invalid: ${text}`, details);
}

/** 500 without a reason, as Go errors that nobody gave a status come out. */
export const plainError = (message: string): ApiError =>
  new ApiError({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, code: 500 });

export const notAllowed = (): ApiError =>
  refusal("MethodNotAllowed", "the server does not allow this method on the requested resource", {});

/** A patch that does not fit the object. */
export const unfit = (): ApiError => refusal("Invalid", "the server rejected our request due to an error in our request", {});

export const badRequest = (message: string): ApiError => refusal("BadRequest", message);

/** 429; `seconds` is also sent as Retry-After. */
export const tooMany = (message: string, seconds: number, causes?: readonly Cause[]): ApiError =>
  refusal("TooManyRequests", message, { ...(causes && { causes }), ...(seconds && { retryAfterSeconds: seconds }) });
