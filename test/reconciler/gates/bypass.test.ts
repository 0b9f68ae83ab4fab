import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import { bypassesOf, judgeGates } from "../../../reconciler/gates/hold.ts";
import type { GateRecord } from "../../../reconciler/gates/record.ts";
import { bypassesSeen, changesOf, describeOpen } from "../../../reconciler/gates/report.ts";
import type { Wanted } from "../../../reconciler/gates/rollout.ts";
import type { Zone } from "../../../reconciler/model/zone.ts";
import { data, follow, gateOf, lost, noData, OTHER, SETTLED, settledRecord, stored, T0, viewOf } from "./builders.ts";
import { a, began, start, underWay, zones, zonesAt, type Kind } from "./play.ts";

const HOUR = 3600;
const at = (seconds: number): string => formatTimestamp(T0 + seconds * 1000);

/** These zones, with a bypass of those that are named until so many seconds after T0. */
function withBypass<Z extends Zone>(all: readonly Z[], until: number | string, names = ["zone-b"]): Z[] {
  const bypass = { until: typeof until === "number" ? at(until) : until, reason: "known alert" };
  return all.map((one) => (names.includes(one.name) ? { ...one, bypass } : one));
}

interface Tick {
  readonly zones: readonly Zone[];
  readonly seconds: number;
  readonly wanted?: Wanted | undefined;
  readonly answer?: Kind;
}

/** Zone a has begun; then these ticks, in which the rollout wants zone b unless they say otherwise. */
function play(traits: Parameters<typeof follow>[0], ...ticks: readonly Tick[]) {
  let { record } = follow(traits, {
    record: settledRecord(zonesAt("1"), traits),
    view: viewOf(start, a),
    answer: noData,
  });
  const seen: string[] = [];
  for (const { zones: all, seconds, wanted, answer = data } of ticks) {
    const b = all.find(({ name }) => name === "zone-b") ?? assert.fail();
    const next = follow(traits, { record, view: viewOf(all, wanted ?? b, seconds), answer });
    seen.push(`${next.asked.join() || "-"} ${next.record.stages.at(-1)?.state ?? "none"} ${began(next.record)}`);
    ({ record } = next);
  }
  return { record, seen };
}

function holdOf(all: readonly Zone[], record: GateRecord, seconds: number, traits = {}) {
  const b = all.find(({ name }) => name === "zone-b") ?? assert.fail();
  return judgeGates([stored(traits, record)], viewOf(all, b, seconds)).holds.get(b.uid);
}

describe("a bypass of the gates", () => {
  it("lets its zone begin without asking, once it is stored", () => {
    const bypassed = withBypass(zones, HOUR);
    const before = play({}, { zones, seconds: 0 }).record;
    assert.equal(holdOf(bypassed, before, 5)?.reason, "GateWaiting", "nobody has stored it");
    const { record, seen } = play({}, { zones, seconds: 0 }, { zones: bypassed, seconds: 10 });
    assert.deepEqual(seen, ["errors Waiting zone-a", "- Bypassed zone-a,zone-b"]);
    assert.equal(holdOf(bypassed, record, 11), undefined);
  });

  it("lets no other zone begin", () => {
    const all = withBypass(zones, HOUR, ["zone-a", "zone-c"]);
    const { seen } = play({}, { zones: all, seconds: 0 }, { zones: all, seconds: 10 });
    assert.deepEqual(seen, ["errors Waiting zone-a", "errors Waiting zone-a"]);
  });

  for (const [name, traits, answer] of [
    ["has failed", { check: { failureThreshold: 1 } }, data],
    ["cannot be asked", {}, lost],
    ["has no check that can be read", { spec: { checks: [] } }, data],
    ["only observes", { spec: { mode: "Observe" } }, data],
  ] as const)
    it(`passes a gate that ${name}`, () => {
      const bypassed = withBypass(zones, HOUR);
      const { record, seen } = play(traits, { zones, seconds: 0, answer }, { zones: bypassed, seconds: 10, answer });
      assert.match(seen.at(-1) ?? "", /^- Bypassed (zone-a,)?zone-b$/);
      assert.equal(holdOf(bypassed, record, 11, traits), undefined);
    });

  it("ends by itself: a zone that has not begun by then waits again, and one that has goes on", () => {
    const bypassed = withBypass(zones, 60);
    const { record } = play({}, { zones, seconds: 0 }, { zones: bypassed, seconds: 10 });
    assert.deepEqual(
      [59.9, 60, 61].map((seconds) => holdOf(bypassed, record, seconds)?.reason),
      [undefined, "GateWaiting", "GateWaiting"],
    );
    assert.equal(holdOf(withBypass(underWay, 60), record, 61), undefined);
    const after = play({}, { zones: bypassed, seconds: 10 }, { zones: bypassed, seconds: 70, answer: noData });
    assert.deepEqual(after.seen, ["- Bypassed zone-a,zone-b", "errors Waiting zone-a"]);
  });

  it("ends when it is removed, or gets another value that was not seen yet", () => {
    const { record } = play({}, { zones: withBypass(zones, HOUR), seconds: 0 });
    assert.equal(holdOf(zones, record, 1)?.reason, "GateWaiting");
    assert.equal(holdOf(withBypass(zones, 2 * HOUR), record, 1)?.reason, "GateWaiting");
  });

  it("leaves a gate failed that had failed before, if its zone has not begun", () => {
    const traits = { check: { failureThreshold: 1 } };
    const bypassed = withBypass(zones, 60);
    const ticks = [
      { zones, seconds: 0 },
      { zones: bypassed, seconds: 10 },
      { zones: bypassed, seconds: 70, answer: noData },
    ];
    assert.deepEqual(play(traits, ...ticks).seen, [
      "errors Failed zone-a",
      "- Bypassed zone-a,zone-b",
      "- Failed zone-a",
    ]);
  });

  for (const [name, until, accepted] of [
    ["of 24 h counts, also by a clock that is a little ahead", 24 * HOUR + 5, true],
    ["of more is refused", 24 * HOUR + 6, false],
    ["that is over bypasses nothing", 0, true],
  ] as const)
    it(`one ${name}`, () => {
      const bypassed = withBypass(zones, until);
      const { record } = play({}, { zones: bypassed, seconds: 0 });
      assert.deepEqual(record.bypasses, [{ zone: "zone-b", until: at(until), accepted, reason: "known alert" }]);
      assert.equal(holdOf(bypassed, record, 1)?.reason, accepted && until > 0 ? undefined : "GateWaiting");
    });

  it("one that was refused does not count later, not in another rollout, and not after the group was settled", () => {
    const far = 30 * HOUR;
    const bypassed = withBypass(zones, far);
    const { record } = play({}, { zones: bypassed, seconds: 0 }, { zones: bypassed, seconds: 10 * HOUR });
    assert.equal(holdOf(bypassed, record, 10 * HOUR)?.reason, "GateWaiting");
    const done = withBypass(zonesAt("2"), far);
    const settled = follow({}, { record, view: viewOf(done, SETTLED, 11 * HOUR), answer: noData }).record;
    assert.ok(settled.settledAt !== undefined);
    const next = withBypass([...zonesAt("3").slice(0, 1), ...zonesAt("2", "3").slice(1)], far);
    const b = next[1] ?? assert.fail();
    const again = follow({}, { record: settled, view: viewOf(next, b, 12 * HOUR), answer: data }).record;
    assert.deepEqual([again.bypasses[0]?.accepted, holdOf(next, again, 12 * HOUR)?.reason], [false, "GateWaiting"]);
  });

  it("counts for no longer after the clock was turned back", () => {
    const bypassed = withBypass(zones, HOUR);
    const { record } = play({}, { zones: bypassed, seconds: 0 });
    assert.equal(holdOf(bypassed, record, -30 * HOUR)?.reason, "GateWaiting");
  });

  it("a value that is no time is none", () => {
    const { record } = play({}, { zones: withBypass(zones, "tomorrow"), seconds: 0 });
    assert.deepEqual([record.bypasses, record.stages[0]?.state], [[], "Waiting"]);
  });

  it("passes the checks after the last zone only if all zones have one", () => {
    const traits = { spec: { when: ["AfterLastZone"] } };
    const done = zonesAt("2");
    const settle = (names: string[]) => {
      const all = withBypass(done, HOUR, names);
      const { record } = play(traits, { zones: all, seconds: 40, wanted: SETTLED });
      const { beforeSettled } = judgeGates([stored(traits, record)], viewOf(all, SETTLED, 41));
      return [record.stages[0]?.state, record.settledAt !== undefined, beforeSettled?.reason];
    };
    assert.deepEqual(settle(["zone-a", "zone-b"]), ["Waiting", false, "GateWaiting"]);
    assert.deepEqual(settle(["zone-a", "zone-b", "zone-c"]), ["Bypassed", true, undefined]);
  });

  it("is told of: when it is seen, when a zone begins by it, when it is refused; once each", () => {
    const bypassed = withBypass(zones, HOUR);
    const view = viewOf(bypassed, OTHER, 10);
    const waiting = play({}, { zones, seconds: 0 }).record;
    const { record } = play({}, { zones, seconds: 0 }, { zones: bypassed, seconds: 10 });
    const [seen = assert.fail(), ...rest] = bypassesSeen(waiting, record, view);
    assert.deepEqual(
      [rest, seen.regarding?.name, seen.type, seen.reason, seen.message],
      [
        [],
        "zone-b",
        "Warning",
        "GatesBypassed",
        `zone-b may begin without its gates until ${at(HOUR)} (known alert); all other rules still apply`,
      ],
    );
    assert.deepEqual(bypassesSeen(record, record, view), []);
    const [change = assert.fail()] = changesOf(gateOf(), waiting, record);
    assert.deepEqual([change.type, change.reason], ["Warning", "GatesBypassed"]);
    assert.match(
      change.message,
      /^between zones, before zone-b: bypassed until .* \(known alert\); check "errors" fails/,
    );
    assert.deepEqual(
      [describeOpen(gateOf(), record).status, describeOpen(gateOf(), record).reason],
      ["True", "Bypassed"],
    );

    const far = withBypass(zones, 25 * HOUR);
    const refused = play({}, { zones: far, seconds: 0 }).record;
    const told = bypassesSeen(waiting, refused, viewOf(far, OTHER));
    assert.deepEqual(
      told.map(({ type, reason }) => [type, reason]),
      [["Warning", "BypassRefused"]],
    );
    const over = withBypass(zones, -1);
    assert.deepEqual(bypassesSeen(waiting, play({}, { zones: over, seconds: 0 }).record, viewOf(over, OTHER)), []);
  });

  it("is listed once of several gates, as long as it counts", () => {
    const all = withBypass(zones, HOUR);
    const listed = (seconds: number) =>
      bypassesOf([gateOf(), gateOf({ name: "other" })], { zones: all, now: T0 + seconds * 1000 });
    assert.deepEqual(listed(0), [{ zone: "zone-b", until: T0 + HOUR * 1000, reason: "known alert" }]);
    assert.deepEqual([listed(HOUR), bypassesOf([], { zones: all, now: T0 })], [[], []]);
  });
});
