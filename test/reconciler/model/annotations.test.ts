import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseBypass, parseMaxUnavailable, readScaling } from "../../../reconciler/model/annotations.ts";
import { zone } from "../../builders/groups.ts";

const TABLE: readonly [string, string | undefined, number | undefined, number, boolean][] = [
  ["nothing set", undefined, 10, 1, false],
  ["a number", "3", 10, 3, false],
  ["a word", "xxx", 10, 1, true],
  ["zero", "0", 10, 1, true],
  ["a negative number", "-1", 10, 1, true],
  ["a percentage", "30%", 10, 3, false],
  ["a percentage, rounded down", "25%", 10, 2, false],
  ["half of three", "50%", 3, 1, false],
  ["a percentage of an unknown number", "30%", undefined, 1, false],
  ["more than 100 %", "300%", 10, 1, true],
  ["0 %", "0%", 10, 1, true],
  ["white space around it", "  4 ", 10, 4, false],
  ["white space inside", "4 %", 10, 1, true],
  ["a plus sign", "+5", 10, 5, false],
  ["100 %", "100%", 7, 7, false],
  ["a fraction", "1.5", 10, 1, true],
  ["a hexadecimal number", "0x10", 10, 1, true],
  ["an exponent", "1e3", 10, 1, true],
  ["more digits than an integer has", "99999999999999999999", 10, 1, true],
  ["nothing", "", 10, 1, true],
  ["a lone percent sign", "%", 10, 1, true],
  ["more than the zone has", "50", 3, 50, false],
];

describe("rollout-max-unavailable", () => {
  for (const [name, written, replicas, value, problem] of TABLE) {
    it(`${name}: ${JSON.stringify(written)} of ${replicas} is ${value}`, () => {
      const parsed = parseMaxUnavailable(written, replicas);
      assert.equal(parsed.value, value);
      assert.equal(parsed.problem !== undefined, problem);
      if (problem) assert.match(parsed.problem ?? "", /rollout-max-unavailable/);
    });
  }
});

describe("rollout-paused", () => {
  for (const [written, value, problem] of [
    [undefined, false, false],
    ["true", true, false],
    ["false", false, false],
    ["True", false, true],
    ["yes", false, true],
  ] as const) {
    it(`${written} ${value ? "pauses" : "does not pause"}${problem ? "and is reported" : ""}`, () => {
      const { paused, problems } = zone({ annotations: { ...(written && { "grafana.com/rollout-paused": written }) } });
      assert.deepEqual([paused, problems.length > 0], [value, problem]);
    });
  }
});

describe("the reason of a bypass", () => {
  const UNTIL = "2026-01-01T12:00:00Z";
  const HALF = "\ud83d";
  for (const [name, written, reason] of [
    ["is as it is written", "a known alert", "a known alert"],
    ["is one line", " a\n\tknown\u0007 alert ", "a known alert"],
    ["is absent if it is empty", " \n ", undefined],
    ["is cut after 200 characters", "x".repeat(300), "x".repeat(200)],
    [
      "has no half of a character where it is cut, which no status could store",
      `${"x".repeat(199)}😀`,
      `${"x".repeat(199)}�`,
    ],
    ["has no half of a character that was written", `a ${HALF} b`, "a � b"],
  ] as const)
    it(name, () => assert.equal(parseBypass(UNTIL, written).value?.reason, reason));
});

const FORCE = "grafana.com/rollout-force-replicas";

describe("force-replicas", () => {
  const cases: readonly [string | undefined, number | undefined, boolean][] = [
    [undefined, undefined, false],
    ["5", 5, false],
    ["0", 0, false],
    ["+7", 7, false],
    ["2147483647", 2147483647, false],
    ["2147483648", undefined, true],
    ["-1", undefined, true],
    ["invalid", undefined, true],
    ["", undefined, true],
    [" 5", undefined, true],
    ["5.0", undefined, true],
  ];
  for (const [written, forced, complains] of cases) {
    it(`${JSON.stringify(written)} is ${forced ?? "ignored"}${complains ? ", with a complaint" : ""}`, () => {
      const follower = { "grafana.com/rollout-downscale-leader": "a" };
      const { value, problems } = readScaling({}, written === undefined ? {} : { ...follower, [FORCE]: written });
      assert.deepEqual([value.forcedReplicas, problems.length > 0], [forced, complains]);
    });
  }
});

describe("settings that do not do what their author expects are pointed out, with their name", () => {
  const G = "grafana.com";
  const MIRROR = {
    [`${G}/rollout-mirror-replicas-from-resource-name`]: "t",
    [`${G}/rollout-mirror-replicas-from-resource-kind`]: "T",
  };
  const URL = { [`${G}/rollout-prepare-delayed-downscale-url`]: "http://pod/prepare" };
  const DELAY = `${G}/rollout-delayed-downscale`;
  const cases: readonly [string, Record<string, string>, Record<string, string>, readonly string[]][] = [
    [
      "a delay without a URL",
      {},
      { ...MIRROR, [DELAY]: "1h" },
      [`${DELAY} has no effect without ${G}/rollout-prepare-delayed-downscale-url`],
    ],
    [
      "a URL without a delay",
      {},
      { ...MIRROR, ...URL, [DELAY]: "" },
      [`-downscale-url has no effect without ${DELAY}`],
    ],
    ["both", {}, { ...MIRROR, ...URL, [DELAY]: "1d" }, []],
    [
      "a delay that is none",
      {},
      { ...MIRROR, ...URL, [DELAY]: "1 hour" },
      [`${DELAY} is "1 hour", not a duration such as 1h30m`],
    ],
    [
      "a name to mirror without a kind",
      {},
      { [`${G}/rollout-mirror-replicas-from-resource-name`]: "t" },
      ["-name has no effect without"],
    ],
    [
      "a kind to mirror without a name",
      {},
      { [`${G}/rollout-mirror-replicas-from-resource-kind`]: "T" },
      ["-kind has no effect without"],
    ],
    ["forced replicas of a zone that nobody scales", {}, { [FORCE]: "3" }, [`${FORCE} has no effect`]],
    ["forced replicas of a follower", {}, { [FORCE]: "3", [`${G}/rollout-downscale-leader`]: "a" }, []],
    ["forced replicas of a mirroring zone", {}, { ...MIRROR, [FORCE]: "3" }, []],
    [
      "a minimum time that is none",
      { [`${G}/min-time-between-zones-downscale`]: "1d" },
      {},
      ['-downscale is "1d", not a duration such as 12h'],
    ],
    ["a negative one", { [`${G}/min-time-between-zones-downscale`]: "-1h" }, {}, ['-downscale is "-1h"']],
    [
      "a minimum time as a label and another as an annotation",
      { [`${G}/min-time-between-zones-downscale`]: "1h" },
      { [`${G}/min-time-between-zones-downscale`]: "12h" },
      ['is "12h" as an annotation and "1h" as a label: the annotation wins'],
    ],
    [
      "the same minimum time as a label and an annotation",
      { [`${G}/min-time-between-zones-downscale`]: "12h" },
      { [`${G}/min-time-between-zones-downscale`]: "12h" },
      [],
    ],
    ["a minimum time as an annotation", {}, { [`${G}/min-time-between-zones-downscale`]: "12h" }, []],
    ["a minimum time", { [`${G}/min-time-between-zones-downscale`]: "12h" }, {}, []],
    [
      "a label that is almost true",
      { [`${G}/prepare-downscale`]: "True" },
      {},
      [`${G}/prepare-downscale is "True": only "true" counts`],
    ],
    ["another one", { [`${G}/no-downscale`]: "yes" }, {}, [`${G}/no-downscale is "yes": only "true" counts`]],
    ["a label that says no", { [`${G}/no-downscale`]: "false" }, {}, []],
  ];
  for (const [name, labels, annotations, expected] of cases)
    it(name, () => {
      const { problems } = readScaling(labels, annotations);
      assert.equal(problems.length, expected.length, problems.join());
      for (const [i, part] of expected.entries()) assert.ok(problems[i]?.includes(part), problems[i]);
    });
});

describe("the replicas of a zone are written back", () => {
  const MIRROR = "grafana.com/rollout-mirror-replicas-from-resource";
  const cases: readonly [string, string | undefined, boolean][] = [
    ["to a custom resource", "rollout-operator.grafana.com/v1", true],
    ["to a resource without a group", undefined, true],
    ["to no StatefulSet, such as another zone: its pods would seem to be missing", "apps/v1", false],
  ];
  for (const [name, apiVersion, expected] of cases)
    it(name, () => {
      const version = apiVersion === undefined ? {} : { [`${MIRROR}-api-version`]: apiVersion };
      const { value } = readScaling({}, { [`${MIRROR}-name`]: "n", [`${MIRROR}-kind`]: "K", ...version });
      assert.equal(value.mirror?.writeBack, expected);
    });
});
