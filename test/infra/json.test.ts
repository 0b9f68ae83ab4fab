import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isSameJson, ownValue } from "../../infra/json.ts";

describe("ownValue", () => {
  for (const key of ["constructor", "toString", "__proto__"])
    it(`finds ${key} only where the record has it`, () => {
      assert.equal(ownValue<string>({}, key), undefined);
      assert.equal(ownValue(JSON.parse(`{"${key}":"own"}`) as Record<string, string>, key), "own");
    });
});

describe("isSameJson", () => {
  const cases: readonly (readonly [string, unknown, unknown, boolean])[] = [
    [
      "the same fields in another order, at any depth",
      { a: 1, b: { c: 2, d: [3] } },
      { b: { d: [3], c: 2 }, a: 1 },
      true,
    ],
    ["a field that is undefined, and one that is absent", { a: undefined, b: 1 }, { b: 1 }, true],
    ["a field that is null, and one that is absent", { a: null, b: 1 }, { b: 1 }, false],
    ["items in another order", [1, 2], [2, 1], false],
    ["a list that is longer", [1], [1, 2], false],
    ["an item that is undefined, and one that is null", [undefined, 1], [null, 1], true],
    ["a list and an object", [], {}, false],
    ["an object and nothing", {}, undefined, false],
    ["another value", { a: { b: 1 } }, { a: { b: 2 } }, false],
    ["nothing and nothing", undefined, undefined, true],
  ];
  for (const [what, one, other, same] of cases)
    it(`${what}: ${same ? "the same" : "not the same"}`, () => assert.equal(isSameJson(one, other), same));
});
