/** The views of a stored object that clients read and write: the object itself, its status, or its scale. */
import { badRequest, invalid } from "./api-error.ts";
import { withDefaults } from "./defaults.ts";
import {
  dig,
  type Draft,
  type Fields,
  fieldsOf,
  isFields,
  type KubeObject,
  numberOf,
  plainText,
  put,
  textOf,
} from "./objects.ts";
import { apiVersionOf, type Served } from "./registry.ts";
import type { ApiRequest } from "./request.ts";

/** The API treats null as "not set", and so empty maps and lists in metadata. */
const dropNull = (_key: string, value: unknown): unknown =>
  Array.isArray(value) ? value.filter((one) => one !== null) : (value ?? undefined);
const isFilled = (value: unknown): boolean => typeof value !== "object" || Object.keys(value ?? {}).length > 0;

/** Reads a body as an object of the request's kind and namespace. Throws BadRequest if it names others. */
export function decodeDraft(request: ApiRequest, body: unknown): Draft {
  const expected =
    request.subresource === "scale" ? SCALE : { apiVersion: apiVersionOf(request.kind), kind: request.kind.kind };
  if (!isFields(body)) throw badRequest("couldn't get version/kind; json parse error: not an object");
  const fields = fieldsOf(JSON.parse(JSON.stringify(body, dropNull)));
  const { apiVersion, kind } = { ...expected, ...fields };
  if (apiVersion !== expected.apiVersion || kind !== expected.kind)
    throw badRequest(
      `${plainText(kind)} in version "${plainText(apiVersion)}" cannot be handled as a ${expected.kind}`,
    );
  checkTexts(request, fields["metadata"]);
  const given = Object.entries(fieldsOf(fields["metadata"])).filter(([, value]) => isFilled(value));
  const namespace = textOf(dig(fields, "metadata", "namespace")) || request.namespace;
  if (request.namespace !== undefined && namespace !== request.namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  return { ...fields, ...expected, metadata: { ...Object.fromEntries(given), ...(namespace && { namespace }) } };
}

/** Throws what the server's decoder says of labels or annotations that are no texts; the words are Go's. */
function checkTexts({ verb }: ApiRequest, metadata: unknown): void {
  for (const field of ["labels", "annotations"])
    for (const [key, value] of Object.entries(fieldsOf(dig(metadata, field)))) {
      if (typeof value === "string") continue;
      const message = `json: cannot unmarshal ${typeof value} into Go struct field ObjectMeta.metadata.${field} of type string: ${key}`;
      if (verb !== "patch") throw badRequest(message);
      throw invalid({ kind: "", group: "" }, "", [{ reason: "FieldValueInvalid", message, field: "patch" }]);
    }
}

/** Returns the object as it is stored: custom resources pruned and defaulted, built-in kinds defaulted. */
export function conform(kind: Served, object: Draft): Draft {
  return kind.custom ? kind.custom.schema.conform(object) : withDefaults(kind.resource, object);
}

const SCALE = { apiVersion: "autoscaling/v1", kind: "Scale" };
const SCALE_PATHS = { spec: ["spec", "replicas"], status: ["status", "replicas"] };

/** The object as the client and admission see it through the requested subresource. */
export function viewOf({ kind, subresource }: ApiRequest, object: KubeObject): Draft {
  if (subresource !== "scale") return object;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const custom = kind.custom?.scale;
  const paths = custom ?? SCALE_PATHS;
  const replicas = numberOf(dig(object, ...paths.spec)) ?? 0;
  const labels = Object.entries(fieldsOf(dig(object, "spec", "selector", "matchLabels")));
  const selector = custom
    ? plainText(dig(object, ...custom.selector))
    : labels.map((label) => label.join("=")).join(",");
  return {
    ...SCALE,
    metadata: { name, ...(namespace && { namespace }), uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: numberOf(dig(object, ...paths.status)) ?? 0, ...(selector && { selector }) },
  };
}

/** Returns `current` with the part of `desired` that the requested subresource may change. */
export function withChange({ kind, subresource }: ApiRequest, current: KubeObject, desired: Draft): Draft {
  if (subresource === "scale")
    return put(current, (kind.custom?.scale ?? SCALE_PATHS).spec, dig(desired, "spec", "replicas") ?? 0);
  if (subresource === "status") {
    const { status } = conform(kind, put(current, ["status"], desired["status"])) as Fields;
    if (kind.custom) return put(current, ["status"], status);
    // The metadata of built-in kinds changes with their status; of pods not the owners.
    const { ownerReferences } = (kind.kind === "Pod" ? current : desired).metadata;
    const { ownerReferences: _, ...metadata } = desired.metadata;
    return { ...current, metadata: { ...metadata, ...(ownerReferences && { ownerReferences }) }, status };
  }
  return conform(kind, kind.subresources.includes("status") ? put(desired, ["status"], current["status"]) : desired);
}
