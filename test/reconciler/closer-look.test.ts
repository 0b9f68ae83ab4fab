import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { dueForCloserLook } from "../../reconciler/closer-look.ts";

const PERIOD = 5 * 60_000;

describe("the closer look", () => {
  it("is due for every group when none is on record, when the last is a period ago, or when the clock went back", () => {
    for (const [lookedUntil, now] of [
      [undefined, 1000],
      [0, PERIOD],
      [5000, 4000],
    ] as const)
      assert.ok(dueForCloserLook(lookedUntil, now)("ns/group"));
  });

  it("comes to every group exactly once a period, however long the ticks take", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.integer({ min: 1, max: 90_000 }), { minLength: 1, size: "max", maxLength: 200 }),
        fc.nat(2 ** 40),
        (key, pauses, start) => {
          let now = start;
          let looks = 0;
          for (const pause of pauses) {
            const until = now;
            now += pause;
            if (now - start > PERIOD) break;
            if (dueForCloserLook(until, now)(key)) looks++;
          }
          assert.ok(looks <= 1);
          if (now - start >= PERIOD && pauses.length > 1) assert.ok(looks + Number(dueForCloserLook(start, start + PERIOD)(key)) >= 1);
        },
      ),
    );
  });

  it("spreads the groups over the period", () => {
    const due = dueForCloserLook(0, PERIOD / 2);
    const count = Array.from({ length: 1000 }, (_, i) => `ns/group-${i}`).filter(due).length;
    assert.ok(count > 400 && count < 600, `${count} of 1000`);
  });
});
