import assert from "node:assert/strict";
import { describe, it, mock } from "node:test";
import { RE2JS } from "re2js";
import { compilePartition } from "../../../reconciler/budget/partition.ts";
import { parseBudget } from "../../../reconciler/budget/zpdb.ts";
import { budget as parse, budgetObject as object } from "../../builders/budgets.ts";

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
    // Anchors bind tighter than `|`: the first alternative may end early, the second may start late.
    ["zone-(a)|zone-(b)", 1, "zone-a-and-more", "a"],
    ["zone-(a)|zone-(b)", 2, "more-and-zone-b", "b"],
    ["zone-(a)|zone-(b)", 1, "more-and-zone-a", undefined],
    ["(?i)(?P<all>ZONE-[[:alpha:]]+)\\z", undefined, "zone-a", "zone-a"],
  ];
  for (const [podNamePartitionRegex, group, pod, expected] of CASES)
    it(`${podNamePartitionRegex} group ${group} of ${JSON.stringify(pod)} is ${expected}`, () => {
      const budget = parse({ podNamePartitionRegex, ...(group && { podNameRegexGroup: group }) });
      assert.equal(budget.partitionOf?.(pod), expected);
    });
});

describe("patterns", () => {
  it("are compiled once, by text and group, problems too; the 100 that were used last stay so", () => {
    const compile = mock.method(RE2JS, "compile");
    const times = (pattern: string): number =>
      compile.mock.calls.filter(({ arguments: [written] }) => written === `^${pattern}$`).length;
    for (let i = 0; i < 3; i++) {
      const taken = [1, 2].map((group) => {
        const partitionOf = compilePartition("(left)-(right)", group);
        return typeof partitionOf === "function" && partitionOf("left-right");
      });
      assert.deepEqual(taken, ["left", "right"]);
      assert.ok("problem" in compilePartition("(unclosed", undefined));
    }
    assert.deepEqual([times("(left)-(right)"), times("(unclosed")], [2, 1]);
    for (let i = 0; i < 99; i++) {
      compilePartition(`(one-of-many-${i})`, undefined);
      compilePartition("(unclosed", undefined);
    }
    compilePartition("(left)-(right)", 1);
    assert.deepEqual([times("(left)-(right)"), times("(unclosed")], [3, 1]);
    mock.restoreAll();
  });
});

describe("a pattern that would take long", () => {
  const NAMES = ["a".repeat(253), `${"a".repeat(252)}!`];
  for (const podNamePartitionRegex of ["((((a+)+)+)+)b", "(a|aa)*(a|aa)*(a|aa)*(c)", `(${"a?".repeat(120)})b`])
    it(`${podNamePartitionRegex.slice(0, 30)} is matched in linear time: a backtracking engine would never end`, () => {
      const { partitionOf } = parse({ podNamePartitionRegex, podNameRegexGroup: 1 });
      for (const name of NAMES) assert.equal(partitionOf?.(name), undefined);
    });
});

describe("a pattern that would compile to a large program", () => {
  const tooLarge = {
    problem:
      "invalid value: regex is not valid, got error parsing regexp: expression too large: podNamePartitionRegex may have 256 characters, 20000 with what it repeats by counts, and 300 instructions at most",
  };
  const LARGE = [
    "((?:[a-z0-9-]?){1000})",
    // Few instructions, but only once all of it was written out.
    "(?:(?:zone-abcdefghijkl){0}){1000}(x)",
    "((?:[a-z0-9-]?){240})",
    "(([a-z]{10}){10}){10}",
    "((a|b){500})",
    ".{0,999}".repeat(100),
    "((a{30}){30}){30}".repeat(4),
    `(${"a".repeat(200)}){2}`,
    `(${"(a*)*".repeat(50)})`,
    `(${"a".repeat(255)})`,
  ];
  for (const podNamePartitionRegex of LARGE)
    it(`${podNamePartitionRegex.slice(0, 30)}... is refused, with the field's name`, () =>
      assert.deepEqual(parseBudget(object({ podNamePartitionRegex, podNameRegexGroup: 1 })), tooLarge));

  for (const podNamePartitionRegex of [
    "([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)-zone-[a-z]-([0-9]{1,5})",
    `(${"a".repeat(254)})`,
    "([a-z]{140})",
  ])
    it(`${podNamePartitionRegex.slice(0, 30)}... is not`, () =>
      void parse({ podNamePartitionRegex, podNameRegexGroup: 1 }));
});

describe("a pattern that names characters beyond ASCII, whose tables take long to build", () => {
  const beyond = {
    problem:
      "invalid value: regex is not valid, got error parsing regexp: invalid character: podNamePartitionRegex may name ASCII characters only, as names of pods have no others",
  };
  const REFUSED = [
    "(é)",
    "([a-é])",
    "(?P<é>a)",
    "(\\x{80})",
    "(\\x{0100})",
    "(\\x{10FFFE})",
    "(\\xff)",
    "(\\200)",
    "([\\1-\\777])",
    "(\\pL)",
    "([^\\P{Greek}])",
    "(\\\\\\pL)",
    "(\\Q\\\\E\\pL)",
    `((?i)${"[\\x{100}-\\x{10FFFE}]".repeat(12)})`,
    "((?i)[\\pL\\pN\\pM\\pS\\pP\\pZ\\pC\\PL\\PN\\PM\\PS\\PP\\PZ\\PC\\p{Greek}\\p{Han}])",
  ];
  for (const podNamePartitionRegex of REFUSED)
    it(`${podNamePartitionRegex.slice(0, 30)} is refused, with the field's name`, () =>
      assert.deepEqual(parseBudget(object({ podNamePartitionRegex, podNameRegexGroup: 1 })), beyond));

  for (const podNamePartitionRegex of [
    "(\\x7f|\\x{00007F}|\\177|\\01)",
    "([^-]+.\\W\\S[^\\d])",
    "(\\\\pL|\\\\x{100})",
    "((?i)[[:^ascii:]])",
  ])
    it(`${podNamePartitionRegex} is not`, () => void parse({ podNamePartitionRegex, podNameRegexGroup: 1 }));
});

describe("a pattern of at most 256 characters", () => {
  /** The worst that was found for each kind: what is repeated, and how deep. */
  const UNITS = ["a", "a?", "()", "(|a)", "(a*)*", "a|b*", "[^a]", "\\W", "[[:^alpha:]]", "(?i:a|b)"];
  const REPEATS = ["{78}", "{0,78}", "{78,}", "{8}", "{4}"];
  for (const unit of UNITS)
    it(`compiles to few instructions before their number is judged, whatever repeats ${unit}`, () => {
      let compiled = 0;
      for (const repeat of REPEATS)
        for (const depth of [1, 2, 3]) {
          const written = `${"(".repeat(depth)}${unit.repeat(Math.floor(200 / unit.length))}${`)${repeat}`.repeat(depth)}`;
          const refused = compilePartition(written, 1);
          if ("problem" in refused && !isCompiled(written)) continue;
          compiled++;
          assert.ok((sizeOf(written) ?? 0) < 40_000, written);
        }
      assert.ok(compiled > 0);
    });
});

/** True if it is short enough, with what it repeats, to be compiled at all. */
function isCompiled(written: string): boolean {
  const counts = [...written.matchAll(/\{(?:\d+,)?(\d+),?\}/g)].map(([, count]) => Number(count));
  return counts.reduce((length, count) => length * count, written.length) <= 20_000;
}

/** Undefined if the pattern does not compile. */
function sizeOf(expression: string): number | undefined {
  try {
    return RE2JS.compile(expression).programSize();
  } catch {
    return undefined;
  }
}
