/** Request bodies: parsed, of the kind and in the namespace that the URL says. */
import { badRequest } from "./api-error.ts";
import { fieldsOf, isFields, plainText } from "./objects.ts";
import type { Draft, Fields } from "./objects.ts";
import { apiVersionOf } from "./registry.ts";
import type { Ask } from "./request.ts";

/** Throws BadRequest. */
export function parseBody(ask: Ask): unknown {
  try {
    const body: unknown = JSON.parse(ask.body || "null");
    return body;
  } catch (error) {
    const why = error instanceof Error ? error.message : "";
    throw badRequest(ask.verb === "patch" ? `error decoding patch: ${why}` : `couldn't get version/kind; json parse error: ${why}`);
  }
}

/** The body as an object. Throws BadRequest. */
export function bodyOf(ask: Ask): Fields {
  const body = parseBody(ask);
  if (!isFields(body)) throw badRequest("Request body must be a JSON object");
  return body;
}

/** The body as an object of the request's kind, in its namespace. */
export function draftOf(ask: Ask, fields: Fields, expected = { apiVersion: apiVersionOf(ask.kind), kind: ask.kind.kind }): Draft {
  const { apiVersion = expected.apiVersion, kind = expected.kind, metadata, ...rest } = fields;
  if (apiVersion !== expected.apiVersion || kind !== expected.kind) throw unexpected(plainText(apiVersion), plainText(kind), expected.kind);
  const given = isFields(metadata) ? metadata : {};
  const namespace = given["namespace"] || ask.namespace;
  if (ask.namespace !== undefined && namespace !== ask.namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  const draft = withoutNulls({ ...rest, ...expected, metadata: { ...given, ...(namespace ? { namespace } : {}) } });
  return isFields(draft) ? { ...draft, ...expected, metadata: withoutEmpty(fieldsOf(draft["metadata"])) } : { ...expected, metadata: {} };
}

/** Nulls mean "not set" to the API's types. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([key, field]) => (field === null ? [] : [[key, withoutNulls(field)]])));
}

/** Empty maps and lists of metadata are left out of the wire. */
function withoutEmpty(metadata: Fields): Fields {
  const isEmpty = (value: unknown): boolean => typeof value === "object" && value !== null && Object.keys(value).length === 0;
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => !isEmpty(value)));
}

function unexpected(apiVersion: string, kind: string, expected: string): Error {
  const why =
    kind === expected
      ? `no kind "${kind}" is registered for version "${apiVersion}"`
      : `converting ${kind} to ${expected}: unknown conversion`;
  return badRequest(`${kind} in version "${apiVersion.split("/").at(-1)}" cannot be handled as a ${expected}: ${why}`);
}

/** The options of a write as admission sees them. */
export function optionsOf({ query }: Ask, kind: string): Fields {
  const texts = ["fieldManager", "fieldValidation"].flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : []));
  return {
    kind,
    apiVersion: "meta.k8s.io/v1",
    ...(query.has("dryRun") && { dryRun: query.getAll("dryRun") }),
    ...Object.fromEntries(texts),
  };
}
