/**
 * The rules in the definition of budgets, without any webhook: what they refuse is what the webhook refuses, in its
 * words where CEL can say them.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parseBudget } from "../../../reconciler/budget/zpdb.ts";
import type { Admin } from "../stage/client.ts";
import { ownDefinition } from "../stage/own-definition.ts";

const KIND = "ZoneAwarePodDisruptionBudget";
const REGEX = "[a-z\\-]+-zone-[a-z]-([0-9]+)";
const selector = { matchLabels: { app: "cache" } };

/** In the webhook's words. */
const REFUSED: readonly object[] = [
  { maxUnavailable: 1, maxUnavailablePercentage: 10 },
  { podNamePartitionRegex: "zone" },
  { podNamePartitionRegex: "(zone" },
  { podNamePartitionRegex: "(a)\\1" },
  { podNamePartitionRegex: "(?=zone)(a)" },
  { podNamePartitionRegex: REGEX, crossZoneEvictionDelay: "notaduration" },
  { podNamePartitionRegex: REGEX, crossZoneEvictionDelay: "5" },
  { podNamePartitionRegex: REGEX, crossZoneEvictionDelay: "1d" },
  { podNamePartitionRegex: REGEX, crossZoneEvictionDelay: "-5m" },
  { podNamePartitionRegex: REGEX, crossZoneEvictionDelay: "-0.5s" },
  { crossZoneEvictionDelay: "5m" },
  { podNamePartitionRegex: "", crossZoneEvictionDelay: "+1ns" },
  { maxUnavailablePercentage: 50, podNamePartitionRegex: REGEX },
];

/** In the API server's words, as a type or a bound says it. */
const REFUSED_BY_TYPE: readonly object[] = [
  { maxUnavailable: "1" },
  { maxUnavailable: -1 },
  { maxUnavailable: 0.5 },
  { maxUnavailablePercentage: 101 },
  { podNamePartitionRegex: 1 },
  { podNamePartitionRegex: `(${"a".repeat(1000)})` },
  { podNamePartitionRegex: REGEX, podNameRegexGroup: 0 },
  { crossZoneEvictionDelay: 5 },
  { podNamePartitionRegex: REGEX, crossZoneEvictionDelay: `${"0".repeat(100)}1s` },
  { selector: {} },
  { selector: { matchLabels: { a: "b,c=d" } } },
  { selector: { matchLabels: { "a b": "c" } } },
  { selector: { matchLabels: { "a/b/c": "d" } } },
  { selector: { matchLabels: { ["a".repeat(64)]: "d" } } },
];

const ACCEPTED: readonly object[] = [
  {},
  { maxUnavailable: 0 },
  { maxUnavailablePercentage: 0, podNamePartitionRegex: REGEX },
  { maxUnavailablePercentage: 100 },
  { podNamePartitionRegex: "" },
  { podNamePartitionRegex: "(a)(b)", podNameRegexGroup: 2 },
  ...["20m", "1h30m", "1.5h", ".5s", "1m0.25s", "10µs", "0", "+0", "-0", "0s", ""].map((crossZoneEvictionDelay) => ({
    podNamePartitionRegex: REGEX,
    crossZoneEvictionDelay,
  })),
  { crossZoneEvictionDelay: "0s" },
  { crossZoneEvictionDelay: "-0h0m" },
  { selector: { matchLabels: {} } },
  { selector: { matchLabels: { "example.com/a.b": "", a: "B_c.d-e" } } },
];

/** Go escapes it in JSON. */
const readAnswer = (error: unknown): string => String(error).replaceAll("\\u003e", ">");

describe("the definition of budgets", () => {
  let admin: Admin;
  const definition = ownDefinition({
    plural: "zoneawarepoddisruptionbudgets",
    version: "v1",
    group: "rollout-operator.grafana.com",
  });
  const { group, path } = definition;
  before(async () => void (admin = await definition.create()));
  after(() => definition.remove());

  const objectOf = (spec: object): object => ({
    apiVersion: `${group}/v1`,
    kind: KIND,
    metadata: { name: "cache" },
    spec: { selector, ...spec },
  });
  const create = (object: object): Promise<string> =>
    admin.call("POST", `${path}?dryRun=All`, object).then(() => "taken", readAnswer);
  const problemOf = (object: object): string => {
    const read = parseBudget(object);
    return "problem" in read ? read.problem : assert.fail(`the webhook accepts ${JSON.stringify(object)}`);
  };

  for (const spec of REFUSED)
    it(`refuses ${JSON.stringify(spec)} as the webhook does`, async () => {
      const answer = await create(objectOf(spec));
      const why = problemOf(objectOf(spec)).replace("invalid value: regex is not valid, got ", "");
      assert.ok(answer.includes(JSON.stringify(why).slice(1, -1)), `${answer}: ${why}`);
    });

  for (const spec of REFUSED_BY_TYPE)
    it(`refuses ${JSON.stringify(spec).slice(0, 80)}, and so does the webhook`, async () => {
      problemOf(objectOf(spec));
      assert.match(await create(objectOf(spec)), /: 422 /);
    });

  for (const spec of ACCEPTED)
    it(`accepts ${JSON.stringify(spec)}, and so does the webhook`, async () => {
      assert.ok(!("problem" in parseBudget(objectOf(spec))));
      assert.equal(await create(objectOf(spec)), "taken");
    });

  it("refuses a budget without a spec", async () => {
    assert.match(
      await create({ apiVersion: `${group}/v1`, kind: KIND, metadata: { name: "cache" } }),
      /no spec found in unstructured object/,
    );
  });
});
