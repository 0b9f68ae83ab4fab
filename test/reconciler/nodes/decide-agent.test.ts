/** The agent's decision, for every pair of wanted and reported states, and for hosts that come back from a reboot. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentSnapshot, decideAgent } from "../../../reconciler/nodes/decide-agent.ts";
import { type ShadowSpec, type ShadowStatus, STATES, type State } from "../../../reconciler/nodes/shadow.ts";

const REBOOT_MS = 180_000;
const NOW = Date.parse("2026-01-01T12:00:00Z");

interface Scene {
  readonly wanted?: State;
  readonly reported?: State;
  readonly version?: string;
  readonly bootId?: string;
  readonly target?: string;
  readonly spec?: Partial<ShadowSpec>;
  readonly status?: Partial<ShadowStatus>;
}

function snapshot({
  wanted = "Idle",
  reported = "Idle",
  version = "1.0.0",
  bootId = "b-1",
  target,
  spec,
  status,
}: Scene = {}): AgentSnapshot {
  return {
    now: NOW,
    target,
    rebootMs: REBOOT_MS,
    host: { version, bootId },
    shadow: {
      spec: { state: wanted, version: "1.1.0", ...spec },
      status: {
        current_version: "1.0.0",
        target_version: "1.1.0",
        current_state: reported,
        crash_count: 2,
        boot_id: "b-1",
        ...status,
      },
    },
  };
}

/** The step, and the state that it reports. */
function shown(facts: AgentSnapshot): string {
  const step = decideAgent(facts);
  return "status" in step ? `${step.step} ${step.status.current_state}` : step.step;
}

describe("before anything is reported", () => {
  it("the shadow is created", () => assert.equal(shown({ ...snapshot(), shadow: undefined }), "create"));
  it("the first report has the versions of the host", () => {
    const step = decideAgent({
      ...snapshot({ target: "1.1.0" }),
      shadow: { spec: { state: "Idle" }, status: undefined },
    });
    assert.deepEqual(step, {
      step: "report",
      status: {
        current_version: "1.0.0",
        target_version: "1.1.0",
        current_state: "Idle",
        crash_count: 0,
        boot_id: "b-1",
      },
    });
  });
});

describe("for a wanted and a reported state", () => {
  const ACTS: Readonly<Record<string, string>> = {
    "StagedAndPerformedUpdate/Idle": "stage",
    "RebootedIntoUpdate/StagedAndPerformedUpdate": "drain",
    "MonitoringUpdate/RebootedIntoUpdate": "uncordon MonitoringUpdate",
    "Idle/StagedAndPerformedUpdate": "uncordon Idle",
    "Idle/RebootedIntoUpdate": "uncordon Idle",
    "Idle/MonitoringUpdate": "uncordon Idle",
    "Idle/ErrorReset": "uncordon Idle",
  };
  for (const wanted of STATES)
    for (const reported of STATES) {
      const expected = ACTS[`${wanted}/${reported}`] ?? "wait";
      it(`${wanted}/${reported}, the step is ${expected}`, () =>
        assert.equal(shown(snapshot({ wanted, reported })), expected));
    }
});

describe("a failed attempt", () => {
  it("keeps its count and its time on the way back to Idle; a success clears them", () => {
    const status = { state_transition_failure_timestamp: "2026-01-01T11:00:00Z", failure_reason: "why" };
    const from = (reported: State): unknown => {
      const step = decideAgent(snapshot({ reported, status }));
      return (
        "status" in step && [
          step.status.crash_count,
          step.status.state_transition_failure_timestamp,
          step.status.failure_reason,
        ]
      );
    };
    assert.deepEqual(from("ErrorReset"), [2, "2026-01-01T11:00:00Z", "why"]);
    assert.deepEqual(from("StagedAndPerformedUpdate"), [2, "2026-01-01T11:00:00Z", "why"]);
    assert.deepEqual(from("MonitoringUpdate"), [0, null, null]);
  });
});

describe("after a reboot", () => {
  const wanted = "RebootedIntoUpdate";
  const reported = "StagedAndPerformedUpdate";
  const rebooting = { boot_id: "b-1", at: "2026-01-01T11:59:00Z" };

  it("into the wanted version, first the announcement is taken back, then the node is given back", () => {
    const back = { wanted, reported, version: "1.1.0", bootId: "b-2" } as const;
    const first = decideAgent(snapshot({ ...back, status: { rebooting } }));
    assert.partialDeepStrictEqual(first, {
      step: "report",
      status: { current_state: reported, rebooting: null, boot_id: "b-2" },
    });
    assert.equal(
      shown(snapshot({ ...back, status: { rebooting: null, boot_id: "b-2" } })),
      "uncordon RebootedIntoUpdate",
    );
  });

  it("into another version it has failed, and there is no second drain", () => {
    for (const status of [{ rebooting }, {}]) {
      const step = decideAgent(snapshot({ wanted, reported, bootId: "b-2", status }));
      assert.partialDeepStrictEqual(step, {
        step: "report",
        status: {
          current_state: "ErrorReset",
          crash_count: 3,
          rebooting: null,
          state_transition_failure_timestamp: "2026-01-01T12:00:00Z",
        },
      });
      assert.match(
        "status" in step ? String(step.status.failure_reason) : "",
        /came back in 1\.0\.0 instead of 1\.1\.0/,
      );
    }
  });

  it("that nobody asked for into the staged version, the update goes on without a drain", () =>
    assert.equal(
      shown(snapshot({ wanted, reported, version: "1.1.0", bootId: "b-2" })),
      "uncordon RebootedIntoUpdate",
    ));

  it("nothing is done while an announced reboot may still come; then the node is drained again", () => {
    const at = (agoMs: number): AgentSnapshot =>
      snapshot({
        wanted,
        reported,
        status: { rebooting: { boot_id: "b-1", at: new Date(NOW - agoMs).toISOString() } },
      });
    assert.equal(shown(at(REBOOT_MS - 1)), "wait");
    assert.equal(shown(at(REBOOT_MS)), "drain");
  });

  it("that was announced and is no longer wanted is taken back before the node is given back", () => {
    const at = new Date(NOW - REBOOT_MS).toISOString();
    const step = decideAgent(snapshot({ wanted: "Idle", reported, status: { rebooting: { boot_id: "b-1", at } } }));
    assert.partialDeepStrictEqual(step, { step: "report", status: { current_state: reported, rebooting: null } });
  });
});

describe("a node at rest", () => {
  it("reports what the host chose, and nothing again if it is the same", () => {
    assert.partialDeepStrictEqual(decideAgent(snapshot({ target: "1.2.0" })), {
      step: "report",
      status: { target_version: "1.2.0" },
    });
    assert.equal(shown(snapshot({ target: "1.1.0" })), "wait");
  });
  it("reports another boot", () => assert.equal(shown(snapshot({ bootId: "b-2" })), "report Idle"));
  it("never reports the progress of a drain: it is not the agent's", () => {
    const drain = { started_at: "x", round_at: "x", remaining: 0, blocked: [] };
    const step = decideAgent(snapshot({ bootId: "b-2", status: { drain } }));
    assert.ok("status" in step && !("drain" in step.status));
  });
  it("keeps the target while an update is under way", () =>
    assert.equal(
      shown(snapshot({ wanted: "MonitoringUpdate", reported: "MonitoringUpdate", target: "1.9.0" })),
      "wait",
    ));
});
