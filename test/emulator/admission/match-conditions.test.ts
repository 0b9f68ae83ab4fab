import assert from "node:assert/strict";
import { test } from "node:test";
import { compile } from "./match-conditions.ts";

const variables = {
  object: { kind: "Scale", spec: { replicas: 2 }, metadata: { labels: { "a.b/c": "true" } } },
  oldObject: { spec: { replicas: 3, template: { x: [1] } }, metadata: {} },
  request: { options: {} },
};
const ERROR = Symbol("an error");
const CASES: readonly (readonly [expression: string, value: unknown])[] = [
  ["object.spec.replicas < oldObject.spec.replicas", true],
  ["(has(object.spec.replicas) ? object.spec.replicas : 0) + 1 == 3", true],
  ["has(object.spec.ordinals) ? object.spec.ordinals.start : 0", 0],
  [
    "has(object.metadata.labels) && 'a.b/c' in object.metadata.labels && object.metadata.labels['a.b/c'] == 'true'",
    true,
  ],
  ['object.kind == "Scale" || has(object.none.there)', true],
  ["has(object.none.there) || object.kind == 'Scale'", true],
  ["has(object.none.there) && object.kind == 'Scale'", ERROR],
  ["has(object.none.there) && object.kind == 'Pod'", false],
  ["!has(request.options) || !has(request.options.fieldManager) || request.options.fieldManager != 'us'", true],
  ["object.spec != oldObject.spec", true],
  ["oldObject.spec.template == oldObject.spec.template", true],
  ["object.spec.missing == 1", ERROR],
  ["unknown == 1", ERROR],
  ["!(1 > 2 && true) == true", true],
];

for (const [expression, value] of CASES)
  test(`${expression} is ${String(value)}`, () => {
    const evaluate = compile(expression);
    if (value === ERROR) assert.throws(() => evaluate(variables));
    else assert.equal(evaluate(variables), value);
  });

for (const expression of ["", "a.exists(x, true)", "a ==", "(a", "a b", "size(a)", "a % 2"])
  test(`${JSON.stringify(expression)} is refused`, () => {
    assert.throws(() => compile(expression), SyntaxError);
  });
