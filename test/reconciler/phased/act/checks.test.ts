/** What a PhasedRollout asks of Prometheus. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { applySet } from "./stage.ts";
import { partitionOf, play } from "./play.ts";

const sum = (placeholder: string): string => `sum(errors{pod=~"$(${placeholder})"})`;
const SPEC = {
  query: { expr: sum("candidate_pods"), successWhen: "WithinBaseline" },
  check: { baseline: { expr: sum("other_pods"), maxRatio: "2" } },
};
const one = (value: string) => ({ kind: "Vector", samples: 1, sample: value, value, warnings: [] }) as const;

it("the first pod has nothing to compare with; the next ones wait while the updated pods are worse than the others", () =>
  play(
    {},
    async (stage) => {
      let worse = true;
      stage.answer = async () => one(worse && stage.asked.at(-1)?.expr.includes("db-(?:2)") === true ? "5" : "1");
      await stage.tickFor(10);
      await applySet(stage, "x:2");
      await stage.tickFor(60);
      assert.equal(partitionOf(stage), 2);
      assert.deepEqual(
        new Set(stage.asked.map(({ expr }) => expr)),
        new Set(['sum(errors{pod=~"(?:db-(?:2))"})', 'sum(errors{pod=~"(?:db-(?:0|1))"})']),
      );
      const message = JSON.stringify(stage.rollout().status);
      assert.match(message, /5 against a baseline of 1; at most 2 times is allowed/);
      worse = false;
      await stage.tickFor(120);
      assert.equal(stage.rollout().status.phase, "Updated");
      assert.ok(
        stage.pods().every((pod) => pod.endsWith("@x:2")),
        stage.pods().join(),
      );
    },
    SPEC,
  ));
