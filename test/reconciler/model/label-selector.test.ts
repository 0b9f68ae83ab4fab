/** Selectors mean what the API server takes them for: the embedded cluster, which is held against it, reads them by itself. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  type LabelSelector,
  matchesSelector,
  problemOfExpressions,
  selectorText,
} from "../../../reconciler/model/label-selector.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { labelSelector, objectSelector } from "../../emulator/selectors.ts";
import { statefulSetObject } from "../../builders/zones.ts";

const key = fc.constantFrom("app", "app.kubernetes.io/name", "toString", "constructor");
const value = fc.constantFrom("a", "b", "");
const labels = fc.dictionary(key, value);
const selector: fc.Arbitrary<LabelSelector> = fc.record(
  {
    matchLabels: labels,
    matchExpressions: fc.array(
      fc.oneof(
        fc.record({
          key,
          operator: fc.constantFrom("In", "NotIn"),
          values: fc.uniqueArray(fc.constantFrom("a", "b"), { minLength: 1 }),
        }),
        fc.record({ key, operator: fc.constantFrom("Exists", "DoesNotExist") }),
      ),
      { maxLength: 3 },
    ),
  },
  { requiredKeys: [] },
);

describe("a label selector", () => {
  it("matches what it matches for the API server, as an object and as the text of a list", () => {
    fc.assert(
      fc.property(selector, labels, (one, object) => {
        const matches = matchesSelector(one, object);
        assert.equal(matches, objectSelector(one)(object));
        assert.equal(matches, labelSelector(selectorText(one))(object));
        assert.equal(problemOfExpressions(one), undefined);
      }),
    );
  });

  it("selects nothing where there is none, and everything where it is empty", () => {
    assert.deepEqual([matchesSelector(undefined, {}), matchesSelector({}, {})], [false, true]);
  });

  for (const [what, expression] of [
    ["an operator that is not known", { key: "app", operator: "Matches", values: ["a"] }],
    ["the name of what every object inherits", { key: "app", operator: "toString" }],
    ["In without values", { key: "app", operator: "In", values: [] }],
    ["NotIn without values", { key: "app", operator: "NotIn" }],
    ["Exists with values", { key: "app", operator: "Exists", values: ["a"] }],
  ] as const)
    it(`with ${what} may match anything for a budget; a StatefulSet with it has none of its pods, and says so`, () => {
      const invalid = { matchLabels: { tier: "x" }, matchExpressions: [expression] };
      assert.ok(matchesSelector(invalid, { tier: "x" }));
      const set = statefulSetObject();
      const zone = readZone({ ...set, spec: { ...set.spec, selector: invalid } as NonNullable<typeof set.spec> });
      assert.deepEqual(zone.problems, [`its selector has an invalid expression: app ${expression.operator}`]);
      for (const some of [{}, { tier: "x" }, { tier: "x", app: "a", "rollout-group": "ingester" }])
        assert.equal(matchesSelector(zone.selector, some), false);
    });
});
