import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODE_PHASES } from "../../../reconciler/nodes/policy.ts";
import { STATES } from "../../../reconciler/nodes/shadow.ts";
import { type Move, moveFor, PHASES, phaseOf } from "../../../reconciler/nodes/state-machine.ts";
import { at, busyNode, entry, node } from "./fixture.ts";

const REPORTED = ["none", ...STATES] as const;
const toIdle = "Recovering: agent recover";
const failed = "Recovering: Idle once failed";
const towards = (phase: string) => `${phase}: nobody`;

/** Wanted state: the phase and who moves the node on for none, Idle, staged, rebooted, monitoring, ErrorReset. */
const TABLE: Record<string, readonly string[]> = {
  Idle: [towards("Recovering"), "Done: StagedAndPerformedUpdate once chosen", toIdle, toIdle, toIdle, toIdle],
  StagedAndPerformedUpdate: [
    failed,
    "Staging: agent stage",
    "Holding: RebootedIntoUpdate once drainable",
    towards("Staging"),
    towards("Staging"),
    failed,
  ],
  RebootedIntoUpdate: [
    failed,
    towards("Draining"),
    "Draining: agent reboot",
    "Returning: MonitoringUpdate once ready",
    towards("Draining"),
    failed,
  ],
  MonitoringUpdate: [
    failed,
    towards("Returning"),
    towards("Returning"),
    "Returning: agent giveBack",
    "Monitoring: Idle once healthy",
    failed,
  ],
  ErrorReset: [failed, failed, failed, failed, failed, failed],
};

function shown(move: Move): string {
  if (move.by === "agent") return `agent ${move.action}`;
  return move.by === "reconciler" ? `${move.to} once ${move.once}` : "nobody";
}

describe("the state machine", () => {
  for (const wanted of STATES) {
    for (const [index, reported] of REPORTED.entries()) {
      it(`wants ${wanted}, hears ${reported}: ${TABLE[wanted]?.[index]}`, () => {
        const one = busyNode("a", wanted, reported === "none" ? "Idle" : reported);
        const bare = { ...one, shadow: one.shadow && { ...one.shadow, status: undefined } };
        const phase = phaseOf(reported === "none" ? bare : one, entry("a", { phase: "Recovering" }));
        const move = moveFor(wanted, reported === "none" ? undefined : reported);
        assert.equal(`${phase}: ${shown(move)}`, TABLE[wanted]?.[index]);
      });
    }
  }

  it("names each pair of states in one row alone", () => {
    const pairs = NODE_PHASES.flatMap((phase) =>
      PHASES[phase].rows.flatMap(({ wanted, reported }) => wanted.flatMap((w) => reported.map((r) => `${w}/${r}`))),
    );
    assert.deepEqual(pairs.toSorted(), [...new Set(pairs)].toSorted());
  });

  it("keeps a start whose write may be lost apart from an update that is done", () => {
    const idle = node("a");
    assert.equal(phaseOf(idle, entry("a", { phase: "Starting" })), "Starting");
    assert.equal(phaseOf(idle, entry("a", { phase: "Recovering" })), "Done");
  });

  for (const [title, change] of [
    ["is announced", { status: { rebooting: { boot_id: "boot-1", at: at(0) } } }],
    ["has happened", { node: { bootId: "boot-2" } }],
  ] as const)
    it(`is Rebooting instead of Draining once the reboot ${title}`, () => {
      const draining = entry("a", { phase: "Draining", bootId: "boot-1" });
      const pair = ["RebootedIntoUpdate", "StagedAndPerformedUpdate"] as const;
      assert.equal(phaseOf(busyNode("a", ...pair), draining), "Draining");
      assert.equal(phaseOf(busyNode("a", ...pair, change), draining), "Rebooting");
    });
});
