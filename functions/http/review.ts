/** Reads and writes AdmissionReviews of admission.k8s.io v1 and v1beta1; an answer has the version of its request. */
import * as z from "zod";
import type { AdmissionRequest, Answer } from "./webhook.ts";

const VERSIONS: ReadonlySet<unknown> = new Set(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]);

/** Characters; the API server passes on more. */
const MAX_MESSAGE_LENGTH = 2000;
const MAX_WARNING_LENGTH = 400;

// Go writes null for a field that is not set. Missing fields are filled in afterwards: zod notes each value that it
// transforms in WeakMaps, which keep a review in memory until the next full garbage collection.
const text = z.string().nullish();

const REQUEST = z.object({
  uid: z.string().min(1),
  operation: text,
  subResource: text,
  namespace: text,
  name: text,
  dryRun: z.boolean().nullish(),
  kind: z.object({ group: text, version: text, kind: text }).nullish(),
  resource: z.object({ group: text, version: text, resource: text }).nullish(),
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
  if (!review.success) return undecodable("it is no object");
  const { apiVersion, kind: found, request: sent } = review.data;
  if (found !== "AdmissionReview" || typeof apiVersion !== "string" || !VERSIONS.has(apiVersion))
    return { problem: `Unsupported group version kind: ${name(apiVersion)}, Kind=${name(found)}` };
  const request = REQUEST.safeParse(sent);
  return request.success ? { apiVersion, request: readRequest(request.data) } : undecodable(explain(request.error));
}

type Sent = z.infer<typeof REQUEST>;

function readRequest(sent: Sent): AdmissionRequest {
  const { operation, subResource, namespace, name, kind, resource, userInfo, dryRun, options, ...rest } = sent;
  return {
    ...rest,
    operation: operation ?? "",
    kind: readKind(kind),
    resource: readResource(resource),
    dryRun: dryRun ?? false,
    ...(subResource && { subResource }),
    ...(namespace && { namespace }),
    ...(name && { name }),
    ...(userInfo && { userInfo: readUser(userInfo) }),
    ...(options?.fieldManager && { fieldManager: options.fieldManager }),
  };
}

const readKind = (kind: Sent["kind"]): AdmissionRequest["kind"] => ({
  group: kind?.group ?? "",
  version: kind?.version ?? "",
  kind: kind?.kind ?? "",
});

const readResource = (resource: Sent["resource"]): AdmissionRequest["resource"] => ({
  group: resource?.group ?? "",
  version: resource?.version ?? "",
  resource: resource?.resource ?? "",
});

const readUser = ({ username, groups }: NonNullable<Sent["userInfo"]>): NonNullable<AdmissionRequest["userInfo"]> => ({
  username: username ?? "",
  ...(groups && { groups }),
});

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

export function undecodable(why: string): { readonly problem: string } {
  return { problem: `Request could not be decoded: ${why}` };
}

const name = (value: unknown): string => (typeof value === "string" ? cut(value, 100) : typeof value);

function explain({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `${["request", ...path].join(".")}: ${message}`).join("; ");
}

function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest)}...` : text;
}
