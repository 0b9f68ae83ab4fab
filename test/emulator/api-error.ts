/** Error responses with the API server's own messages (apimachinery's errors.go). */
import type { Fields } from "./objects.ts";

export type StatusCause = { readonly reason: string; readonly message: string; readonly field?: string };
/** The body of an error response. */
export type Status = Fields & {
  readonly message: string;
  readonly code: number;
  readonly reason?: string;
  readonly details?: Fields;
};

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

/** A response other than success. `status` is the body to send. */
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

export function statusError(reason: Reason, message: string, details?: Fields): ApiError {
  return new ApiError({ message, reason, ...(details && { details }), code: CODES[reason] });
}

/** Splits "<plural>.<group>"; the core group is "". */
function splitResource(resource: string): { plural: string; group: string } {
  const [plural = "", ...group] = resource.split(".");
  return { plural, group: group.join(".") };
}

/** The details of an error about one object, which name it. */
function detailsOf(resource: string, name: string): Fields {
  const { plural, group } = splitResource(resource);
  return { ...(name && { name }), ...(group && { group }), kind: plural };
}

export const notFound = (resource: string, name: string): ApiError =>
  statusError("NotFound", `${resource} "${name}" not found`, detailsOf(resource, name));
/** Of a kind that is not served. */
export const noSuchResource = (): ApiError =>
  statusError("NotFound", "the server could not find the requested resource", {});
export const alreadyExists = (resource: string, name: string, isTerminating = false): ApiError =>
  statusError(
    "AlreadyExists",
    `${isTerminating ? "object is being deleted: " : ""}${resource} "${name}" already exists`,
    detailsOf(resource, name),
  );
export const forbidden = (resource: string, name: string, explanation: string): ApiError =>
  statusError("Forbidden", `${resource} "${name}" is forbidden: ${explanation}`, detailsOf(resource, name));

const MODIFIED = "the object has been modified; please apply your changes to the latest version and try again";
export const conflict = (resource: string, name: string, explanation = MODIFIED): ApiError =>
  statusError(
    "Conflict",
    `Operation cannot be fulfilled on ${resource} "${name}": ${explanation}`,
    detailsOf(resource, name),
  );

/** 422 with its causes; a single cause is written without brackets, several within. */
export function invalid(
  { kind, group }: { kind: string; group: string },
  name: string,
  causes: readonly StatusCause[],
): ApiError {
  const texts = causes.map(({ field, message }) => `${field}: ${message}`).join(", ");
  const details = { ...(name && { name }), ...(group && { group }), ...(kind && { kind }), causes };
  const explanation = causes.length === 1 ? texts : `[${texts}]`;
  return statusError("Invalid", `${kind}${group && `.${group}`} "${name}" is invalid: ${explanation}`, details);
}

/** 500 without a reason: how the API server returns Go errors that carry no status. */
export const errorWithoutReason = (message: string): ApiError => new ApiError({ message, code: 500 });
export const badRequest = (message: string): ApiError => statusError("BadRequest", message);
export const methodNotAllowed = (): ApiError =>
  statusError("MethodNotAllowed", "the server does not allow this method on the requested resource", {});
/** The patch cannot be applied to the object. */
export const patchRejected = (): ApiError =>
  statusError("Invalid", "the server rejected our request due to an error in our request", {});
/** 429; `seconds` is also sent as Retry-After. */
export const tooManyRequests = (message: string, seconds: number, causes?: readonly StatusCause[]): ApiError =>
  statusError("TooManyRequests", message, {
    ...(causes && { causes }),
    ...(seconds && { retryAfterSeconds: seconds }),
  });
