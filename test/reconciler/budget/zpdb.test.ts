import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { allowedUnavailable, type Budget, parseBudget, selectorOf } from "../../../reconciler/budget/zpdb.ts";
import { budget as parse, budgetObject as object } from "../../builders/budgets.ts";

const REGEX = "[a-z\\-]+-zone-[a-z]-([0-9]+)";

describe("the number of pods that a budget allows to be unavailable", () => {
  const CASES: readonly [object, { spec: number | undefined; status: number }, number][] = [
    [{}, { spec: 3, status: 3 }, 1],
    [{ maxUnavailable: 0 }, { spec: 3, status: 3 }, 0],
    [{ maxUnavailable: 1 }, { spec: 3, status: 3 }, 1],
    [{ maxUnavailable: 1 }, { spec: undefined, status: 0 }, 1],
    [{ maxUnavailablePercentage: 0 }, { spec: 3, status: 3 }, 0],
    [{ maxUnavailablePercentage: 100 }, { spec: 3, status: 3 }, 3],
    [{ maxUnavailablePercentage: 1 }, { spec: 3, status: 3 }, 1],
    [{ maxUnavailablePercentage: 75 }, { spec: 3, status: 3 }, 2],
    [{ maxUnavailablePercentage: 50 }, { spec: 10, status: 6 }, 3],
    [{ maxUnavailablePercentage: 50 }, { spec: 10, status: 20 }, 5],
    [{ maxUnavailablePercentage: 50 }, { spec: 10, status: 0 }, 0],
    [{ maxUnavailablePercentage: 50 }, { spec: undefined, status: 3 }, 0],
    [{ maxUnavailablePercentage: 50 }, { spec: 0, status: 3 }, 0],
  ];
  for (const [spec, replicas, expected] of CASES)
    it(`${JSON.stringify(spec)} of ${JSON.stringify(replicas)} is ${expected}`, () =>
      assert.equal(allowedUnavailable(parse(spec), replicas), expected));
});

const unread = (field: string): string => `failed to extract value from config field ${field}`;
const invalid = (why: string): string => `invalid value: ${why}`;
const badRegex = (why: string): string => invalid(`regex is not valid, got ${why}`);
const badSelector = (why: string): string => invalid(`selector is not valid, got ${why}`);

describe("an invalid budget", () => {
  const REFUSED: readonly [unknown, string][] = [
    [{}, "no spec found in unstructured object"],
    [{ spec: [] }, ".spec accessor error: it is not of the type map[string]interface{}"],
    [{ ...object({}), kind: "PodDisruptionBudget" }, "unexpected object kind - expecting ZoneAwarePodDisruptionBudget"],
    [
      object({ maxUnavailable: null, maxUnavailablePercentage: null }),
      invalid("only one of maxUnavailable or maxUnavailablePercentage may be set"),
    ],
    [object({ maxUnavailable: "1" }), unread("maxUnavailable")],
    [object({ maxUnavailable: null }), unread("maxUnavailable")],
    [object({ maxUnavailable: 0.5 }), unread("maxUnavailable")],
    [object({ maxUnavailable: 1e300 }), unread("maxUnavailable")],
    [object({ maxUnavailable: -1 }), invalid("max unavailable must be 0 <= val, got -1")],
    [object({ maxUnavailablePercentage: "5" }), unread("maxUnavailablePercentage")],
    [object({ maxUnavailablePercentage: -1 }), invalid("max unavailable percentage must be 0 <= val <= 100, got -1")],
    [object({ maxUnavailablePercentage: 101 }), invalid("max unavailable percentage must be 0 <= val <= 100, got 101")],
    [
      object({ podNamePartitionRegex: 1 }),
      badRegex("failed to extract regex value from config field podNamePartitionRegex"),
    ],
    [
      object({ podNamePartitionRegex: REGEX, podNameRegexGroup: "1" }),
      badRegex("failed to extract group value from config field podNameRegexGroup"),
    ],
    [object({ podNamePartitionRegex: "(zone" }), badRegex("error parsing regexp: missing closing ): `^(zone$`")],
    [
      object({ podNamePartitionRegex: "(?=zone)(a)" }),
      badRegex("error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
    ],
    [object({ podNamePartitionRegex: "(a)\\1" }), badRegex("error parsing regexp: invalid escape sequence: `\\1`")],
    [object({ podNamePartitionRegex: "zone" }), badRegex("regular expression requires at least one subexpression")],
    [
      object({ podNamePartitionRegex: "(a)(b)" }),
      badRegex("regular expression has multiple subexpressions and requires podNameRegexGroup to be set"),
    ],
    ...[10, 0, -1].map((podNameRegexGroup): [object, string] => [
      object({ podNamePartitionRegex: REGEX, podNameRegexGroup }),
      badRegex("regular expression subexpression index out of range"),
    ]),
    [object({ selector: undefined }), invalid("selector is not found")],
    [object({ selector: {} }), invalid("selector is not found")],
    [object({ selector: null }), invalid("selector is not valid, got no map")],
    ...[[{ key: "a", operator: "Exists" }], { a: "b" }, null].map((matchExpressions): [object, string] => [
      object({ selector: { matchLabels: { a: "b" }, matchExpressions } }),
      badSelector("matchExpressions"),
    ]),
    [object({ selector: { matchLabels: [] } }), badSelector("matchLabels, which is not a map")],
    [object({ selector: { matchLabels: { a: 1 } } }), badSelector('"a": 1, which is not a valid label')],
    [object({ selector: { matchLabels: { a: "b,c=d" } } }), badSelector('"a": "b,c=d", which is not a valid label')],
    [object({ crossZoneEvictionDelay: 5 }), unread("crossZoneEvictionDelay")],
    [
      object({ crossZoneEvictionDelay: "notaduration", podNamePartitionRegex: REGEX }),
      invalid("crossZoneEvictionDelay is not a valid duration, got notaduration"),
    ],
    [
      object({ crossZoneEvictionDelay: "-5m", podNamePartitionRegex: REGEX }),
      invalid("crossZoneEvictionDelay must be >= 0, got -5m"),
    ],
    [
      object({ crossZoneEvictionDelay: "5m" }),
      invalid("crossZoneEvictionDelay requires podNamePartitionRegex to be set"),
    ],
    [
      object({ maxUnavailablePercentage: 50, podNamePartitionRegex: REGEX }),
      invalid("max unavailable percentage can not be used with partition awareness"),
    ],
    // Two errors: upstream has the same order.
    [object({ maxUnavailable: -1, selector: {} }), invalid("max unavailable must be 0 <= val, got -1")],
    [
      { ...object({ maxUnavailable: -1 }), kind: "Pod" },
      "unexpected object kind - expecting ZoneAwarePodDisruptionBudget",
    ],
    [null, "no spec found in unstructured object"],
    [[], "no spec found in unstructured object"],
  ];
  for (const [written, problem] of REFUSED)
    it(`${JSON.stringify(written)}: ${problem}`, () => assert.deepEqual(parseBudget(written), { problem }));
});

describe("a valid budget", () => {
  const ACCEPTED: readonly [object, Partial<Budget>][] = [
    [
      {},
      {
        namespace: "test",
        name: "ingester",
        uid: "uid-ingester",
        allowance: { pods: 1 },
        partitionOf: undefined,
      },
    ],
    [{ maxUnavailable: 0 }, { allowance: { pods: 0 } }],
    [{ maxUnavailablePercentage: 0, podNamePartitionRegex: REGEX }, { allowance: { percent: 0 } }],
    [{ maxUnavailablePercentage: 100 }, { allowance: { percent: 100 } }],
    [{ podNamePartitionRegex: "", podNameRegexGroup: "ignored" }, { partitionOf: undefined }],
    [{ podNamePartitionRegex: REGEX, crossZoneEvictionDelay: "20m" }, { crossZoneEvictionDelayMs: 1_200_000 }],
    [{ podNamePartitionRegex: REGEX, crossZoneEvictionDelay: "1h30m" }, { crossZoneEvictionDelayMs: 5_400_000 }],
    [{ crossZoneEvictionDelay: "0s" }, { crossZoneEvictionDelayMs: 0 }],
    [{ crossZoneEvictionDelay: "" }, { crossZoneEvictionDelayMs: 0 }],
    [{ selector: { matchLabels: {} } }, { matchLabels: {} }],
    [{ selector: { matchLabels: { "example.com/a.b": "" } } }, { matchLabels: { "example.com/a.b": "" } }],
  ];
  for (const [spec, expected] of ACCEPTED)
    it(`as ${JSON.stringify(spec)}`, () => {
      const budget = parse(spec);
      for (const [key, value] of Object.entries(expected)) assert.deepEqual(budget[key as keyof Budget], value);
    });
});

describe("the selector", () => {
  it("is known of an invalid budget too, unless the selector itself is invalid", () => {
    assert.deepEqual(selectorOf(object({ maxUnavailable: -1 })), { "rollout-group": "ingester" });
    assert.equal(selectorOf(object({ selector: { matchLabels: { a: 1 } } })), undefined);
    assert.equal(selectorOf(undefined), undefined);
  });
});
