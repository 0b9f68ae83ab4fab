import assert from "node:assert/strict";
import { test } from "node:test";
import { compileSchema } from "./schema.ts";

const schema = compileSchema({
  type: "object",
  "x-kubernetes-validations": [{ rule: "has(self.spec)", message: "a spec is needed" }],
  properties: {
    spec: {
      type: "object",
      "x-kubernetes-validations": [
        {
          rule: "!has(self.from) || !has(self.to) || self.from <= self.to",
          messageExpression: "'from is more than ' + string(self.to)",
        },
        { rule: "!has(self.url) || self.url.startsWith('http')", message: "no URL", fieldPath: ".url" },
        { rule: "!has(self.pattern) || ''.matches(self.pattern) || true", message: "no pattern" },
      ],
      properties: {
        from: { type: "integer" },
        to: { type: "integer" },
        url: { type: "string" },
        pattern: { type: "string" },
        mode: { type: "string", enum: ["a"] },
        fixed: { type: "string", "x-kubernetes-validations": [{ rule: "self == oldSelf", message: "it is fixed" }] },
        checks: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: { type: "object", properties: { name: { type: "string" }, n: { type: "integer" } } },
        },
      },
    },
  },
});

const of = (spec: unknown) => ({
  apiVersion: "e.com/v1",
  kind: "W",
  metadata: { name: "w" },
  ...(spec !== undefined && { spec }),
});
const NOT_CHECKED =
  "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

const CASES: readonly (readonly [what: string, spec: unknown, messages: readonly string[], before?: object])[] = [
  ["all hold", { from: 1, to: 2, url: "http://a" }, []],
  ["at the root", undefined, ["<nil>: Invalid value: a spec is needed"]],
  ["in words of its own", { from: 3, to: 2 }, ["spec: Invalid value: from is more than 2"]],
  ["at another path", { url: "ftp" }, ["spec.url: Invalid value: no URL"]],
  ["with a value that can be told", { fixed: "b" }, ['spec.fixed: Invalid value: "b": it is fixed'], { fixed: "a" }],
  ["of a transition, but not of a new object", { fixed: "b" }, []],
  ["broken before, and still the same", { from: 3, to: 2 }, [], { from: 3, to: 2 }],
  ["broken before, and changed", { from: 4, to: 2 }, ["spec: Invalid value: from is more than 2"], { from: 3, to: 2 }],
  [
    "not asked, as the object has other faults",
    { mode: "b", from: 3, to: 2 },
    ['spec.mode: Unsupported value: "b": supported values: "a"', NOT_CHECKED],
  ],
  [
    "one name twice in a list",
    {
      checks: [
        { name: "a", n: 1 },
        { name: "a", n: 2 },
      ],
    },
    ['spec.checks[1]: Duplicate value: {"name":"a"}'],
  ],
];

for (const [what, spec, messages, before] of CASES)
  test(`rules in CEL: ${what}`, () =>
    assert.deepEqual(
      schema.check(of(spec), before && of(before)).map(({ field, message }) => `${field}: ${message}`),
      messages,
    ));

test("rules in CEL: an error of the rule itself", () => {
  const [cause] = schema.check(of({ pattern: "((" }));
  assert.equal(cause, undefined, "another operand of || has decided");
});
