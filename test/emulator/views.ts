/** What a client sends and sees of a stored object, and what it may change: the object itself, its status, or its scale. */
import { badRequest } from "./api-error.ts";
import { withDefaults } from "./defaults.ts";
import { dig, type Draft, fieldsOf, isFields, type KubeObject, numberOf, plainText, put, textOf } from "./objects.ts";
import { apiVersionOf, type Served } from "./registry.ts";
import type { Ask } from "./request.ts";

/** Null means "not set" to the API's types, and so do empty maps and lists of metadata. */
const dropNull = (_key: string, value: unknown): unknown =>
  Array.isArray(value) ? value.filter((one) => one !== null) : (value ?? undefined);
const isFilled = (value: unknown): boolean => typeof value !== "object" || Object.keys(value ?? {}).length > 0;

/** A body as an object of the request's kind, in its namespace. Throws BadRequest when it says otherwise. */
export function draftOf(ask: Ask, body: unknown): Draft {
  const expected = ask.subresource === "scale" ? SCALE : { apiVersion: apiVersionOf(ask.kind), kind: ask.kind.kind };
  if (!isFields(body)) throw badRequest("couldn't get version/kind; json parse error: not an object");
  const fields = fieldsOf(JSON.parse(JSON.stringify(body, dropNull)));
  const { apiVersion, kind } = { ...expected, ...fields };
  if (apiVersion !== expected.apiVersion || kind !== expected.kind)
    throw badRequest(`${plainText(kind)} in version "${plainText(apiVersion)}" cannot be handled as a ${expected.kind}`);
  // Of a deletion the server alone decides.
  const given = Object.entries(fieldsOf(fields["metadata"])).filter(([field, value]) => !field.startsWith("deletion") && isFilled(value));
  const namespace = textOf(dig(fields, "metadata", "namespace")) || ask.namespace;
  if (ask.namespace !== undefined && namespace !== ask.namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  return { ...fields, ...expected, metadata: { ...Object.fromEntries(given), ...(namespace && { namespace }) } };
}

/** In the form that is stored: pruned or defaulted. */
export function conform(kind: Served, object: Draft): Draft {
  return kind.custom ? kind.custom.schema.conform(object) : withDefaults(kind.resource, object);
}

const SCALE = { apiVersion: "autoscaling/v1", kind: "Scale" };
const SCALE_PATHS = { spec: ["spec", "replicas"], status: ["status", "replicas"] };

/** How the client and admission see it. */
export function shown({ kind, subresource }: Ask, object: KubeObject): Draft {
  if (subresource !== "scale") return object;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const custom = kind.custom?.scale;
  const paths = custom ?? SCALE_PATHS;
  const replicas = numberOf(dig(object, ...paths.spec)) ?? 0;
  const labels = Object.entries(fieldsOf(dig(object, "spec", "selector", "matchLabels")));
  const selector = custom ? plainText(dig(object, ...custom.selector)) : labels.map((label) => label.join("=")).join(",");
  return {
    ...SCALE,
    metadata: { name, ...(namespace && { namespace }), uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: numberOf(dig(object, ...paths.status)) ?? 0, ...(selector && { selector }) },
  };
}

/** `current` with what the client wants of it, and may. */
export function merged({ kind, subresource }: Ask, current: KubeObject, wanted: Draft): Draft {
  if (subresource === "scale") return put(current, (kind.custom?.scale ?? SCALE_PATHS).spec, dig(wanted, "spec", "replicas") ?? 0);
  if (subresource === "status") return put(current, ["status"], conform(kind, put(current, ["status"], wanted["status"]))["status"]);
  return conform(kind, kind.subresources.includes("status") ? put(wanted, ["status"], current["status"]) : wanted);
}
