import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseWindow, type Window } from "../../../reconciler/model/window.ts";
import { closeCampaign, isBackOffOver, isWindowOpen } from "../../../reconciler/nodes/skip.ts";

function window(
  cron: string,
  rest: { timeZone?: string; lastStartSeconds?: number; durationSeconds?: number } = {},
): Window {
  const parsed = parseWindow({ cron, timeZone: "UTC", lastStartSeconds: 0, ...rest });
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed;
}

const opens = (cron: string, time: string, rest = {}): boolean =>
  isWindowOpen(window(cron, rest), undefined, Date.parse(time)).open;

describe("the kind of a window", () => {
  for (const [cron, kind] of [
    ["* * * * * * *", "windowed"],
    ["* * 4 1 12 * 2099", "windowed"],
    ["0-30 * * * * *", "windowed"],
    ["*/1 * 2 * * *", "windowed"],
    ["10 10 10 * * Mon *", "one-shot"],
    ["*/5 * 2 * * *", "one-shot"],
    ["0,30 * * * * *", "one-shot"],
    ["59 59 23 31 12 ? 2099", "one-shot"],
    ["@daily", "one-shot"],
  ] as const)
    it(`${cron} is ${kind}, whenever it is read`, () => assert.equal(window(cron).kind, kind));

  for (const [cron, timeZone] of [
    ["* * *", "UTC"],
    ["* * * * *", "UTC"],
    ["61 * * * * *", "UTC"],
    ["", "UTC"],
    ["* * * * * *", "Mars/Base"],
  ] as const)
    it(`refuses "${cron}" in ${timeZone}`, () =>
      assert.ok("problem" in parseWindow({ cron, timeZone, lastStartSeconds: 0 })));
});

describe("a windowed expression", () => {
  const berlin = { timeZone: "Europe/Berlin" };
  for (const [cron, time, open, rest] of [
    ["* * * * * * *", "2026-06-01T00:00:00Z", true],
    ["* * 2 * * *", "2026-06-01T02:59:59Z", true],
    ["* * 2 * * *", "2026-06-01T03:00:00Z", false],
    ["* * 21-23,0-8 * * *", "2026-06-01T08:59:59Z", true],
    ["* * 21-23,0-8 * * *", "2026-06-01T09:00:00Z", false],
    // 1 is Sunday: 2026-06-01 is a Monday.
    ["* * * * * 2", "2026-06-01T12:00:00Z", true],
    ["* * * * * 1", "2026-06-01T12:00:00Z", false],
    ["* * * * * mon", "2026-06-01T12:00:00Z", true],
    // Both days must match.
    ["* * * 1 * 2", "2026-06-01T12:00:00Z", true],
    ["* * * 1 * 3", "2026-06-01T12:00:00Z", false],
    ["* * * ? * 2", "2026-06-01T12:00:00Z", true],
    ["* * * * Jun * 2026", "2026-06-01T12:00:00Z", true],
    ["* * * * Jun * 2027", "2026-06-01T12:00:00Z", false],
    // Local time, in summer two hours ahead.
    ["* * 2 * * *", "2026-06-01T00:00:00Z", true, berlin],
    ["* * 2 * * *", "2026-06-01T02:00:00Z", false, berlin],
    // The hour that occurs twice is open twice; the one that is skipped is not.
    ["* * 2 * * *", "2026-10-25T00:30:00Z", true, berlin],
    ["* * 2 * * *", "2026-10-25T01:30:00Z", true, berlin],
    ["* * 2 * * *", "2026-10-25T02:00:00Z", false, berlin],
    ["* * 2 * * *", "2026-03-29T00:59:59Z", false, berlin],
    ["* * 2 * * *", "2026-03-29T01:00:00Z", false, berlin],
    // No start in the last ten minutes.
    ["* * 2 * * *", "2026-06-01T02:49:59Z", true, { lastStartSeconds: 600 }],
    ["* * 2 * * *", "2026-06-01T02:50:00Z", false, { lastStartSeconds: 600 }],
  ] as const)
    it(`${cron} is ${open ? "open" : "closed"} at ${time}${rest ? ` with ${JSON.stringify(rest)}` : ""}`, () =>
      assert.equal(opens(cron, time, rest), open));
});

/** Walks through times and returns those at which the one-shot was open; each campaign is over after `lasts` ticks. */
function walk(one: Window, times: readonly string[], lasts = 1): string[] {
  let campaign: ReturnType<typeof isWindowOpen>["campaign"];
  let ticks = 0;
  return times.filter((time) => {
    const now = Date.parse(time);
    const opening = isWindowOpen(one, campaign, now);
    ticks = opening.open ? ticks + 1 : 0;
    campaign = opening.open && ticks >= lasts ? closeCampaign(opening.campaign, now) : opening.campaign;
    return opening.open;
  });
}

const minutes = (from: string, count: number, step = 1): string[] =>
  Array.from({ length: count }, (_, i) => new Date(Date.parse(from) + i * step * 60_000).toISOString());

describe("a one-shot", () => {
  it("opens at the first tick after it fires, whatever second that is", () =>
    assert.deepEqual(walk(window("0 0 2 * * *"), minutes("2026-06-01T00:00:30Z", 240)), ["2026-06-01T02:00:30.000Z"]));

  it("stays open until no node is left, and opens again at its next occurrence", () =>
    assert.deepEqual(
      walk(window("0 0 2 * * *"), minutes("2026-06-01T01:59:00Z", 1500), 3),
      [...minutes("2026-06-01T02:00:00Z", 3), ...minutes("2026-06-02T02:00:00Z", 3)].map((time) =>
        new Date(time).toISOString(),
      ),
    ));

  it("does not open for what lies before it was first seen", () =>
    assert.deepEqual(walk(window("0 0 2 * * *"), minutes("2026-06-01T02:01:00Z", 60)), []));

  it("does not open when its expression changes to one that lies behind", () => {
    const seen = isWindowOpen(window("0 0 2 * * *"), undefined, Date.parse("2026-06-01T00:00:00Z")).campaign;
    const changed = isWindowOpen(window("0 0 10 * * *"), seen, Date.parse("2026-06-01T12:00:00Z"));
    assert.equal(changed.open, false);
    assert.equal(changed.campaign?.cron, "0 0 10 * * *");
  });

  it("ends after its duration", () =>
    assert.deepEqual(
      walk(window("0 0 2 * * *", { durationSeconds: 180 }), minutes("2026-06-01T01:59:00Z", 30), 99),
      minutes("2026-06-01T02:00:00Z", 3),
    ));

  it("may have one occurrence only, or none", () => {
    assert.deepEqual(walk(window("0 0 2 1 6 ? 2026"), minutes("2026-06-01T01:59:00Z", 5)), [
      "2026-06-01T02:00:00.000Z",
    ]);
    assert.deepEqual(walk(window("0 0 2 31 2 ?"), minutes("2026-06-01T01:59:00Z", 5)), []);
  });
});

it("is always open without an expression", () =>
  assert.deepEqual(isWindowOpen(undefined, undefined, 0), { open: true, campaign: undefined }));

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
      assert.equal(isBackOffOver(minutes * 60_000, count), over));

  it("lasts no longer than a day more for a time that lies ahead: the clock of a node may be wrong by years", () => {
    assert.equal(isBackOffOver(-60_000, 1), false);
    assert.equal(isBackOffOver(-1441 * 60_000, 1), true);
  });
});
