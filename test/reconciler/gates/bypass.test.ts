import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { follow, judge, listBypasses } from "./adapter.ts";
import { data, gateObject, lost, noData, zonesOf } from "../../builders/gates.ts";
import { CREATED } from "../../builders/zones.ts";
import { factsAt, histories, type History, holdOf, play, ticks, zones } from "./play.ts";

const HOUR = 3600;
const at = (seconds: number): string => formatTimestamp(CREATED + seconds * 1000);

/** Zones by `zonesOf`, with a bypass of those of these letters until so many seconds after CREATED. */
function withBypass(text: string, until: number | string, letters = "b"): StatefulSet[] {
  const annotations = {
    "zonewise.dev/bypass-gates-until": typeof until === "number" ? at(until) : until,
    "zonewise.dev/bypass-gates-reason": "known alert",
  };
  return zonesOf(text).map((one) =>
    letters.includes(one.metadata?.name?.at(-1) ?? "-") ? { ...one, metadata: { ...one.metadata, annotations } } : one,
  );
}

/** Zone a is done. */
const ROLLING = "2 1>2 1>2";
const bypassed = withBypass(ROLLING, HOUR);
const SHORT = { zones: withBypass(ROLLING, 60) };
const FAR = { zones: withBypass(ROLLING, 30 * HOUR) };
const FAILING = { check: { failureThreshold: 1 } };

/** What a tick shows: the checks that it asks, the state of the stage, the zones that have begun, what holds zone b. */
const WAITS = "errors Waiting a GateWaiting";
const FAILS = "errors Failed a GateFailed";
const FAILED = "- Failed a GateFailed";
const BYPASSED = "- Bypassed ab free";

histories("a bypass of the gates", [
  [
    "lets its zone begin without asking, once it is stored",
    {},
    ticks([0, data], [10, data, { zones: bypassed }]),
    [WAITS, BYPASSED],
  ],
  [
    "lets no other zone begin",
    {},
    [0, 10].map((seconds) => [seconds, data, { zones: withBypass("2 1>2 1>2", HOUR, "ac") }]),
    [WAITS, WAITS],
  ],
  ...(
    [
      ["has failed", FAILING, data, FAILS],
      ["cannot be asked", {}, lost, "errors Waiting a GateUnreachable"],
      ["has no check that can be read", { spec: { checks: [] } }, data, "- Waiting a GateInvalid"],
    ] as const
  ).map(([name, traits, answer, before]): History => [
    `passes a gate that ${name}`,
    traits,
    ticks([0, answer], [10, answer, { zones: bypassed }]),
    [before, BYPASSED],
  ]),
  [
    "ends by itself: a zone that has not begun by then waits again",
    {},
    ticks([10, data, SHORT], [59.9, data, SHORT], [70, noData, SHORT]),
    [BYPASSED, BYPASSED, WAITS],
  ],
  [
    "ends by itself: a zone that has begun goes on",
    {},
    ticks([10, data, SHORT], [61, data, { zones: withBypass("2 1>2:1 1>2", 60) }]),
    [BYPASSED, BYPASSED],
  ],
  [
    "leaves a gate failed that had failed before, if its zone has not begun",
    FAILING,
    ticks([0, data], [10, data, SHORT], [70, noData, SHORT]),
    [FAILS, BYPASSED, FAILED],
  ],
  ["that is over when it is seen bypasses nothing", {}, ticks([0, data, { zones: withBypass(ROLLING, 0) }]), [WAITS]],
  [
    "of more than 24 h is refused, and does not count later",
    {},
    ticks([0, data, FAR], [10 * HOUR, data, FAR]),
    [WAITS, WAITS],
  ],
  ["that is no time is none", {}, ticks([0, data, { zones: withBypass(ROLLING, "tomorrow") }]), [WAITS]],
]);

describe("a bypass of the gates", () => {
  const heldBy = (gate: Parameters<typeof holdOf>[0], seconds: number, all: readonly StatefulSet[]) =>
    holdOf(gate, seconds, { zones: all })?.reason;

  it("counts once it is stored, until its time", () => {
    assert.equal(heldBy(play({}, [0, data]).gate, 5, bypassed), "GateWaiting", "nobody has stored it");
    const { gate } = play({}, [10, data, SHORT]);
    assert.deepEqual(
      [59.9, 60, 61].map((seconds) => heldBy(gate, seconds, SHORT.zones)),
      [undefined, "GateWaiting", "GateWaiting"],
    );
  });

  it("ends when it is removed, or gets another value that was not seen yet, or the clock was turned back", () => {
    const { gate } = play({}, [0, data, { zones: bypassed }]);
    assert.equal(heldBy(gate, 1, zones), "GateWaiting");
    assert.equal(heldBy(gate, 1, withBypass(ROLLING, 2 * HOUR)), "GateWaiting");
    assert.equal(heldBy(gate, -30 * HOUR, bypassed), "GateWaiting");
  });

  for (const [until, accepted] of [
    [24 * HOUR + 5, true],
    [24 * HOUR + 6, false],
  ] as const)
    it(`of ${until} s is ${accepted ? "accepted: the other clock may be a little ahead" : "refused"}`, () => {
      const { gate } = play({}, [0, data, { zones: withBypass(ROLLING, until) }]);
      assert.deepEqual(gate.status.bypasses, [{ zone: "zone-b", until: at(until), accepted, reason: "known alert" }]);
    });

  it("that was refused does not count in another rollout, nor after the group was settled", () => {
    const { gate } = play(
      {},
      [0, data, FAR],
      [11 * HOUR, noData, { zones: withBypass("2 2 2", 30 * HOUR), wants: "settled" }],
      [12 * HOUR, data, { zones: withBypass("3 2>3 2>3", 30 * HOUR) }],
    );
    assert.equal(heldBy(gate, 12 * HOUR, withBypass("3 2>3 2>3", 30 * HOUR)), "GateWaiting");
    assert.deepEqual(
      gate.status.bypasses?.map((one) => "accepted" in one && one.accepted),
      [false],
    );
  });

  it("passes the checks after the last zone only if all zones have one", () => {
    const settle = (letters: string) => {
      const scene = { zones: withBypass("2 2 2", HOUR, letters), wants: "settled" } as const;
      const { gate } = play({ spec: { when: ["AfterLastZone"] } }, [40, data, scene]);
      const { beforeSettled } = judge(factsAt(41, [gate], scene));
      return [gate.status.stages[0]?.state, gate.status.settledTime !== undefined, beforeSettled?.reason];
    };
    assert.deepEqual(settle("ab"), ["Waiting", false, "GateWaiting"]);
    assert.deepEqual(settle("abc"), ["Bypassed", true, undefined]);
  });

  it("is told of: when it is seen, when a zone begins by it, when it is refused; once each", () => {
    const { gate } = play({}, [0, data]);
    const { gate: seen, changes } = follow(factsAt(10, [gate], { zones: bypassed }), data);
    const [first = assert.fail(), begins = assert.fail(), ...rest] = changes;
    assert.deepEqual(
      [rest, first.regarding?.name, first.type, first.reason, first.message],
      [
        [],
        "zone-b",
        "Warning",
        "GatesBypassed",
        `zone-b may begin without its gates until ${at(HOUR)} (known alert); all other rules still apply`,
      ],
    );
    assert.deepEqual([begins.type, begins.reason], ["Warning", "GatesBypassed"]);
    assert.match(
      begins.message,
      /^between zones, before zone-b: bypassed until .* \(known alert\); check "errors" fails/,
    );
    const open = seen.status.conditions.find(({ type }) => type === "Open");
    assert.deepEqual([open?.status, open?.reason], ["True", "Bypassed"]);
    assert.deepEqual(follow(factsAt(11, [seen], { zones: bypassed }), data).changes, []);

    const tellOf = (until: number) =>
      follow(factsAt(1, [gate], { zones: withBypass(ROLLING, until) }), data).changes.map(({ type, reason }) => [
        type,
        reason,
      ]);
    assert.deepEqual([tellOf(25 * HOUR), tellOf(-1)], [[["Warning", "BypassRefused"]], []]);
  });

  it("is listed once of several gates, as long as it counts", () => {
    const gates = [gateObject(), gateObject({ name: "other" })];
    const listed = (seconds: number) => listBypasses(factsAt(seconds, gates, { zones: bypassed }));
    assert.deepEqual(listed(0), [{ zone: "zone-b", until: CREATED + HOUR * 1000, reason: "known alert" }]);
    assert.deepEqual([listed(HOUR), listBypasses(factsAt(0, [], { zones: bypassed }))], [[], []]);
  });
});
