/** What the lists find that StatefulSets share: for each what its own list would. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { type Labels, type LabelSelector, matchesSelector } from "../../../reconciler/model/label-selector.ts";
import { planLists } from "../../../reconciler/snapshot/shared-lists.ts";
import { labelSelector } from "../../emulator/selectors.ts";
import { group } from "../builders.ts";

const KEYS = ["name", "zone", "app.kubernetes.io/name"];
const VALUES = ["a", "b", "zone-c.1", ""];
const labels = fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES));
const expression = fc.oneof(
  fc.record({
    key: fc.constantFrom(...KEYS),
    operator: fc.constantFrom("In", "NotIn"),
    values: fc.uniqueArray(fc.constantFrom("a", "b"), { minLength: 1 }),
  }),
  fc.record({ key: fc.constantFrom(...KEYS), operator: fc.constantFrom("Exists", "DoesNotExist") }),
);
const selector: fc.Arbitrary<LabelSelector> = fc.record({
  matchLabels: fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES), { minKeys: 1 }),
  matchExpressions: fc.array(expression, { maxLength: 1 }),
});

function zonesOf(selectors: readonly LabelSelector[]) {
  const { zones } = group(...selectors.map((_, i) => ({ name: `zone-${i}` })));
  return zones.map((zone, i) => ({ ...zone, uid: `uid-${i}`, selector: selectors[i] ?? {} }));
}

describe("lists that StatefulSets share", () => {
  it("find for each what its own selector does, and each zone is in one", () => {
    fc.assert(
      fc.property(fc.array(selector, { maxLength: 12 }), fc.array(labels, { maxLength: 12 }), (selectors, pods) => {
        const zones = zonesOf(selectors);
        const lists = planLists(zones);
        assert.deepEqual(
          lists.flatMap((list) => list.zones.map(({ uid }) => uid)).toSorted(),
          zones.map(({ uid }) => uid).toSorted(),
        );
        for (const [i, zone] of zones.entries())
          for (const pod of pods) {
            const list = lists.find((one) => one.zones.includes(zone));
            const isListed = list !== undefined && labelSelector(list.labelSelector)(pod);
            const isFound = isListed && list.zoneOf(zone.uid, pod) === zone;
            assert.equal(
              isFound,
              matchesSelector(selectors[i], pod),
              `${list?.labelSelector} of ${JSON.stringify(pod)}`,
            );
          }
      }),
    );
  });

  it("give a pod to none but the StatefulSet that controls it", () => {
    const [list] = planLists(zonesOf([{ matchLabels: { name: "a" } }, { matchLabels: { name: "b" } }]));
    assert.equal(list?.labelSelector, "name in (a,b)");
    const found = (uid: string | undefined, of: Labels) => list?.zoneOf(uid, of)?.uid;
    assert.equal(found("uid-1", { name: "b" }), "uid-1");
    assert.equal(found("uid-1", { name: "a" }), undefined, "its selector does not match");
    assert.equal(found("another", { name: "a" }), undefined);
    assert.equal(found(undefined, { name: "a" }), undefined);
  });

  it("are few, and of URLs that proxies accept", () => {
    const longest = "a".repeat(60);
    const selectors = Array.from({ length: MAX_ZONES }, (_, i) => ({
      matchLabels: { name: `${longest}-${i}`, zone: `${longest}-${i}` },
    }));
    const lists = planLists(zonesOf(selectors));
    assert.equal(lists.length, 2);
    for (const list of lists) assert.ok(encodeURIComponent(list.labelSelector).length < 6000);
  });
});
