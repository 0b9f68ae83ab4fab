import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readScaling } from "../../../reconciler/model/scaling.ts";

const FORCE = "grafana.com/rollout-force-replicas";

describe("F01 force-replicas", () => {
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
      const { value, problems } = readScaling({}, written === undefined ? {} : { [FORCE]: written });
      assert.deepEqual([value.forcedReplicas, problems.length > 0], [forced, complains]);
    });
  }
});
