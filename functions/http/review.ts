/** Reads and writes AdmissionReviews of admission.k8s.io v1 and v1beta1; an answer has the version of its request. */
import * as z from "zod";
import type { AdmissionRequest, Answer } from "./webhook.ts";

const VERSIONS: ReadonlySet<unknown> = new Set(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]);

/** Characters; the API server passes on more. */
const MAX_MESSAGE_LENGTH = 2000;
const MAX_WARNING_LENGTH = 400;

// Go writes null for a field that is not set.
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? "");
const kind = z
  .looseObject({ group: text, version: text, kind: text })
  .nullish()
  .transform((value) => value ?? { group: "", version: "", kind: "" });
const resource = z
  .looseObject({ group: text, version: text, resource: text })
  .nullish()
  .transform((value) => value ?? { group: "", version: "", resource: "" });

const REQUEST = z.object({
  uid: z.string().min(1),
  operation: text,
  subResource: text,
  namespace: text,
  name: text,
  dryRun: z.boolean().nullish(),
  kind,
  resource,
  object: z.unknown().optional(),
  oldObject: z.unknown().optional(),
  userInfo: z.object({ username: text, groups: z.array(z.string()).nullish() }).nullish(),
  options: z.object({ fieldManager: text }).nullish().catch(undefined),
});

const REVIEW = z.object({
  apiVersion: z.unknown().optional(),
  kind: z.unknown().optional(),
  request: z.unknown().optional(),
});

export interface Review {
  /** The version of the request, for the answer. */
  readonly apiVersion: string;
  readonly request: AdmissionRequest;
}

/** The review of a parsed body, or its problem. */
export function readReview(body: unknown): Review | { readonly problem: string } {
  const review = REVIEW.safeParse(body);
  if (!review.success) return refuse("it is no object");
  const { apiVersion, kind: found, request: sent } = review.data;
  if (found !== "AdmissionReview" || typeof apiVersion !== "string" || !VERSIONS.has(apiVersion))
    return { problem: `Unsupported group version kind: ${name(apiVersion)}, Kind=${name(found)}` };
  const request = REQUEST.safeParse(sent);
  return request.success ? { apiVersion, request: readRequest(request.data) } : refuse(explain(request.error));
}

function readRequest({
  subResource,
  namespace,
  name,
  userInfo,
  dryRun,
  options,
  ...rest
}: z.infer<typeof REQUEST>): AdmissionRequest {
  return {
    ...rest,
    dryRun: dryRun ?? false,
    ...(subResource && { subResource }),
    ...(namespace && { namespace }),
    ...(name && { name }),
    ...(userInfo && { userInfo: { username: userInfo.username, ...(userInfo.groups && { groups: userInfo.groups }) } }),
    ...(options?.fieldManager && { fieldManager: options.fieldManager }),
  };
}

/** The text of the AdmissionReview that carries the answer. */
export function writeReview(
  apiVersion: string,
  uid: string,
  { allowed, code, message, warnings, patch }: Answer,
): string {
  const status = { ...(code !== undefined && { code }), ...(message && { message: cut(message, MAX_MESSAGE_LENGTH) }) };
  return JSON.stringify({
    kind: "AdmissionReview",
    apiVersion,
    response: {
      uid,
      allowed,
      ...(Object.keys(status).length > 0 && { status }),
      ...(warnings && warnings.length > 0 && { warnings: warnings.map((warning) => cut(warning, MAX_WARNING_LENGTH)) }),
      ...(patch && { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") }),
    },
  });
}

export function refuse(why: string): { readonly problem: string } {
  return { problem: `Request could not be decoded: ${why}` };
}

const name = (value: unknown): string => (typeof value === "string" ? cut(value, 100) : typeof value);

function explain({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `${["request", ...path].join(".")}: ${message}`).join("; ");
}

function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest)}...` : text;
}
