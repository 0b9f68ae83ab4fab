import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import { bypassesOf, judgeGates } from "../../../reconciler/gates/hold.ts";
import { bypassesSeen, changesOf, describeOpen } from "../../../reconciler/gates/report.ts";
import type { Zone } from "../../../reconciler/model/zone.ts";
import { data, follow, gateOf, lost, noData, OTHER, SETTLED, stored, T0, viewOf } from "./builders.ts";
import { histories, holdFor, play, reasonFor, underWay, zones, zonesAt, type History, ticks } from "./play.ts";

const HOUR = 3600;
const at = (seconds: number): string => formatTimestamp(T0 + seconds * 1000);

/** These zones, with a bypass of those that are named until so many seconds after T0. */
function withBypass<Z extends Zone>(all: readonly Z[], until: number | string, names = ["zone-b"]): Z[] {
  const bypass = { until: typeof until === "number" ? at(until) : until, reason: "known alert" };
  return all.map((one) => (names.includes(one.name) ? { ...one, bypass } : one));
}

const bypassed = withBypass(zones, HOUR);
const SHORT = { zones: withBypass(zones, 60) };
const FAILING = { check: { failureThreshold: 1 } };

histories("a bypass of the gates", [
  [
    "lets its zone begin without asking, once it is stored",
    {},
    ticks([0, data], [10, data, { zones: bypassed }]),
    ["errors Waiting a GateWaiting", "- Bypassed ab free"],
  ],
  [
    "lets no other zone begin",
    {},
    [0, 10].map((seconds) => [seconds, data, { zones: withBypass(zones, HOUR, ["zone-a", "zone-c"]) }]),
    ["errors Waiting a GateWaiting", "errors Waiting a GateWaiting"],
  ],
  ...(
    [
      ["has failed", FAILING, data, "errors Failed a GateFailed"],
      ["cannot be asked", {}, lost, "errors Waiting a GateUnreachable"],
      ["has no check that can be read", { spec: { checks: [] } }, data, "- Waiting a GateWaiting"],
    ] as const
  ).map(([name, traits, answer, before]): History => [
    `passes a gate that ${name}`,
    traits,
    ticks([0, answer], [10, answer, { zones: bypassed }]),
    [before, "- Bypassed ab free"],
  ]),
  [
    "ends by itself: a zone that has not begun by then waits again",
    {},
    ticks([10, data, SHORT], [59.9, data, SHORT], [70, noData, SHORT]),
    ["- Bypassed ab free", "- Bypassed ab free", "errors Waiting a GateWaiting"],
  ],
  [
    "ends by itself: a zone that has begun goes on",
    {},
    ticks([10, data, SHORT], [61, data, { zones: withBypass(underWay, 60) }]),
    ["- Bypassed ab free", "- Bypassed ab free"],
  ],
  [
    "leaves a gate failed that had failed before, if its zone has not begun",
    FAILING,
    ticks([0, data], [10, data, SHORT], [70, noData, SHORT]),
    ["errors Failed a GateFailed", "- Bypassed ab free", "- Failed a GateFailed"],
  ],
]);

describe("a bypass of the gates", () => {
  it("counts once it is stored, until its time", () => {
    const { record } = play({}, [0, data]);
    assert.equal(holdFor({}, record, 5, bypassed)?.reason, "GateWaiting", "nobody has stored it");
    const { record: begun } = play({}, [10, data, SHORT]);
    assert.deepEqual(
      [59.9, 60, 61].map((seconds) => reasonFor({}, begun, seconds, SHORT.zones)),
      [undefined, "GateWaiting", "GateWaiting"],
    );
  });

  it("ends when it is removed, or gets another value that was not seen yet", () => {
    const { record } = play({}, [0, data, { zones: withBypass(zones, HOUR) }]);
    assert.equal(reasonFor({}, record, 1, zones), "GateWaiting");
    assert.equal(reasonFor({}, record, 1, withBypass(zones, 2 * HOUR)), "GateWaiting");
  });

  for (const [name, until, accepted] of [
    ["of 24 h counts, also by a clock that is a little ahead", 24 * HOUR + 5, true],
    ["of more is refused", 24 * HOUR + 6, false],
    ["that is over bypasses nothing", 0, true],
  ] as const)
    it(`one ${name}`, () => {
      const bypassed = withBypass(zones, until);
      const { record } = play({}, [0, data, { zones: bypassed }]);
      assert.deepEqual(record.bypasses, [{ zone: "zone-b", until: at(until), accepted, reason: "known alert" }]);
      assert.equal(reasonFor({}, record, 1, bypassed), accepted && until > 0 ? undefined : "GateWaiting");
    });

  it("one that was refused does not count later, not in another rollout, and not after the group was settled", () => {
    const far = 30 * HOUR;
    const bypassed = withBypass(zones, far);
    const { record } = play({}, [0, data, { zones: bypassed }], [10 * HOUR, data, { zones: bypassed }]);
    assert.equal(reasonFor({}, record, 10 * HOUR, bypassed), "GateWaiting");
    const done = withBypass(zonesAt("2"), far);
    const settled = follow({}, { record, view: viewOf(done, SETTLED, 11 * HOUR), answer: noData }).record;
    assert.ok(settled.settledAt !== undefined);
    const next = withBypass([...zonesAt("3").slice(0, 1), ...zonesAt("2", "3").slice(1)], far);
    const b = next[1] ?? assert.fail();
    const again = follow({}, { record: settled, view: viewOf(next, b, 12 * HOUR), answer: data }).record;
    assert.deepEqual([again.bypasses[0]?.accepted, reasonFor({}, again, 12 * HOUR, next)], [false, "GateWaiting"]);
  });

  it("counts for no longer after the clock was turned back", () => {
    const bypassed = withBypass(zones, HOUR);
    const { record } = play({}, [0, data, { zones: bypassed }]);
    assert.equal(reasonFor({}, record, -30 * HOUR, bypassed), "GateWaiting");
  });

  it("a value that is no time is none", () => {
    const { record } = play({}, [0, data, { zones: withBypass(zones, "tomorrow") }]);
    assert.deepEqual([record.bypasses, record.stages[0]?.state], [[], "Waiting"]);
  });

  it("passes the checks after the last zone only if all zones have one", () => {
    const traits = { spec: { when: ["AfterLastZone"] } };
    const done = zonesAt("2");
    const settle = (names: string[]) => {
      const all = withBypass(done, HOUR, names);
      const { record } = play(traits, [40, data, { zones: all, wanted: SETTLED }]);
      const { beforeSettled } = judgeGates([stored(traits, record)], viewOf(all, SETTLED, 41));
      return [record.stages[0]?.state, record.settledAt !== undefined, beforeSettled?.reason];
    };
    assert.deepEqual(settle(["zone-a", "zone-b"]), ["Waiting", false, "GateWaiting"]);
    assert.deepEqual(settle(["zone-a", "zone-b", "zone-c"]), ["Bypassed", true, undefined]);
  });

  it("is told of: when it is seen, when a zone begins by it, when it is refused; once each", () => {
    const bypassed = withBypass(zones, HOUR);
    const view = viewOf(bypassed, OTHER, 10);
    const waiting = play({}, [0, data]).record;
    const { record } = play({}, [0, data], [10, data, { zones: bypassed }]);
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
    const refused = play({}, [0, data, { zones: far }]).record;
    const told = bypassesSeen(waiting, refused, viewOf(far, OTHER));
    assert.deepEqual(
      told.map(({ type, reason }) => [type, reason]),
      [["Warning", "BypassRefused"]],
    );
    const over = withBypass(zones, -1);
    assert.deepEqual(bypassesSeen(waiting, play({}, [0, data, { zones: over }]).record, viewOf(over, OTHER)), []);
  });

  it("is listed once of several gates, as long as it counts", () => {
    const all = withBypass(zones, HOUR);
    const listed = (seconds: number) =>
      bypassesOf([gateOf(), gateOf({ name: "other" })], { zones: all, now: T0 + seconds * 1000 });
    assert.deepEqual(listed(0), [{ zone: "zone-b", until: T0 + HOUR * 1000, reason: "known alert" }]);
    assert.deepEqual([listed(HOUR), bypassesOf([], { zones: all, now: T0 })], [[], []]);
  });
});
