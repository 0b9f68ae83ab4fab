import assert from "node:assert/strict";
import { test } from "node:test";
import { compile } from "./match-conditions.ts";

const variables = {
  object: {
    kind: "Scale",
    spec: { replicas: 2, owners: [{ kind: "Set", controller: true }] },
    metadata: { labels: { "a.b/c": "true" } },
  },
  oldObject: { spec: { replicas: 3, template: { x: [1] } }, metadata: {} },
  request: { options: {}, user: undefined },
};
const ERROR = Symbol("an error");
const CASES: readonly (readonly [expression: string, value: unknown])[] = [
  ["object.spec.replicas < oldObject.spec.replicas", true],
  ["(has(object.spec.replicas) ? object.spec.replicas : 0) + 1 == 3", true],
  ["has(object.spec.ordinals) ? object.spec.ordinals.start : 0", 0n],
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
  ["object.kind in ['Pod', 'Scale'] && object.kind.startsWith('Sc') && object.kind.matches('^S.*e$')", true],
  ["object.spec.owners.exists(owner, has(owner.controller) && owner.controller)", true],
  ["object.spec.owners.exists(owner, owner.kind == 'Job')", false],
  ["has(request.user)", false],
];

for (const [expression, value] of CASES)
  test(`${expression} is ${String(value)}`, () => {
    const evaluate = compile(expression);
    if (value === ERROR) assert.throws(() => evaluate(variables));
    else assert.equal(evaluate(variables), value);
  });

for (const expression of ["", "a ==", "(a", "a b"])
  test(`${JSON.stringify(expression)} is refused`, () => {
    assert.throws(() => compile(expression));
  });
