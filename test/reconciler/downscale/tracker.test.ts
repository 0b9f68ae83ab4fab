import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readTracker, trackerEntry } from "../../../reconciler/downscale/tracker.ts";

const AT = Date.UTC(2026, 0, 2, 3, 4, 5);

describe("the zone tracker", () => {
  it("reads back what it writes, which is never empty", () => {
    assert.equal(trackerEntry(AT), '{"lastDownscaled":"2026-01-02T03:04:05Z"}');
    assert.deepEqual([...readTracker({ "zone-a": trackerEntry(AT) })], [["zone-a", "2026-01-02T03:04:05Z"]]);
  });

  it("without data there are no zones", () => {
    assert.equal(readTracker(undefined).size, 0);
    assert.equal(readTracker({}).size, 0);
  });

  it("has no entry for an unknown zone", () =>
    assert.equal(readTracker({ "zone-a": trackerEntry(AT) }).get("zone-b"), undefined));

  it("accepts the key in any case, as Go does", () =>
    assert.equal(readTracker({ z: '{"LASTdownscaled":"2026-01-02T03:04:05Z"}' }).get("z"), "2026-01-02T03:04:05Z"));

  for (const entry of ["", "{", "null", "[]", '{"lastDownscaled": 5}', "2026"])
    it(`returns ${JSON.stringify(entry)} unchanged, which is later refused as a time`, () =>
      assert.equal(readTracker({ z: entry }).get("z"), entry));
});
