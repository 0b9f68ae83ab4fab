/** The pods that may be removed, with their answers in any order. */
import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { foldAges, shrinkTo, type Delay } from "../../../reconciler/scaling/delayed.ts";
import { zone } from "../builders.ts";

const NOW = Date.UTC(2026, 0, 2);
const DELAY: Delay = { ms: 3_600_000, url: new URL("http://pod/prepare") };

it("no pod is removed before its delay is over, nor before all pods after it", () => {
  const answer = fc.record({ order: fc.nat(), minutes: fc.integer({ min: 0, max: 120 }) });
  fc.assert(
    fc.property(fc.array(answer, { minLength: 1, maxLength: 6 }), (answers) => {
      const ages = foldAges(DELAY);
      const arrived = answers.map((given, place) => ({ ...given, place })).toSorted((a, b) => a.order - b.order);
      for (const { place, minutes } of arrived) ages.add(place, NOW - minutes * 60_000, NOW);
      const shrunk = shrinkTo(
        zone({ replicas: 10 }),
        { count: answers.length, youngest: ages.youngest() },
        { ms: DELAY.ms, now: NOW },
      );
      const lastYoung = answers.findLastIndex(({ minutes }) => minutes < 60);
      const going = answers.length - 1 - lastYoung;
      if (going === 0) assert.ok(typeof shrunk === "object" && shrunk.reason === "DelayNotReached");
      else assert.equal(shrunk, 10 - going);
    }),
  );
});
