import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isBackOffOver } from "../../../reconciler/nodes/skip.ts";

const MINUTE = 60_000;

describe("the back-off after failed attempts", () => {
  for (const [minutes, count, over] of [
    [15, 4, false],
    [30, 5, false],
    [244, 5, true],
    [1, 0, false],
    [2, 0, true],
    [2.999, 1, false],
    [3, 1, true],
    [1440, 11, false],
    [1441, 11, true],
    [1441, 4_294_967_295, true],
    [1440, 4_294_967_295, false],
  ] as const)
    it(`${over ? "is over" : "lasts"} ${minutes} minutes after failure ${count}`, () =>
      assert.equal(isBackOffOver(minutes * MINUTE, count), over));

  it("lasts no longer than a day more for a time that lies ahead: the clock of a node may be wrong by years", () => {
    assert.equal(isBackOffOver(-MINUTE, 1), false);
    assert.equal(isBackOffOver(-1441 * MINUTE, 1), true);
  });
});
