/** Refusals as the API server words them (apimachinery's errors.go). */
import type { Fields } from "./objects.ts";

export type Cause = { readonly reason: string; readonly message: string; readonly field?: string };
/** The body of a refusal. */
export type Status = Fields & { readonly message: string; readonly code: number; readonly reason?: string; readonly details?: Fields };

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
  Timeout: 504,
} as const;
type Reason = keyof typeof CODES;

/** An answer other than success. `status` is the body to send. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: Status;

  constructor(status: Status) {
    super(status.message);
    this.status = { kind: "Status", apiVersion: "v1", metadata: {}, ...status, status: "Failure" };
  }
}

export function hasReason(error: unknown, reason: Reason): error is ApiError {
  return error instanceof ApiError && error.status.reason === reason;
}

export function refusal(reason: Reason, message: string, details?: Fields): ApiError {
  return new ApiError({ message, reason, ...(details && { details }), code: CODES[reason] });
}

/** "<plural>.<group>" apart; the core group is "". */
function splitResource(resource: string): { plural: string; group: string } {
  const [plural = "", ...group] = resource.split(".");
  return { plural, group: group.join(".") };
}

/** A refusal that speaks of one object, and names it in its details. */
function about(reason: Reason, resource: string, name: string, what: string, before = ""): ApiError {
  const { plural, group } = splitResource(resource);
  const details = { ...(name && { name }), ...(group && { group }), kind: plural };
  return refusal(reason, `${before}${resource} "${name}"${what}`, details);
}

export const notFound = (resource: string, name: string): ApiError => about("NotFound", resource, name, " not found");
export const alreadyExists = (resource: string, name: string): ApiError => about("AlreadyExists", resource, name, " already exists");
export const forbidden = (resource: string, name: string, why: string): ApiError =>
  about("Forbidden", resource, name, ` is forbidden: ${why}`);

const MODIFIED = "the object has been modified; please apply your changes to the latest version and try again";
export const conflict = (resource: string, name: string, why = MODIFIED): ApiError =>
  about("Conflict", resource, name, `: ${why}`, "Operation cannot be fulfilled on ");

/** 422 with its causes; one is written alone, several in brackets. */
export function invalid(kind: string, group: string, name: string, causes: readonly Cause[]): ApiError {
  const texts = causes.map(({ field, message }) => `${field}: ${message}`).join(", ");
  const details = { ...(name && { name }), ...(group && { group }), kind, causes };
  const why = causes.length === 1 ? texts : `[${texts}]`;
  return refusal("Invalid", `${kind}${group && `.${group}`} "${name}" is invalid: ${why}`, details);
}

/** 500 without a reason, as Go errors that nobody gave a status come out. */
export const plainError = (message: string): ApiError => new ApiError({ message, code: 500 });
export const badRequest = (message: string): ApiError => refusal("BadRequest", message);
export const notAllowed = (): ApiError =>
  refusal("MethodNotAllowed", "the server does not allow this method on the requested resource", {});
/** A patch that does not fit the object. */
export const unfit = (): ApiError => refusal("Invalid", "the server rejected our request due to an error in our request", {});
/** 429; `seconds` is also sent as Retry-After. */
export const tooMany = (message: string, seconds: number, causes?: readonly Cause[]): ApiError =>
  refusal("TooManyRequests", message, { ...(causes && { causes }), ...(seconds && { retryAfterSeconds: seconds }) });
