import assert from "node:assert/strict";
import { it } from "node:test";
import { matchesSelector } from "../../../reconciler/model/label-selector.ts";

it("a label with the name of what every object inherits exists only where it is set", () => {
  const selects = (operator: string, labels: Readonly<Record<string, string>>): boolean =>
    matchesSelector({ matchExpressions: [{ key: "toString", operator }] }, labels);
  assert.deepEqual([selects("Exists", {}), selects("DoesNotExist", {})], [false, true]);
  assert.deepEqual([selects("Exists", { toString: "" }), selects("DoesNotExist", { toString: "" })], [true, false]);
});
