/** The search for occurrences of a window's expression: it finds what croner finds, and its work is bounded. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { lastOccurrence, nextOccurrence, parseWindow, type Window } from "../../../reconciler/model/window.ts";
import { runs } from "../../runs.ts";

function window(cron: string, timeZone = "UTC"): Window {
  const parsed = parseWindow({ cron, timeZone, lastStartSeconds: 0 });
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed;
}

const NOW = Date.parse("2026-11-28T00:00:00Z");

describe("an expression that never matches", () => {
  for (const [name, cron, timeZone] of [
    ["for the last weekday of a month as the fifth Sunday", "0 0 0 LW * 1#5", "UTC"],
    ["for each second of the fifth Sunday", "* * * LW * 1#5", "America/St_Johns"],
    ["for a 13th that is a fifth Friday", "0 0 0 13 * FRI#5", "Australia/Lord_Howe"],
    ["with all years in its year field", "0 0 0 LW * 1#5 1-9999", "UTC"],
    ["for a year that is over", "0 0 0 LW * * 1970", "UTC"],
    ["in the hour that each March skips", "* * 2 * 3 1L", "Europe/Berlin"],
    ["in the hour that each March skips, twice a minute", "0,30 * 2 * 3 1L", "Europe/Berlin"],
    ["in the hour that each March skips, in all years", "*/2 * 2 * 3 1L 1-9999", "Europe/Berlin"],
  ] as const)
    it(`${name} is given up after the work of some years`, (t) => {
      const read = window(cron, timeZone);
      let dates = 0;
      // croner makes a date for each day or second that it tries. Without a bound some of these tests take minutes.
      Date.UTC = (...fields) => {
        if (++dates > 30_000) throw new Error("too many dates");
        return utc(...fields);
      };
      t.after(() => {
        Date.UTC = utc;
      });
      assert.deepEqual([lastOccurrence(read, NOW), nextOccurrence(read, NOW)], [undefined, undefined]);
    });
});

const { UTC: utc } = Date;

describe("an expression that seldom matches", () => {
  for (const [cron, next] of [
    ["0 0 0 29 2 1", "2032-02-29T00:00:00Z"],
    ["0 0 0 29 2 5", undefined],
    ["* * * 29 2 ?", "2028-02-29T00:00:00Z"],
    ["0 0 0 1 1 * 2036", "2036-01-01T00:00:00Z"],
    ["0 0 0 1 1 * 2037", undefined],
  ] as const)
    it(`${cron} matches next ${next ?? "too late"}`, () =>
      assert.equal(nextOccurrence(window(cron), NOW), next && Date.parse(next)));
});

it("occurrences are those of croner, by the second, also where clocks change", () => {
  const field = (...texts: string[]) => fc.constantFrom(...texts);
  fc.assert(
    fc.property(
      fc.tuple(
        field("*", "0", "59,0", "*/2", "10-12", "0-0", "30", "*/60", "0,30"),
        field("*", "0", "30", "15-16", "*/20", "59"),
        field("*", "0", "1", "2", "2-3", "3", "23", "0,12"),
        field("*", "?", "L", "1-7", "25-31"),
        field("*", "3,10", "4,10", "MAR"),
        field("*", "1", "SUN", "1L", "2-6"),
      ),
      field("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"),
      fc.constantFrom("2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z", "2026-03-08T06:00:00Z", "2026-10-03T14:00:00Z"),
      fc.integer({ min: -4 * 3_600_000, max: 4 * 3_600_000 }),
      (fields, timeZone, near, off) => {
        const read = window(fields.join(" "), timeZone);
        const now = Date.parse(near) + off;
        // Those of an hour that is skipped in each year are the subject of another test: croner takes minutes.
        fc.pre(nextOccurrence(read, now) !== undefined);
        fc.pre((lastOccurrence(read, now) ?? 0) > Date.parse("2025-01-01T00:00:00Z"));
        const [last] = read.schedule.previousRuns(1, new Date(Math.floor(now / 1000) * 1000 + 1000));
        assert.deepEqual(
          [nextOccurrence(read, now), lastOccurrence(read, now)],
          [read.schedule.nextRun(new Date(now))?.getTime(), last?.getTime()],
        );
      },
    ),
    { numRuns: runs(1000) },
  );
});
