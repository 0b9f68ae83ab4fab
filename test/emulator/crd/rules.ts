/**
 * Rules in CEL (x-kubernetes-validations) of a structural schema. Source: apiextensions-apiserver
 * pkg/apiserver/schema/cel/validation.go.
 */
import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../api-error.ts";
import { celOver, isCelError } from "../cel.ts";
import { type Fields, fieldsOf, isFields, listOf, plainText } from "../objects.ts";

const compile = celOver(["self", "oldSelf"]);

interface Rule {
  /** Its value, or an error of CEL. */
  readonly evaluate: (self: unknown, oldSelf: unknown) => unknown;
  /** It compares with the value before, so that it holds for a new one. */
  readonly isTransition: boolean;
  readonly explain: (self: unknown, oldSelf: unknown) => string;
  readonly text: string;
  /** Below the value, with a dot; "" for the value itself. */
  readonly fieldPath: string;
  readonly reason: string;
}

/** The violations below `path`; without `old` the value is new. An unchanged value may stay as it is (KEP-4008). */
type CheckRules = (value: unknown, old: unknown, path: string) => StatusCause[];

/** Undefined for a schema without rules. */
export function compileRules(schema: Fields): CheckRules | undefined {
  const rules = listOf(schema["x-kubernetes-validations"]).map((rule) => compileRule(fieldsOf(rule)));
  const properties = Object.entries(fieldsOf(schema["properties"])).flatMap(([name, below]) => {
    const check = compileRules(fieldsOf(below));
    return check ? [[name, check] as const] : [];
  });
  const items = isFields(schema["items"]) ? compileRules(schema["items"]) : undefined;
  const others = isFields(schema["additionalProperties"]) ? compileRules(schema["additionalProperties"]) : undefined;
  if (rules.length === 0 && properties.length === 0 && !items && !others && !schema["x-kubernetes-list-type"])
    return undefined;
  const type = plainText(schema["type"]);
  const keys = listOf(schema["x-kubernetes-list-map-keys"]).map(String);
  const isSet = ["set", "map"].includes(plainText(schema["x-kubernetes-list-type"]));
  return (value, old, path) => {
    const at = (name: string): string => (path ? `${path}.${name}` : name);
    const below = (name: string): [unknown, unknown] => [fieldsOf(value)[name], fieldsOf(old)[name]];
    const entryBefore = (item: unknown): unknown =>
      keys.length === 0
        ? undefined
        : listOf(old).find((one) => keys.every((key) => fieldsOf(one)[key] === fieldsOf(item)[key]));
    return [
      ...rules.flatMap((rule) => violation(rule, { value, old, path, type })),
      ...(isSet ? repeats(listOf(value), keys, path) : []),
      ...properties.flatMap(([name, check]) =>
        fieldsOf(value)[name] === undefined ? [] : check(...below(name), at(name)),
      ),
      ...(items ? listOf(value).flatMap((item, index) => items(item, entryBefore(item), `${path}[${index}]`)) : []),
      ...(others ? Object.keys(fieldsOf(value)).flatMap((name) => others(...below(name), `${path}[${name}]`)) : []),
    ];
  };
}

/** Entries of a set or map that are there twice. */
function repeats(entries: readonly unknown[], keys: readonly string[], path: string): StatusCause[] {
  const identityOf = (entry: unknown): unknown =>
    keys.length === 0 ? entry : Object.fromEntries(keys.map((key) => [key, fieldsOf(entry)[key]]));
  const texts = entries.map((entry) => JSON.stringify(identityOf(entry)));
  return texts.flatMap((text, index) =>
    texts.indexOf(text) < index
      ? [{ reason: "FieldValueDuplicate", message: `Duplicate value: ${text}`, field: `${path}[${index}]` }]
      : [],
  );
}

function compileRule({ rule, message, messageExpression, fieldPath, reason }: Fields): Rule {
  const text = plainText(rule);
  const evaluate = expression(text);
  const say = messageExpression === undefined ? undefined : expression(plainText(messageExpression));
  const otherwise = plainText(message) || `failed rule: ${text}`;
  return {
    evaluate,
    isTransition: /\boldSelf\b/.test(text),
    explain: (self, oldSelf) => {
      const said = say?.(self, oldSelf);
      return typeof said === "string" && said.trim() ? said : otherwise;
    },
    text: plainText(message) || text,
    fieldPath: plainText(fieldPath),
    reason: plainText(reason) || "FieldValueInvalid",
  };
}

function expression(text: string): Rule["evaluate"] {
  const evaluate = compile(text);
  return (self, oldSelf) => evaluate({ self, oldSelf });
}

interface Checked {
  readonly value: unknown;
  readonly old: unknown;
  readonly path: string;
  readonly type: string;
}

function violation(rule: Rule, { value, old, path, type }: Checked): StatusCause[] {
  if (old === undefined ? rule.isTransition : !rule.isTransition && isDeepStrictEqual(value, old)) return [];
  const result = rule.evaluate(value, old);
  if (result === true) return [];
  const field = path + rule.fieldPath || "<nil>";
  if (isCelError(result)) {
    const message = `Invalid value: ${JSON.stringify(type)}: ${result.message} evaluating rule: ${rule.text}`;
    return [{ reason: "FieldValueInvalid", message, field }];
  }
  // Objects and lists are not told, nor what another path has.
  const told = typeof value === "object" || rule.fieldPath ? "" : `${JSON.stringify(value)}: `;
  return [{ reason: rule.reason, message: `Invalid value: ${told}${rule.explain(value, old)}`, field }];
}
