/** Structural schemas: ajv prunes unknown fields, applies defaults and validates the rest. */
import { Ajv, type ErrorObject } from "ajv";
import type { StatusCause } from "../api-error.ts";
import { copyOf, fieldsOf, isFields, listOf, plainText, type Draft, type Fields } from "../objects.ts";
import { compileRules } from "./rules.ts";

const OPTIONS = {
  strict: false,
  allErrors: true,
  logger: false,
  removeAdditional: true,
  useDefaults: true,
  verbose: true,
} as const;

const DATE_TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[-+]\d\d:?\d\d)$/;

const compiled = new Map<string, ReturnType<typeof compile>>();

/** Compiled once for all definitions with this schema: it takes some ten milliseconds. */
export function compileSchema(openApi: Fields): ReturnType<typeof compile> {
  const text = JSON.stringify(openApi);
  const known = compiled.get(text) ?? compile(openApi);
  compiled.set(text, known);
  return known;
}

function compile(openApi: Fields) {
  const header = {
    apiVersion: { type: "string" },
    kind: { type: "string" },
    metadata: { "x-kubernetes-preserve-unknown-fields": true },
  };
  const schema = { ...openApi, properties: { ...header, ...fieldsOf(openApi["properties"]) } };
  const validate = new Ajv({ ...OPTIONS, formats: { "date-time": DATE_TIME } }).compile(toJsonSchema(schema));
  /** Returns a copy without unknown fields and with defaults; metadata stays unchanged. */
  const conform = (object: Draft): Draft => {
    const copy = copyOf(object);
    validate(copy);
    return { ...copy, metadata: object.metadata };
  };
  const checkRules = compileRules(openApi);
  /**
   * Returns the violations; those of keywords that our own definitions use have the server's messages. `current` is the
   * stored object of an update.
   */
  const check = (object: Draft, current?: Draft): StatusCause[] => {
    const causes = validate(copyOf(object)) ? [] : (validate.errors ?? []).map(causeOf);
    if (causes.some(({ reason }) => BLOCKING.has(reason))) return checkRules ? [...causes, NOT_CHECKED] : causes;
    return [...causes, ...(checkRules?.(object, current, "") ?? [])];
  };
  return { conform, check };
}

/** With these violations the rules in CEL are not asked. */
const BLOCKING: ReadonlySet<string> = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);
const NOT_CHECKED: StatusCause = {
  reason: "FieldValueInvalid",
  message:
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
  field: "<nil>",
};

/** Translates Kubernetes' extensions to JSON Schema: objects are closed unless the schema opens them. */
function toJsonSchema(openApi: Fields): Fields {
  const translate = (_: string, schema: unknown): unknown => {
    if (!isFields(schema)) return schema;
    const isOpen =
      schema["additionalProperties"] ??
      schema["x-kubernetes-preserve-unknown-fields"] ??
      !isFields(schema["properties"]);
    const isEither = schema["x-kubernetes-int-or-string"];
    return {
      ...schema,
      ...(!isOpen && { additionalProperties: false }),
      ...(isEither === true && { type: ["integer", "string"] }),
    };
  };
  return fieldsOf(JSON.parse(JSON.stringify(openApi), translate));
}

const REASONS: Readonly<Record<string, string>> = {
  required: "Required",
  enum: "NotSupported",
  type: "TypeInvalid",
  format: "TypeInvalid",
  maxLength: "TooLong",
  maxItems: "TooMany",
  maxProperties: "TooMany",
};

function causeOf({ keyword, instancePath, data, message = "is wrong", ...error }: ErrorObject): StatusCause {
  const params: Fields = error.params;
  const path = `${instancePath}${keyword === "required" ? `/${plainText(params["missingProperty"])}` : ""}`.slice(1);
  const field = path.replaceAll(/\/(\d+)/g, "[$1]").replaceAll("/", ".");
  const actual = JSON.stringify(typeof data === "object" || keyword === "type" ? typeName(data) : data);
  const allowed = listOf(params["allowedValues"]).map((one) => JSON.stringify(one));
  const invalidValue = `Invalid value: ${actual}: ${field} in body`;
  const messages: Readonly<Record<string, string>> = {
    required: "Required value",
    enum: `Unsupported value: ${actual}: supported values: ${allowed.join(", ")}`,
    type: `${invalidValue} must be of type ${plainText(params["type"])}: ${actual}`,
    format: `${invalidValue} must be of type ${plainText(params["format"])}: ${actual}`,
    minimum: `${invalidValue} should be greater than or equal to ${plainText(params["limit"])}`,
    maximum: `${invalidValue} should be less than or equal to ${plainText(params["limit"])}`,
    pattern: `${invalidValue} should match '${plainText(params["pattern"])}'`,
    minLength: `${invalidValue} should be at least ${plainText(params["limit"])} chars long`,
    maxLength: `Too long: may not be more than ${plainText(params["limit"])} bytes`,
    minItems: `Invalid value: ${listOf(data).length}: ${field} in body should have at least ${plainText(params["limit"])} items`,
    maxItems: `Too many: ${listOf(data).length}: must have at most ${plainText(params["limit"])} items`,
  };
  return {
    reason: `FieldValue${REASONS[keyword] ?? "Invalid"}`,
    message: messages[keyword] ?? `${invalidValue} ${message}`,
    field,
  };
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}
