import assert from "node:assert/strict";
import { test } from "node:test";
import { compileSchema } from "./schema.ts";

const text = { type: "string" };
const schema = compileSchema({
  type: "object",
  properties: {
    spec: {
      type: "object",
      required: ["size"],
      properties: {
        size: { type: "integer", minimum: 1 },
        mode: { ...text, enum: ["a", "b"], default: "a" },
        either: { "x-kubernetes-int-or-string": true },
        nested: { type: "object", default: {}, properties: { deep: { type: "boolean", default: true } } },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        map: { type: "object", additionalProperties: { type: "object", properties: { known: text } } },
        list: { type: "array", items: { type: "object", properties: { known: text } } },
        name: { ...text, maxLength: 3, pattern: "^x" },
      },
    },
  },
});

const of = (spec: unknown) => ({ apiVersion: "e.com/v1", kind: "W", metadata: { name: "w" }, spec });
const filled = { mode: "a", nested: { deep: true } };

const CONFORMED: readonly [title: string, spec: object, result: object][] = [
  ["defaults, nested ones too", { size: 1 }, { size: 1, ...filled }],
  [
    "given values stay",
    { size: 1, mode: "b", nested: { deep: false } },
    { size: 1, mode: "b", nested: { deep: false } },
  ],
  ["unknown fields go", { size: 1, what: 2 }, { size: 1, ...filled }],
  [
    "in lists and maps too",
    { list: [{ known: "k", x: 1 }], map: { a: { x: 1 } } },
    { list: [{ known: "k" }], map: { a: {} }, ...filled },
  ],
  ["kept where the schema says so", { free: { any: { thing: 1 } } }, { free: { any: { thing: 1 } }, ...filled }],
];

for (const [title, spec, result] of CONFORMED)
  test(`structural schema: ${title}`, () => {
    assert.deepEqual(schema.conform(of(spec))["spec"], result);
  });

const WRONG: readonly [title: string, spec: unknown, messages: string[]][] = [
  ["a good one", { size: 1, either: "5%" }, []],
  ["a required field", {}, ["spec.size: Required value"]],
  ["a bound", { size: 0 }, ["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"]],
  ["an enumeration", { size: 1, mode: "c" }, ['spec.mode: Unsupported value: "c": supported values: "a", "b"']],
  [
    "a type",
    { size: "x" },
    ['spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'],
  ],
  ["a pattern", { size: 1, name: "a" }, [`spec.name: Invalid value: "a": spec.name in body should match '^x'`]],
];

for (const [title, spec, messages] of WRONG)
  test(`validation: ${title}`, () =>
    assert.deepEqual(
      schema.check(of(spec)).map(({ field, message }) => `${field}: ${message}`),
      messages,
    ));
