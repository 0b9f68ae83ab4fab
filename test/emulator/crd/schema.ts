/** Structural schemas: ajv prunes unknown fields, fills defaults in and checks the rest. */
import { Ajv, type ErrorObject } from "ajv";
import type { Cause } from "../api-error.ts";
import { fieldsOf, isFields, listOf, plainText, type Draft, type Fields } from "../objects.ts";

const OPTIONS = { strict: false, allErrors: true, logger: false, removeAdditional: true, useDefaults: true, verbose: true } as const;

export function compileSchema(openApi: Fields) {
  const header = { apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { "x-kubernetes-preserve-unknown-fields": true } };
  const schema = { ...openApi, properties: { ...header, ...fieldsOf(openApi["properties"]) } };
  const validate = new Ajv({ ...OPTIONS, validateFormats: false }).compile(toJsonSchema(schema));
  /** A copy without unknown fields and with defaults; metadata is left alone. */
  const conform = (object: Draft): Draft => {
    const copy = structuredClone(object);
    validate(copy);
    return { ...copy, metadata: object.metadata };
  };
  /** What is wrong with it; of what our own definitions ask for in the server's words. */
  const check = (object: Draft): Cause[] => (validate(structuredClone(object)) ? [] : (validate.errors ?? []).map(causeOf));
  return { conform, check };
}

/** Kubernetes' extensions in terms that ajv knows: objects are closed unless they say otherwise. */
function toJsonSchema(openApi: Fields): Fields {
  const translate = (_: string, schema: unknown): unknown => {
    if (!isFields(schema)) return schema;
    const isOpen = schema["additionalProperties"] ?? schema["x-kubernetes-preserve-unknown-fields"] ?? !isFields(schema["properties"]);
    const isEither = schema["x-kubernetes-int-or-string"];
    return { ...schema, ...(!isOpen && { additionalProperties: false }), ...(isEither === true && { type: ["integer", "string"] }) };
  };
  return fieldsOf(JSON.parse(JSON.stringify(openApi), translate));
}

const REASONS: Readonly<Record<string, string>> = { required: "Required", enum: "NotSupported", type: "TypeInvalid" };

function causeOf({ keyword, instancePath, data, message = "is wrong", ...error }: ErrorObject): Cause {
  const params: Fields = error.params;
  const path = `${instancePath}${keyword === "required" ? `/${plainText(params["missingProperty"])}` : ""}`.slice(1);
  const field = path.replaceAll(/\/(\d+)/g, "[$1]").replaceAll("/", ".");
  const is = JSON.stringify(typeof data === "object" || keyword === "type" ? typeName(data) : data);
  const allowed = listOf(params["allowedValues"]).map((one) => JSON.stringify(one));
  const wrong = `Invalid value: ${is}: ${field} in body`;
  const sentences: Readonly<Record<string, string>> = {
    required: "Required value",
    enum: `Unsupported value: ${is}: supported values: ${allowed.join(", ")}`,
    type: `${wrong} must be of type ${plainText(params["type"])}: ${is}`,
    minimum: `${wrong} should be greater than or equal to ${plainText(params["limit"])}`,
    maximum: `${wrong} should be less than or equal to ${plainText(params["limit"])}`,
  };
  return { reason: `FieldValue${REASONS[keyword] ?? "Invalid"}`, message: sentences[keyword] ?? `${wrong} ${message}`, field };
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}
