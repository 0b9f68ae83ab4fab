/** A check that compares the pods of the new template with those that have not got it yet (§16.5). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fillPlaceholders } from "../../../reconciler/checks/placeholders.ts";
import { hasNoCandidate, phasedPlaceholders, SAMPLE_VALUES } from "../../../reconciler/phased/placeholder-values.ts";
import { hashOf } from "../../../reconciler/phased/step.ts";
import { ago, rollout, type RolloutTraits, snapshot } from "./builders.ts";
import { checking, NEWER } from "./table.ts";

const CANDIDATE = 'sum(errors{pod=~"$(candidate_pods)"})';
const OTHERS = 'sum(errors{pod=~"$(other_pods)"})';
const baseline = { expr: OTHERS, maxRatio: "2" };
const comparing = (more: object = {}): RolloutTraits => ({
  check: {
    baseline: { ...baseline, ...more },
    query: { url: "http://prom", expr: CANDIDATE, successWhen: "WithinBaseline" },
  },
});

describe("what the placeholders of a PhasedRollout stand for", () => {
  const at = (partition: number, pods: string, start = 0) => {
    const status = checking(partition, { analisysStartTime: ago(300) });
    const found = snapshot({ set: { ...NEWER, partition, start, updated: 3 - partition }, pods, status });
    assert.ok(found.target);
    return { ...found, target: found.target };
  };
  const pods = (...ordinals: number[]) => ({ kind: "pods", sets: [{ set: "db", ordinals }] });
  for (const [name, given, candidate, other] of [
    ["one pod of three", at(2, "oon"), pods(2), pods(0, 1)],
    ["two pods of three", at(1, "onn"), pods(1, 2), pods(0)],
    ["all pods", at(0, "nnn"), pods(0, 1, 2), pods()],
    ["no pod", at(3, "ooo"), pods(), pods(0, 1, 2)],
    ["pods that begin at another ordinal", at(2, "oon", 5), pods(7), pods(5, 6)],
  ] as const)
    it(name, () => {
      const values = phasedPlaceholders(given);
      assert.deepEqual([values["candidate_pods"], values["other_pods"]], [candidate, other]);
      assert.deepEqual(Object.keys(values).toSorted(), Object.keys(SAMPLE_VALUES).toSorted());
      assert.deepEqual(values["statefulset"], { kind: "name", name: "db" });
    });

  it("the range is the time since all pods were available", () =>
    assert.deepEqual(phasedPlaceholders(at(2, "oon"))["range"], { kind: "duration", seconds: 300 }));

  it("no other placeholder is there, such as those of gates", () =>
    assert.match(
      fillPlaceholders('up{a="$(zone)"}', SAMPLE_VALUES).problem ?? "",
      /^\$\(zone\) is not a placeholder here: /,
    ));
});

describe("a check with a baseline", () => {
  it("is read with its bounds, and another baseline is another check", () => {
    const { check, problem } = rollout(comparing());
    assert.equal(problem, undefined);
    assert.deepEqual(check.baseline, { expr: OTHERS, at: "Now", maxRatio: 2 });
    assert.notEqual(hashOf(check), hashOf(rollout(comparing({ maxRatio: "3" })).check));
  });

  for (const [name, traits, set, pods, expected] of [
    ["before the first pod", comparing(), { ...NEWER, updated: 0 }, "ooo", true],
    ["once a pod is updated", comparing(), { ...NEWER, partition: 2, updated: 1 }, "oon", false],
    [
      "if it compares all pods with the time before",
      { check: { ...comparing().check, query: { url: "prom", expr: "sum(errors)", successWhen: "WithinBaseline" } } },
      { ...NEWER, updated: 0 },
      "ooo",
      false,
    ],
    ["without a baseline", {}, { ...NEWER, updated: 0 }, "ooo", false],
  ] as const satisfies readonly (readonly [string, RolloutTraits, object, string, boolean])[])
    it(`${expected ? "has" : "lacks"} no candidate ${name}`, () => {
      const found = snapshot({ ...traits, set, pods });
      assert.ok(found.target);
      assert.equal(hasNoCandidate({ ...found, target: found.target }), expected);
    });
});
