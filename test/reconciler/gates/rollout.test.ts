/** For which zones a gate is asked, by what it has recorded of this rollout and of those before it (§14.4). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import { follow } from "./adapter.ts";
import { data, gateObject, noData, zonesOf } from "../../builders/gates.ts";
import { begins, factsAt, holdOf, type Scene } from "./play.ts";

const ALL = ["BeforeFirstZone", "BetweenZones", "AfterLastZone"];
const BETWEEN = ["BetweenZones"];
const FIRST = ["BeforeFirstZone"];
const LAST = ["AfterLastZone"];

/** The zones, and what is wanted: a zone by its letter, or `settled`. */
type Step = `${string}: ${"a" | "b" | "settled"}`;
const OLD = "1 1 1: settled";
/** Zone a begins to get revision 2. */
const BEGUN = "1>2 1>2 1>2: a";

function sceneOf(step: Step): Scene {
  const [text = "", wants] = step.split(": ");
  return { zones: zonesOf(text), wants: wants === "settled" ? wants : `zone-${wants}` };
}

/**
 * Where the gate is asked at the last step, whose checks fail: `free` without a question. The checks of those before
 * succeed, so that a zone that they want has begun. Then the zones that have begun, those of an earlier rollout in
 * capitals; and `settled`.
 */
function play(when: readonly string[], steps: readonly Step[]): string {
  let gate: CustomObject = gateObject({ spec: { when }, check: { successThreshold: 1 } });
  const last = steps.length - 1;
  let seconds = 0;
  for (const step of steps.slice(0, last))
    for (let tick = 0; tick < 3; tick++) ({ gate } = follow(factsAt(seconds++, [gate], sceneOf(step)), noData));
  const scene = sceneOf(steps[last] ?? assert.fail());
  const followed = follow(factsAt(seconds, [gate], scene), data).gate;
  const { stages, settledTime } = followed.status;
  const zone = scene.wants === "settled" ? "" : scene.wants;
  const isHeld = zone === "" ? settledTime === undefined : holdOf(followed, seconds, scene) !== undefined;
  const point = isHeld ? (stages.find((stage) => stage.zone === zone)?.point ?? "held") : "free";
  return [point, begins(followed), settledTime === undefined ? "" : "settled"].filter((part) => part !== "").join(" ");
}

const TABLE: readonly (readonly [name: string, when: readonly string[], steps: readonly Step[], expected: string])[] = [
  ["the first zone", ALL, [OLD, BEGUN], "BeforeFirstZone"],
  ["the first zone under a gate between zones", BETWEEN, [OLD, BEGUN], "free a"],
  ["the next zone", ALL, [OLD, BEGUN, "2 1>2 1>2: b"], "BetweenZones a"],
  ["the next zone under a gate before the first zone", FIRST, [OLD, BEGUN, "2 1>2 1>2: b"], "free ab"],
  ["a zone that has begun", ALL, [OLD, BEGUN, "1>2:1 1>2 1>2: a"], "free a"],
  ["a zone on its way back", ALL, [OLD, BEGUN, "1:2 1 1: a"], "free a"],
  ["a zone that is on its way back beside others that are not", ALL, [OLD, BEGUN, "1>2:1 1 1>2: b"], "free Ab"],
  ["a zone that an unfinished rollout had begun", ALL, [OLD, BEGUN, "1>3:0/2 1>3 1>3: a"], "free a"],
  ["another zone after an unfinished rollout", ALL, [OLD, BEGUN, "1>3:0/2 1>3 1>3: b"], "BetweenZones A"],
  [
    "a second zone of an unfinished rollout: another one has begun in this one",
    BETWEEN,
    [OLD, BEGUN, "2 1>2 1>2: b", "2>3 1>3:0/2 1>3: b", "2>3 1>3:1/1 1>3: a"],
    "BetweenZones B",
  ],
  [
    "a zone that was let begin and lost no pod, after another one was wanted",
    ALL,
    [OLD, BEGUN, "1>2 1>2 1>2: b", "1>2 1>2 1>2: a"],
    "BeforeFirstZone",
  ],
  ["the only zone", ALL, ["1: settled", "1>2: a"], "BeforeFirstZone"],
  ["the first of two zones", ALL, ["1 1: settled", "1>2 1>2: a"], "BeforeFirstZone"],
  ["the second of two zones", ALL, ["1 1: settled", "2 1>2: b"], "BetweenZones A"],
  ["the only zone with pods, after one of no pods", ALL, ["1 1: settled", "2x0 1>2: b"], "BeforeFirstZone"],
  ["the only zone with pods, before one of no pods", ALL, ["1 1: settled", "1>2 1>2x0: a"], "BeforeFirstZone"],
  ["the end of a rollout", LAST, [OLD, BEGUN, "2 2 2: settled"], "AfterLastZone aBC"],
  ["the end of a rollout under a gate between zones", BETWEEN, [OLD, BEGUN, "2 2 2: settled"], "free settled"],
  ["the end of no rollout", LAST, [OLD], "free settled"],
  ["the end of a rollout of no pods", ALL, ["1 1: settled", "2x0 2x0: settled"], "free settled"],
  [
    "a zone that was made again with another template, its pods kept: it is on no way back",
    ALL,
    ["1 - 1: settled", "1 2:0 1: b"],
    "BeforeFirstZone",
  ],
  ["such a zone under a new gate", ALL, ["1 2:0 1: b"], "BetweenZones AC"],
  ["such a zone under a new gate, with a pod of the template", ALL, ["1 2:1 1: b"], "free AbC"],
  ["the next zone under a new gate, which finds one updated", BETWEEN, ["2 1>2 1>2: b"], "BetweenZones A"],
  ["the next zone under a new gate before the first zone", FIRST, ["2 1>2 1>2: b"], "BeforeFirstZone"],
  [
    "a zone of a settled group that rolls again to the same revisions: nothing of the rollout before counts",
    ALL,
    [OLD, BEGUN, "2 2 2: settled", "2 2:2 2: b"],
    "free b",
  ],
];

describe("a gate is asked for", () => {
  for (const [name, when, steps, expected] of TABLE) it(name, () => assert.equal(play(when, steps), expected));
});
