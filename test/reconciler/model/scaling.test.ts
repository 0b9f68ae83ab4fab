import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readScaling } from "../../../reconciler/model/annotations.ts";

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
