/** Structural schemas: ajv prunes unknown fields, fills defaults in and checks the rest. */
import { Ajv } from "ajv";
import type { ErrorObject } from "ajv";
import type { Cause } from "../api-error.ts";
import { isFields, plainText } from "../objects.ts";
import type { Draft, Fields } from "../objects.ts";

export interface Schema {
  /** A copy without unknown fields and with defaults; metadata is left alone. */
  conform(object: Draft): Draft;
  /** What is wrong with it; of what our own definitions ask for in the server's words. */
  check(object: Draft): Cause[];
}

export function compileSchema(openApi: Fields): Schema {
  const ajv = new Ajv({
    strict: false,
    allErrors: true,
    logger: false,
    removeAdditional: true,
    useDefaults: true,
    validateFormats: false,
    verbose: true,
  });
  const { properties, ...rest } = openApi;
  const header = { apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { "x-kubernetes-preserve-unknown-fields": true } };
  const validate = ajv.compile(toJsonSchema({ ...rest, properties: { ...(isFields(properties) && properties), ...header } }));
  const run = (object: Draft): { copy: Draft; errors: readonly ErrorObject[] } => {
    const copy = structuredClone(object);
    return { copy, errors: validate(copy) ? [] : (validate.errors ?? []) };
  };
  return {
    conform: (object) => ({ ...run(object).copy, metadata: object.metadata }),
    check: (object) => run(object).errors.map(causeOf),
  };
}

/** Kubernetes' extensions in terms that ajv knows: objects are closed unless they say otherwise. */
function toJsonSchema(schema: unknown): Fields {
  if (!isFields(schema)) return {};
  const { properties, items, additionalProperties, ...rest } = schema;
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const isClosed = isFields(properties) && additionalProperties === undefined && !isOpen;
  return {
    ...rest,
    ...(schema["x-kubernetes-int-or-string"] === true && { type: ["integer", "string"] }),
    ...(isFields(properties) && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, toJsonSchema(inner)])),
    }),
    ...(items !== undefined && { items: toJsonSchema(items) }),
    ...(isFields(additionalProperties) && { additionalProperties: toJsonSchema(additionalProperties) }),
    ...(isClosed && { additionalProperties: false }),
  };
}

const BOUNDS: Readonly<Record<string, string>> = { minimum: "greater", maximum: "less" };

function causeOf({ instancePath, keyword, params, data, message = "is wrong" }: ErrorObject): Cause {
  const field = instancePath
    .slice(1)
    .replace(/\/(\d+)/g, "[$1]")
    .replaceAll("/", ".");
  const given: Fields = params;
  const value = JSON.stringify(isFields(data) || Array.isArray(data) ? typeName(data) : data);
  const wrong = (reason: string, text: string): Cause => ({ reason, message: text, field });
  if (keyword === "required") {
    const missing = String(given["missingProperty"]);
    return { reason: "FieldValueRequired", message: "Required value", field: field ? `${field}.${missing}` : missing };
  }
  if (keyword === "enum") {
    const allowed = [given["allowedValues"]].flat().map((one) => JSON.stringify(one));
    return wrong("FieldValueNotSupported", `Unsupported value: ${value}: supported values: ${allowed.join(", ")}`);
  }
  if (keyword === "type") {
    const name = JSON.stringify(typeName(data));
    return wrong("FieldValueTypeInvalid", `Invalid value: ${name}: ${field} in body must be of type ${plainText(given["type"])}: ${name}`);
  }
  const bound = BOUNDS[keyword];
  const why = bound ? `should be ${bound} than or equal to ${plainText(given["limit"])}` : message;
  return wrong("FieldValueInvalid", `Invalid value: ${value}: ${field} in body ${why}`);
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (value === null) return "null";
  return Number.isInteger(value) ? "integer" : typeof value;
}
