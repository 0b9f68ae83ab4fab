import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseBudget } from "../../../reconciler/budget/zpdb.ts";
import { object, parse } from "./stored.ts";

describe("the partition of a pod", () => {
  const OPTIONAL = "ingester(-foo)?-zone-[a-z]-([0-9]+)";
  const CASES: readonly [string, number | undefined, string, string | undefined][] = [
    ["^[a-z\\-]+-(zone-[a-z]-[0-9]+)$", undefined, "ingester-zone-a-0", "zone-a-0"],
    ["^[a-z\\-]+-(zone-[a-z]-[0-9]+)$", undefined, "test-app-zone-a-0", "zone-a-0"],
    ["^[a-z\\-]+-(zone-[a-z]-[0-9]+)$", undefined, "", undefined],
    ["^[a-z\\-]+-(zone-[a-z]-[0-9]+)$", undefined, "ingester-zone-a", undefined],
    ["^[a-z\\-]+-(zone-[a-z]-[0-9]+)$", undefined, "test-app-1", undefined],
    [OPTIONAL, 2, "ingester-zone-a-5", "5"],
    [OPTIONAL, 2, "ingester-foo-zone-b-0", "0"],
    [OPTIONAL, 2, "ingester-foo-zone-c-1", "1"],
    [OPTIONAL, 2, "distributor-zone-c-1", undefined],
    [OPTIONAL, 1, "ingester-foo-zone-c-1", "-foo"],
    ["a capture that takes nothing: (x?).*", 1, "a capture that takes nothing: ", undefined],
    [OPTIONAL, 1, "ingester-zone-c-1", undefined],
    // Anchors bind tighter than a bar: the first alternative may end early, the second start late.
    ["zone-(a)|zone-(b)", 1, "zone-a-and-more", "a"],
    ["zone-(a)|zone-(b)", 2, "more-and-zone-b", "b"],
    ["zone-(a)|zone-(b)", 1, "more-and-zone-a", undefined],
    ["(?i)(?P<all>ZONE-[[:alpha:]]+)\\z", undefined, "zone-a", "zone-a"],
  ];
  for (const [podNamePartitionRegex, group, pod, expected] of CASES)
    it(`${podNamePartitionRegex} group ${group} of ${JSON.stringify(pod)} is ${expected} (B02, B03, B05)`, () => {
      const budget = parse({ podNamePartitionRegex, ...(group && { podNameRegexGroup: group }) });
      assert.equal(budget.partitionOf?.(pod), expected);
    });
});

describe("a pattern that would take long", () => {
  const NAMES = ["a".repeat(253), `${"a".repeat(252)}!`];
  for (const podNamePartitionRegex of ["((((a+)+)+)+)b", "(a|aa)*(a|aa)*(a|aa)*(c)", `(${"a?".repeat(490)})b`])
    it(`${podNamePartitionRegex.slice(0, 30)} is matched in linear time: a backtracking engine would never end`, () => {
      const { partitionOf } = parse({ podNamePartitionRegex, podNameRegexGroup: 1 });
      for (const name of NAMES) assert.equal(partitionOf?.(name), undefined);
    });

  const tooLarge = { problem: "invalid value: regex is not valid, got error parsing regexp: expression too large" };
  for (const podNamePartitionRegex of [".{0,999}".repeat(100), `(${"(?i)\\pL".repeat(1000)})`, "((a{30}){30}){30}".repeat(4)])
    it(`${podNamePartitionRegex.slice(0, 30)}... is refused before it is compiled`, () =>
      assert.deepEqual(parseBudget(object({ podNamePartitionRegex })), tooLarge));
});
