import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { objectsOf } from "../../builders/groups.ts";
import { OLD, PREVIOUS, type ZoneScene } from "../../builders/zones.ts";
import { countLeft, decideNext, listLeft } from "./adapter.ts";

describe("what is left of a rollout", () => {
  const TABLE: readonly (readonly [name: string, expected: readonly string[], zones: readonly ZoneScene[]])[] = [
    ["nothing, of zones that are updated", [], ["nnn", "nnn"]],
    ["the zones in the order of names", ["a 3: a-0 a-1 a-2", "b 3: b-0 b-1 b-2"], ["ooo", "ooo"]],
    ["the unhealthy zone first", ["b 3: b-0 b-1 b-2", "a 3: a-0 a-1 a-2"], ["ooo", "ooo ready 2"]],
    ["no paused zone", ["b 3: b-0 b-1 b-2"], ["ooo paused", "ooo"]],
    [
      "pods that serve nothing first, and pods that are not ready before those that are",
      ["a 4: a-2 a-3 a-1 a-0"],
      ["oo?oxo!"],
    ],
    ["a zone that only has to be recorded", ["a 0: "], [{ currentRevision: PREVIOUS }]],
  ];
  for (const [name, expected, zones] of TABLE)
    it(`has ${name}`, () => {
      const told = listLeft(objectsOf(zones)).map(
        ({ zone, count, pods }) => `${zone.at(-1)} ${count}: ${pods.map((pod) => pod.slice(-3)).join(" ")}`,
      );
      assert.deepEqual(told, expected);
    });

  it("begins with what the rollout does next", () => {
    for (const sketch of ["noo", "ooxo"]) {
      const objects = objectsOf([sketch, "ooo"]);
      const decision = decideNext(objects);
      const [first] = listLeft(objects);
      assert.ok(decision?.action === "deletePods");
      assert.equal(decision.zone.name, first?.zone);
      const names = decision.pods.map(({ name }) => name);
      assert.deepEqual(names, first?.pods.slice(0, names.length));
    }
  });

  const TIMES: readonly [string, readonly string[], ms: number | undefined][] = [
    ["how long half of the ready pods took", ["00:00:10", "00:01:30", "00:00:20"], 20_000],
    ["nothing if pods turned ready long after their start: they were disrupted", ["09:00:00", "08:00:00"], undefined],
  ];
  for (const [name, times, ms] of TIMES)
    it(`shows ${name}`, () => {
      const pods = times.map((time) => ({ readyAt: `2026-01-01T${time}Z` }));
      assert.equal(listLeft(objectsOf([{ ...OLD, replicas: times.length, pods }]))[0]?.msPerPod, ms);
    });

  it("names 10 pods of a zone at most", () =>
    assert.equal(listLeft(objectsOf([{ ...OLD, replicas: 50 }]))[0]?.pods.length, 10));

  it("has the same counts by status alone", () => {
    const left = countLeft(objectsOf([OLD, {}, { ...OLD, replicas: 5 }]));
    assert.deepEqual(
      left.map(({ zone, count }) => [zone.at(-1), count]),
      [
        ["a", 3],
        ["c", 5],
      ],
    );
  });
});
