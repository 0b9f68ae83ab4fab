import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { advanceGate } from "../../../reconciler/gates/advance.ts";
import { judgeGates } from "../../../reconciler/gates/hold.ts";
import { describeValid } from "../../../reconciler/gates/report.ts";
import { data, gateOf, noData, stored, T0, viewOf } from "./builders.ts";
import { b, play, reasonFor, zones } from "./play.ts";

describe("the soak time of a gate", () => {
  it("holds the next zone although the checks have passed, and not longer", () => {
    const traits = { spec: { soakSeconds: 25 } };
    const { seen } = play(traits, [0, noData], [10, noData], [20, noData], [25, noData]);
    assert.deepEqual(seen, ["errors Waiting", "errors Waiting", "errors Waiting", "- Passed"]);
  });

  it("is no pass: the checks must succeed at its end", () => {
    const traits = { spec: { soakSeconds: 25 } };
    const { seen } = play(traits, [0, noData], [10, noData], [20, data], [30, noData], [40, noData]);
    assert.deepEqual(seen.slice(2), ["errors Waiting", "errors Waiting", "errors Passed"]);
  });

  it("is enough without checks", () => {
    const traits = { spec: { soakSeconds: 60, checks: [] } };
    const { record, seen } = play(traits, [0, noData], [59, noData]);
    assert.deepEqual(seen, ["- Waiting", "- Waiting"]);
    const hold = judgeGates([stored(traits, record)], viewOf(zones, b, 59)).holds.get(b.uid);
    assert.equal(hold?.until, T0 + 60_000);
    assert.match(
      hold.message,
      /^zone-b waits for gate gate: it soaks until 2026-01-01T00:01:00Z; since .*, next check at/,
    );
    const view = { ...viewOf(zones, b, 59), isHeld: true };
    assert.equal(advanceGate(stored(traits, record), view, new Map()).nextAt, T0 + 60_000);
    assert.deepEqual(play(traits, [0, noData], [60, noData], [61, noData]).seen.slice(1), ["- Passed", "- Passed"]);
    assert.equal(reasonFor(traits, play(traits, [0, noData], [60, noData], [61, noData]).record, 600), undefined);
    assert.equal(describeValid(gateOf(traits), true, record.stages.at(-1))?.reason, "Valid");
  });

  it("a gate without either never opens", () => {
    const traits = { spec: { checks: [] } };
    assert.equal(describeValid(gateOf(traits), true)?.reason, "SpecUnreadable");
    assert.equal(play(traits, [0, noData], [9999, noData]).record.stages.at(-1)?.state, "Waiting");
  });
});
