/** Structural schemas: unknown fields pruned, defaults filled in, the rest checked by ajv. */
import { Ajv } from "ajv";
import type { ErrorObject } from "ajv";
import type { Cause } from "../api-error.ts";
import { isFields, plainText } from "../objects.ts";
import type { Draft, Fields } from "../objects.ts";

export interface Schema {
  /** A copy without unknown fields (`dropped` hears their paths) and with defaults; metadata is left alone. */
  conform(object: Draft, dropped?: (path: string) => void): Draft;
  /** What is wrong with it, in the server's words as far as they are short. */
  check(object: Draft): Cause[];
}

export function compileSchema(openApi: Fields): Schema {
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false, logger: false, verbose: true });
  const validate = ajv.compile(toJsonSchema({ ...openApi, properties: { ...properties(openApi), metadata: { type: "object" } } }));
  const { apiVersion: _, kind: __, metadata: ___, ...fields } = properties(openApi);
  const body = { ...openApi, properties: fields };
  return {
    conform: (object, dropped = () => {}) => {
      const { apiVersion, kind, metadata, ...rest } = object;
      const conformed = fill(prune(rest, body, "", dropped), body);
      return { apiVersion, kind, metadata, ...(isFields(conformed) && conformed) };
    },
    check: (object) => (validate(object) ? [] : withoutEchoes(validate.errors ?? []).map(causeOf)),
  };
}

function properties(schema: Fields): Fields {
  return isFields(schema["properties"]) ? schema["properties"] : {};
}

/** The schema of a field, through properties or additionalProperties. */
function below(schema: Fields, key: string): Fields | undefined {
  const own = properties(schema)[key];
  if (isFields(own)) return own;
  return isFields(schema["additionalProperties"]) ? schema["additionalProperties"] : undefined;
}

/** Drops fields that the schema does not know; `dropped` hears their paths. */
function prune(value: unknown, schema: Fields, path: string, dropped: (path: string) => void): unknown {
  if (Array.isArray(value))
    return value.map((item, i) => prune(item, isFields(schema["items"]) ? schema["items"] : {}, `${path}[${i}]`, dropped));
  if (!isFields(value) || schema["x-kubernetes-int-or-string"] === true) return value;
  if (schema["x-kubernetes-embedded-resource"] === true) return value;
  const keepsUnknown = schema["x-kubernetes-preserve-unknown-fields"] === true || schema["additionalProperties"] === true;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, field]) => {
      const at = path ? `${path}.${key}` : key;
      const inner = below(schema, key);
      if (inner) return [[key, prune(field, inner, at, dropped)]];
      if (keepsUnknown) return [[key, field]];
      dropped(at);
      return [];
    }),
  );
}

/** Defaults, outermost first, so that a defaulted object gets its own fields' defaults too; null counts as missing unless allowed. */
function fill(value: unknown, schema: Fields): unknown {
  if (Array.isArray(value)) return value.map((item) => fill(item, isFields(schema["items"]) ? schema["items"] : {}));
  if (!isFields(value)) return value;
  const result: Fields = { ...value };
  for (const [key, inner] of Object.entries(properties(schema))) {
    if (!isFields(inner) || inner["default"] === undefined) continue;
    if (result[key] === undefined || (result[key] === null && inner["nullable"] !== true)) result[key] = structuredClone(inner["default"]);
  }
  for (const [key, field] of Object.entries(result)) {
    const inner = below(schema, key);
    if (inner) result[key] = fill(field, inner);
  }
  return result;
}

/** Kubernetes' extensions in terms that ajv knows. */
function toJsonSchema(schema: unknown): Fields {
  if (!isFields(schema)) return {};
  const { default: _, format: __, example: ___, nullable, ...rest } = schema;
  const result: Fields = { ...rest };
  if (rest["x-kubernetes-int-or-string"] === true) result["type"] = ["integer", "string"];
  if (nullable === true && result["type"] !== undefined) result["type"] = [result["type"], "null"].flat();
  for (const key of ["properties", "patternProperties"]) {
    const group = rest[key];
    if (isFields(group)) result[key] = Object.fromEntries(Object.entries(group).map(([name, inner]) => [name, toJsonSchema(inner)]));
  }
  for (const key of ["items", "additionalProperties", "not"]) if (isFields(rest[key])) result[key] = toJsonSchema(rest[key]);
  for (const key of ["allOf", "anyOf", "oneOf"]) {
    const list = rest[key];
    if (Array.isArray(list)) result[key] = list.map(toJsonSchema);
  }
  // Bounds say exclusive as a flag in OpenAPI v3.0.
  for (const [flag, bound] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (rest[flag] === true) {
      result[flag] = rest[bound];
      delete result[bound];
    } else if (rest[flag] === false) delete result[flag];
  }
  return result;
}

/** A string's bounds are tried in this order and the first that fails is told (kube-openapi's stringValidator). */
const OF_STRINGS = ["maxLength", "minLength", "pattern"];

/** anyOf and oneOf report each branch beside themselves: the branch errors are enough. */
function withoutEchoes(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const direct = errors.filter((error) => !/\/(anyOf|oneOf|allOf)(\/\d+)*$/.test(error.schemaPath));
  const shown = direct.length > 0 ? direct : errors;
  const rank = (error: ErrorObject): number => OF_STRINGS.indexOf(error.keyword);
  const isLater = (error: ErrorObject): boolean =>
    rank(error) > 0 && shown.some((other) => other.instancePath === error.instancePath && rank(other) >= 0 && rank(other) < rank(error));
  return shown.filter((error) => !isLater(error));
}

function causeOf(error: ErrorObject): Cause {
  const field = error.instancePath
    .slice(1)
    .replace(/\/(\d+)/g, "[$1]")
    .replaceAll("/", ".");
  const params: Fields = error.params;
  const quoted = typeof error.data === "string" ? JSON.stringify(error.data) : typeOrValue(error.data);
  const at = (name: string): string => (field ? `${field}.${name}` : name);
  const invalidValue = (text: string): Cause => ({
    reason: "FieldValueInvalid",
    message: `Invalid value: ${quoted}: ${field || "<nil>"} in body ${text}`,
    field: field || "<nil>",
  });
  switch (error.keyword) {
    case "required":
      return { reason: "FieldValueRequired", message: "Required value", field: at(String(params["missingProperty"])) };
    case "enum": {
      const allowed = (Array.isArray(params["allowedValues"]) ? params["allowedValues"] : []).map((one) => JSON.stringify(one)).join(", ");
      return { reason: "FieldValueNotSupported", message: `Unsupported value: ${quoted}: supported values: ${allowed}`, field };
    }
    case "type":
      return {
        reason: "FieldValueTypeInvalid",
        message: `Invalid value: ${JSON.stringify(typeName(error.data))}: ${field} in body must be of type ${String(params["type"])}: ${JSON.stringify(typeName(error.data))}`,
        field,
      };
    case "minimum":
      return invalidValue(`should be greater than or equal to ${String(params["limit"])}`);
    case "maximum":
      return invalidValue(`should be less than or equal to ${String(params["limit"])}`);
    case "pattern":
      return invalidValue(`should match '${String(params["pattern"])}'`);
    case "minLength":
      return invalidValue(`should be at least ${String(params["limit"])} chars long`);
    case "maxLength":
      return { reason: "FieldValueTooLong", message: `Too long: may not be more than ${String(params["limit"])} bytes`, field };
    default:
      return invalidValue(error.message ?? "is wrong");
  }
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (value === null) return "null";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function typeOrValue(value: unknown): string {
  return plainText(value, JSON.stringify(typeName(value)));
}
