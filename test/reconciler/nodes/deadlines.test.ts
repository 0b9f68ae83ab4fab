import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planPass } from "../../../reconciler/nodes/plan-pass.ts";
import type { UpdateNode } from "../../../reconciler/nodes/node.ts";
import type { ActiveNode } from "../../../reconciler/nodes/policy-status.ts";
import { at, busyNode, entry, FREE, MINUTE, node, NOW, policy, shadow, snapshot } from "./fixture.ts";

const S = "StagedAndPerformedUpdate";
const R = "RebootedIntoUpdate";
const M = "MonitoringUpdate";
const LATE = -24 * 60 * MINUTE;
const cordoned = { cordonedBy: "shadow-a" };
const rebooting = { rebooting: { boot_id: "boot-1", at: at(LATE) } };
const back = { bootId: "boot-2" };

interface Outcome {
  readonly slot: boolean;
  readonly idle: boolean;
  readonly frozen: boolean;
  readonly deferred?: string;
  readonly reason?: string;
}

function outcome(one: UpdateNode, stored: Partial<ActiveNode>, spec = {}): Outcome {
  const readings = new Map([["a", { ...FREE, obstacle: "zpdb exceeded", missing: "work" }]]);
  const plan = planPass(
    snapshot([one], { readings, policy: policy(spec, { active: [entry("a", { since: at(LATE), ...stored })] }) }),
  );
  const [write] = plan.writes;
  const [deferred] = plan.status.deferred;
  const reason = plan.status.failed[0]?.reason;
  return {
    slot: plan.status.active.length > 0,
    idle: write?.spec.state === "Idle",
    frozen: plan.status.frozen !== undefined,
    ...(deferred && { deferred: `${deferred.reason} ${deferred.count}` }),
    ...(reason !== undefined && { reason }),
  };
}

describe("a deadline (NW3)", () => {
  for (const [title, one, stored, expected] of [
    [
      "frees the slot of a node that does not stage",
      busyNode("a", S, "Idle"),
      { phase: "Staging" },
      { slot: false, idle: true, frozen: false, deferred: "StagingTimeout 1" },
    ],
    [
      "freezes if that node is not Ready",
      busyNode("a", S, "Idle", { node: { ready: false } }),
      { phase: "Staging" },
      { slot: true, idle: false, frozen: true, reason: "StagingTimeout" },
    ],
    [
      "sends back a node that is held too long, without a failure",
      busyNode("a", S, S),
      { phase: "Holding" },
      { slot: false, idle: true, frozen: false, deferred: "HeldTooLong 0" },
    ],
    [
      "undoes a drain that does not end, and keeps the slot until that is done",
      busyNode("a", R, S, { node: cordoned }),
      { phase: "Draining" },
      { slot: true, idle: true, frozen: false, deferred: "DrainTimeout 1" },
    ],
    [
      "freezes if a draining node is not Ready",
      busyNode("a", R, S, { node: { ...cordoned, ready: false } }),
      { phase: "Draining" },
      { slot: true, idle: false, frozen: true, reason: "DrainTimeout" },
    ],
    [
      "freezes for a node that does not come back from its reboot",
      busyNode("a", R, S, { node: { ...cordoned, ready: false }, status: rebooting }),
      { phase: "Rebooting" },
      { slot: true, idle: false, frozen: true, reason: "RebootTimeout" },
    ],
    [
      "freezes for a node that was to reboot and did not",
      busyNode("a", R, S, { node: cordoned, status: rebooting }),
      { phase: "Rebooting" },
      { slot: true, idle: false, frozen: true, reason: "RebootTimeout" },
    ],
    [
      "freezes for a node whose agent does not report after the reboot",
      busyNode("a", R, S, { node: { ...cordoned, ...back } }),
      { phase: "Rebooting" },
      { slot: true, idle: false, frozen: true, reason: "RebootTimeout" },
    ],
    [
      "freezes for a node that came back and is not Ready",
      busyNode("a", R, R, { node: { ...back, ready: false } }),
      { phase: "Returning" },
      { slot: true, idle: false, frozen: true, reason: "ReturnTimeout" },
    ],
    [
      "freezes for a node that serves again and whose agent does not say so",
      busyNode("a", M, R, { node: back }),
      { phase: "Returning" },
      { slot: true, idle: false, frozen: true, reason: "ReturnTimeout" },
    ],
    [
      "freezes for a node whose work does not come back, and lets it go (NR34)",
      busyNode("a", M, M, { node: { ...back, readySince: 0 }, status: { current_version: "1.1.0" } }),
      { phase: "Monitoring" },
      { slot: true, idle: true, frozen: true, deferred: "HealthTimeout 1", reason: "HealthTimeout" },
    ],
    [
      "frees the slot of a node in service whose agent does not report Idle",
      busyNode("a", "Idle", M, { node: back }),
      { phase: "Recovering" },
      { slot: false, idle: false, frozen: false, deferred: "RecoveryTimeout 1" },
    ],
    [
      "freezes for a node that does not become Ready again",
      busyNode("a", "Idle", "ErrorReset", { node: { ready: false } }),
      { phase: "Recovering" },
      { slot: true, idle: false, frozen: true, reason: "RecoveryTimeout" },
    ],
    [
      "drops a start that is no longer wanted",
      node("a", { shadow: shadow("a", {}, { target_version: "1.0.0" }) }),
      { phase: "Starting" },
      { slot: false, idle: false, frozen: false, deferred: "StartDropped 0" },
    ],
  ] as const)
    it(title, () => assert.deepEqual(outcome(one, stored), expected));

  for (const [phase, one, ms] of [
    ["Staging", busyNode("a", S, "Idle"), 1800_000],
    ["Holding", busyNode("a", S, S), 600_000],
    ["Draining", busyNode("a", R, S), 3600_000],
    ["Rebooting", busyNode("a", R, S, { status: rebooting }), 900_000],
    ["Returning", busyNode("a", R, R, { node: { ready: false } }), 900_000],
    ["Monitoring", busyNode("a", M, M), 960_000],
    ["Recovering", busyNode("a", "Idle", "ErrorReset"), 300_000],
  ] as const)
    it(`${phase} lasts ${ms / 1000} s by default`, () => {
      const quiet = { slot: true, idle: false, frozen: false };
      assert.deepEqual(outcome(one, { phase, since: at(-ms + 1000) }), quiet);
      assert.notDeepEqual(outcome(one, { phase, since: at(-ms) }), quiet);
    });

  it("gives a forced reboot its time before the drain is undone", () => {
    const draining = busyNode("a", R, S, { node: cordoned });
    const forced = { drain: { onTimeout: "Reboot" } };
    assert.equal(outcome(draining, { phase: "Draining", since: at(-3600_000) }, forced).idle, false);
    assert.equal(outcome(draining, { phase: "Draining", since: at(-4500_000) }, forced).idle, true);
  });

  it("starts again with each phase", () => {
    const plan = planPass(
      snapshot([busyNode("a", S, S)], {
        policy: policy({}, { active: [entry("a", { phase: "Staging", since: at(LATE) })] }),
      }),
    );
    assert.deepEqual(plan.status.active[0]?.since, at(0));
  });
});

describe("a node that loses its label (NW13)", () => {
  for (const [title, one, phase, idle] of [
    ["is sent back while it stages", busyNode("a", S, "Idle", { node: { managed: false } }), "Staging", true],
    [
      "is sent back while it is drained",
      busyNode("a", R, S, { node: { managed: false, ...cordoned } }),
      "Draining",
      true,
    ],
    [
      "is left alone while it reboots",
      busyNode("a", R, S, { node: { managed: false, ...cordoned }, status: rebooting }),
      "Rebooting",
      false,
    ],
    [
      "is left alone while it comes back and is not Ready",
      busyNode("a", R, S, { node: { managed: false, ...cordoned, ...back, ready: false }, status: rebooting }),
      "Rebooting",
      false,
    ],
    [
      "is sent back once it has rebooted: nobody else would uncordon it",
      busyNode("a", R, S, { node: { managed: false, ...cordoned, ...back }, status: rebooting }),
      "Rebooting",
      true,
    ],
    [
      "is sent back once it has returned",
      busyNode("a", M, R, { node: { managed: false, ...back } }),
      "Returning",
      true,
    ],
  ] as const)
    it(title, () => {
      const result = outcome(one, { phase, since: at(0) });
      assert.deepEqual([result.slot, result.idle], [true, idle]);
    });

  for (const [title, one, slot] of [
    ["leaves its slot at once when it serves again: its agent is gone with the label", { managed: false }, false],
    ["keeps its slot while it is not Ready", { managed: false, ready: false }, true],
    ["keeps its slot while our cordon is on it", { managed: false, ...cordoned }, true],
    ["keeps its slot while its agent can report", { managed: true }, true],
  ] as const)
    it(title, () =>
      assert.equal(outcome(busyNode("a", "Idle", S, { node: one }), { phase: "Recovering", since: at(0) }).slot, slot),
    );

  for (const [title, more, slot] of [
    ["leaves its slot when it serves again, though its shadow is gone, too", {}, false],
    ["keeps its slot without a shadow while our cordon is on it", cordoned, true],
    ["keeps its slot without a shadow while it is not Ready", { ready: false }, true],
  ] as const)
    it(title, () => {
      const { shadow: _, ...one } = busyNode("a", "Idle", S, { node: { managed: false, ...more } });
      const without = { ...one, shadow: undefined };
      assert.equal(outcome(without, { phase: "Recovering", since: at(0) }).slot, slot);
    });

  it("leaves its slot in the boot after the announced one", () =>
    assert.equal(
      outcome(busyNode("a", "Idle", S, { node: { managed: false, ...back }, status: rebooting }), {
        phase: "Recovering",
        since: at(0),
      }).slot,
      false,
    ));

  it("keeps its slot while a reboot is announced", () =>
    assert.equal(
      outcome(busyNode("a", "Idle", S, { node: { managed: false }, status: rebooting }), {
        phase: "Recovering",
        since: at(0),
      }).slot,
      true,
    ));
});

describe("a drain that does not end in time", () => {
  const blocked = [
    { namespace: "shop", name: "db-0", reason: "DisruptionBudget", message: "db allows no disruption" },
    { namespace: "shop", name: "web", reason: "Terminating" },
  ];
  const drain = { started_at: at(LATE), round_at: at(0), remaining: 3, blocked };
  const stuck = busyNode("a", R, S, { node: cordoned, status: { drain } });
  const plan = (one: UpdateNode, active: readonly ActiveNode[]) =>
    planPass(snapshot([one], { policy: policy({}, { active: [...active] }) }));
  const draining = [entry("a", { phase: "Draining", since: at(LATE), waitsFor: "its agent" })];
  const message =
    "a was in phase Draining for 1h: 3 pods are left, shop/db-0 (DisruptionBudget: db allows no disruption), shop/web (Terminating)";

  it("names the pods that are left, and what keeps each", () =>
    assert.deepEqual(plan(stuck, draining).status.active[0]?.ending, { reason: "DrainTimeout", message }));

  it("ends as that, once the node is back in service, and not as a failed update", () => {
    const { status, steps } = plan(stuck, draining);
    assert.deepEqual(steps[0]?.step.step, "reset");
    const back = node("a", { shadow: shadow("a", { version: "1.1.0" }, {}) });
    const end = planPass(snapshot([back], { policy: policy({}, status) }));
    assert.partialDeepStrictEqual(end.steps[0]?.step, { step: "release", reason: "DrainTimeout", message });
    assert.deepEqual(
      end.status.deferred.map(({ reason, count }) => [reason, count]),
      [["DrainTimeout", 1]],
    );
  });

  it("counts once, and is written once, however often its shadow cannot be written", () => {
    const first = plan(stuck, draining).status;
    const again = planPass(snapshot([stuck], { now: NOW + 5000, policy: policy({}, first) }));
    assert.deepEqual([again.status, again.writes.map(({ spec }) => spec.state)], [first, ["Idle"]]);
  });

  it("keeps its first reason if another one comes while it is undone", () => {
    const { status } = plan(stuck, draining);
    const failing = busyNode("a", R, "ErrorReset", { node: cordoned });
    assert.equal(plan(failing, status.active).status.active[0]?.ending?.reason, "DrainTimeout");
  });
});
