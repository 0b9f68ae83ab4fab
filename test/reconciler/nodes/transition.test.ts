import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { STATES } from "../../../reconciler/nodes/shadow.ts";
import { moveFor, TRANSITIONS } from "../../../reconciler/nodes/transition.ts";

const REPORTED = ["none", ...STATES] as const;

/** Wanted state: what is done for none, Idle, staged, rebooted, monitoring, ErrorReset. */
const TABLE: Record<string, readonly string[]> = {
  Idle: ["wipe", "start", "wait", "wait", "wait", "wait"],
  StagedAndPerformedUpdate: ["wipe", "wait", "RebootedIntoUpdate if drainable", "wait", "wait", "reset"],
  RebootedIntoUpdate: ["wipe", "wait", "wait", "MonitoringUpdate if ready", "wait", "reset"],
  MonitoringUpdate: ["wipe", "wait", "wait", "wait", "Idle if healthy", "reset"],
  ErrorReset: ["wipe", "reset", "reset", "reset", "reset", "reset"],
};

describe("the state machine (NR6)", () => {
  for (const wanted of STATES) {
    for (const [index, reported] of REPORTED.entries()) {
      it(`wants ${wanted}, hears ${reported}: ${TABLE[wanted]?.[index]}`, () => {
        const move = moveFor(wanted, reported === "none" ? undefined : reported);
        assert.equal(
          move.move === "advance" ? `${move.to} if ${move.precondition}` : move.move,
          TABLE[wanted]?.[index],
        );
      });
    }
  }

  it("never wants ErrorReset, and leaves ErrorReset by way of Idle alone (NW1)", () => {
    const all = STATES.flatMap((wanted) => REPORTED.map((reported) => TRANSITIONS[wanted][reported]));
    assert.ok(all.every((move) => move.move !== "advance" || move.to !== ("ErrorReset" as string)));
  });

  it("does nothing more in ErrorReset once Idle is wanted (NW2)", () =>
    assert.equal(moveFor("Idle", "ErrorReset").move, "wait"));
});
