import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import { findClosedWindow, findWindowProblem, readRolloutWindow } from "../../../reconciler/model/rollout-window.ts";
import { runs } from "../../runs.ts";

interface Settings {
  readonly window?: string;
  readonly duration?: string;
  readonly "time-zone"?: string;
  readonly freezes?: string;
}

const NAMES = {
  window: "zonewise.dev/rollout-window",
  duration: "zonewise.dev/rollout-window-duration",
  "time-zone": "zonewise.dev/rollout-window-time-zone",
  freezes: "zonewise.dev/rollout-freezes",
} as const;

const read = (settings: Settings) =>
  readRolloutWindow(
    Object.fromEntries(Object.entries(settings).map(([key, value]) => [NAMES[key as keyof Settings], value])),
  );

const at = (time: string): number => Date.parse(time);
/** `open`, or the reason with the time of the opening. */
function judge(settings: Settings, time: string): string {
  const closed = findClosedWindow(read(settings).window, at(time));
  if (!closed) return "open";
  return closed.until === undefined ? closed.reason : `${closed.reason} ${formatTimestamp(closed.until)}`;
}

const NIGHT = { window: "* * 2-4 * * Mon-Fri", "time-zone": "Europe/Berlin" };
const THREE_HOURS = { window: "0 0 22 * * Fri", duration: "3h" };
const NEW_YEAR = { freezes: "2026-12-20T00:00:00Z/2027-01-04T00:00:00+01:00" };

describe("a rollout window", () => {
  // 2026-06-01 is a Monday; Berlin is two hours ahead of UTC in June, one in winter.
  const TABLE: readonly (readonly [name: string, settings: Settings, time: string, says: string])[] = [
    ["without annotations", {}, "2026-06-01T12:00:00Z", "open"],
    ["with empty ones", { window: "", freezes: "" }, "2026-06-01T12:00:00Z", "open"],
    ["by hours, a second before", NIGHT, "2026-05-31T23:59:59Z", "WindowClosed 2026-06-01T00:00:00Z"],
    ["by hours, in their first second", NIGHT, "2026-06-01T00:00:00Z", "open"],
    ["by hours, in their last second", NIGHT, "2026-06-01T02:59:59Z", "open"],
    ["by hours, once they are over", NIGHT, "2026-06-01T03:00:00Z", "WindowClosed 2026-06-02T00:00:00Z"],
    ["over the weekend", NIGHT, "2026-06-05T03:00:00Z", "WindowClosed 2026-06-08T00:00:00Z"],
    ["in winter", NIGHT, "2026-12-01T00:30:00Z", "WindowClosed 2026-12-01T01:00:00Z"],
    ["by duration, before", THREE_HOURS, "2026-06-05T21:59:59Z", "WindowClosed 2026-06-05T22:00:00Z"],
    ["by duration, as it fires", THREE_HOURS, "2026-06-05T22:00:00Z", "open"],
    ["by duration, in its last second, on the next day", THREE_HOURS, "2026-06-06T00:59:59Z", "open"],
    ["by duration, once it is over", THREE_HOURS, "2026-06-06T01:00:00Z", "WindowClosed 2026-06-12T22:00:00Z"],
    ["that lasts until it fires again", { window: "@daily", duration: "24h" }, "2026-06-05T21:00:00Z", "open"],
    ["a freeze alone, before", NEW_YEAR, "2026-12-19T23:59:59Z", "open"],
    ["a freeze alone, in it", NEW_YEAR, "2026-12-20T00:00:00Z", "WindowClosed 2027-01-03T23:00:00Z"],
    ["a freeze alone, at its end", NEW_YEAR, "2027-01-03T23:00:00Z", "open"],
    [
      "a freeze over an open window",
      { ...NIGHT, ...NEW_YEAR },
      "2026-12-21T01:30:00Z",
      "WindowClosed 2027-01-04T01:00:00Z",
    ],
    [
      "a closed window before a freeze",
      { ...NIGHT, ...NEW_YEAR },
      "2026-12-19T12:00:00Z",
      "WindowClosed 2027-01-04T01:00:00Z",
    ],
    [
      "two freezes that overlap",
      { freezes: "2026-06-01T00:00:00Z/2026-06-03T00:00:00Z, 2026-06-02T00:00:00Z/2026-06-04T00:00:00Z" },
      "2026-06-01T12:00:00Z",
      "WindowClosed 2026-06-04T00:00:00Z",
    ],
    ["a year that is over", { window: "* * 2 * * * 2020" }, "2026-06-01T12:00:00Z", "WindowInvalid"],
    ["a day that there is not", { window: "* * 2 31 2 *" }, "2026-06-01T12:00:00Z", "WindowInvalid"],
    [
      "a last time that a freeze covers",
      { window: "* * 2 21 12 * 2026", ...NEW_YEAR },
      "2026-06-01T12:00:00Z",
      "WindowInvalid",
    ],
    ["what cannot be read", { window: "at night" }, "2026-06-01T12:00:00Z", "WindowInvalid"],
    [
      "a readable window with an unreadable freeze",
      { ...NIGHT, freezes: "December" },
      "2026-06-01T01:00:00Z",
      "WindowInvalid",
    ],
  ];
  for (const [name, settings, time, says] of TABLE)
    it(`${name}: ${says}`, () => assert.equal(judge(settings, time), says));

  it("opens at the very time that it names, and not before", () => {
    const hour = fc.integer({ min: 0, max: 23 });
    const moment = fc
      .integer({ min: at("2026-01-01T00:00:00Z"), max: at("2028-01-01T00:00:00Z") })
      .map((ms) => ms - (ms % 1000));
    const freeze = fc
      .tuple(moment, fc.integer({ min: 1, max: 30 * 86_400 }))
      .map(([from, seconds]) => `${formatTimestamp(from)}/${formatTimestamp(from + seconds * 1000)}`);
    const zone = fc.constantFrom("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe");
    const days = fc.constantFrom("*", "Mon-Fri", "Sun", "Tue,Thu");
    const windowed = fc.tuple(hour, days).map(([h, day]) => ({ window: `* * ${h} * * ${day}` }));
    const timed = fc
      .tuple(hour, days, fc.integer({ min: 1, max: 30 }))
      .map(([h, day, hours]) => ({ window: `0 30 ${h} * * ${day}`, duration: `${hours}h` }));
    const settings = fc
      .tuple(fc.oneof(windowed, timed), zone, fc.array(freeze, { maxLength: 4 }))
      .map(([window, place, freezes]) => ({ ...window, "time-zone": place, freezes: freezes.join() }));
    fc.assert(
      fc.property(settings, moment, (given, now) => {
        const { window } = read(given);
        const closed = findClosedWindow(window, now);
        if (!closed) return;
        assert.ok(closed.until !== undefined && closed.until > now, JSON.stringify(closed));
        // With another text, and the same meaning, there is no earlier answer.
        let texts = 0;
        const judge = (at: number) => {
          const past = `2000-01-01T00:00:00Z/2000-01-01T00:00:${String(++texts).padStart(2, "0")}Z`;
          return findClosedWindow(window && { ...window, freezes: [window.freezes, past].filter(Boolean).join() }, at);
        };
        assert.equal(judge(closed.until), undefined, "it is open then");
        for (const at of [closed.until - 1000, (now + closed.until) / 2]) {
          assert.notEqual(judge(at), undefined, "it is closed until then");
          assert.deepEqual(findClosedWindow(window, at), judge(at), "the earlier answer holds");
        }
      }),
      { numRuns: runs(1000) },
    );
  });

  it("is named by the freeze once one begins, though it was closed before", () => {
    const { window } = read({ window: "* * 0 * * *", freezes: "2026-08-04T05:00:00Z/2026-08-04T12:00:00Z" });
    const say = (time: string) => findClosedWindow(window, at(time))?.message;
    assert.match(say("2026-08-04T04:00:00Z") ?? "", /^window \* \* 0 \* \* \* \(UTC\) is closed/);
    assert.match(say("2026-08-04T05:00:00Z") ?? "", /^a freeze lasts until 2026-08-04T12:00:00Z/);
    assert.match(say("2026-08-04T12:00:00Z") ?? "", /^window \* \* 0 \* \* \* \(UTC\) is closed/);
  });
});

describe("annotations of a window that cannot be read are named, and close it", () => {
  const TABLE: readonly (readonly [settings: Settings, says: RegExp])[] = [
    [
      { window: "0 2 * * 1-5" },
      /rollout-window is "0 2 \* \* 1-5": it has 5 fields; there must be 6 or 7: second minute/,
    ],
    [{ window: "at night" }, /it has 2 fields/],
    [{ window: "* * 25 * * *" }, /rollout-window is "\* \* 25 \* \* \*": CronPattern: /],
    [{ window: "0 0 2 * * *" }, /it needs zonewise.dev\/rollout-window-duration: how long/],
    [{ window: "@daily" }, /needs zonewise.dev\/rollout-window-duration/],
    [
      { window: "* * 2 * * *", duration: "1h" },
      /duration is "1h": the window is open in every second that "\* \* 2 \* \* \*" matches/,
    ],
    [
      { window: "0 0 2 * * *", duration: "three hours" },
      /duration is "three hours": it must be a duration from 1s to 744h/,
    ],
    [{ window: "0 0 2 * * *", duration: "0s" }, /from 1s to 744h/],
    [{ window: "0 0 2 * * *", duration: "745h" }, /from 1s to 744h/],
    [{ window: "0 0 2 * * *", duration: "-1h" }, /from 1s to 744h/],
    [{ ...NIGHT, "time-zone": "Mars/Base" }, /time-zone is "Mars\/Base": it is not an IANA time zone/],
    [
      { freezes: "2026-12-20/2027-01-04" },
      /freezes is "2026-12-20\/2027-01-04": "2026-12-20\/2027-01-04" is not an interval/,
    ],
    [{ freezes: "2026-12-20T00:00:00Z" }, /is not an interval such as/],
    [{ freezes: "2026-12-20T00:00:00Z/2026-12-20T00:00:00Z" }, /ends before it begins/],
    [{ freezes: "2026-12-20T00:00:00Z/2027-01-04T00:00:00Z,".repeat(30) }, /more than 1000 characters/],
    [{ window: `* * 2 * * * ${"*/1,".repeat(12)}2026` }, /: its years have more than 50 characters/],
  ];
  for (const [settings, says] of TABLE)
    it(JSON.stringify(settings).slice(0, 100), () => {
      const { window } = read(settings);
      assert.match(findWindowProblem(window) ?? "", says);
      assert.equal(findClosedWindow(window, at("2026-06-01T12:00:00Z"))?.reason, "WindowInvalid");
    });

  it("settings without a window have no effect, and are named", () =>
    assert.deepEqual(read({ duration: "3h", "time-zone": "UTC" }), {
      window: undefined,
      problems: [
        "annotation zonewise.dev/rollout-window-duration has no effect without zonewise.dev/rollout-window",
        "annotation zonewise.dev/rollout-window-time-zone has no effect without zonewise.dev/rollout-window",
      ],
    }));

  it("a name that is not known is named with the one that is meant", () =>
    assert.deepEqual(readRolloutWindow({ "zonewise.dev/rollout-windows": "* * 2 * * *" }).problems, [
      "annotation zonewise.dev/rollout-windows is not known; is zonewise.dev/rollout-window meant?",
    ]));
  it("a name under the wrong prefix is named with the right one", () =>
    assert.deepEqual(readRolloutWindow({ "zonewise.dev/rollout-paused": "true" }).problems, [
      "annotation zonewise.dev/rollout-paused is not known; is grafana.com/rollout-paused meant?",
    ]));
});
