import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planPass } from "../../../reconciler/nodes/plan-pass.ts";
import type { PolicyStatus } from "../../../reconciler/nodes/policy-status.ts";
import { at, busyNode, entry, node, policy, shadow, snapshot } from "./fixture.ts";

const S = "StagedAndPerformedUpdate";
const R = "RebootedIntoUpdate";
const afterReboot = busyNode("a", R, "ErrorReset", {
  node: { bootId: "boot-2" },
  status: { failure_reason: "boot-2 runs 1.0.0" },
});
const plan = (nodes: Parameters<typeof snapshot>[0], spec = {}, status: Partial<PolicyStatus> = {}) =>
  planPass(snapshot(nodes, { policy: policy(spec, status) }));

describe("a suspected bad update (NR27, NR34, NR35)", () => {
  it("freezes at the first failure after a reboot, and says which node and why", () => {
    const { status, writes, started } = plan([afterReboot, node("b")], { maxConcurrent: 2 }, { active: [entry("a")] });
    assert.deepEqual(status.frozen, {
      id: "a-20260601T120000Z",
      at: at(0),
      reason: "UpdateFailed",
      message: "a: boot-2 runs 1.0.0",
    });
    assert.deepEqual(
      status.failed.map(({ node }) => node),
      ["a"],
    );
    assert.deepEqual(
      writes.map(({ node, spec }) => `${node.name} ${spec.state}`),
      ["a Idle"],
    );
    assert.deepEqual(started, []);
    assert.deepEqual(status.skipped, { Frozen: 1 });
  });

  it("does not freeze for a failure before the reboot: that node waits", () => {
    const { status } = plan([busyNode("a", S, "ErrorReset")], {}, { active: [entry("a")] });
    assert.equal(status.frozen, undefined);
  });

  it("does not freeze for a reboot command that failed", () => {
    const { status } = plan([busyNode("a", R, "ErrorReset")], {}, { active: [entry("a")] });
    assert.equal(status.frozen, undefined);
  });

  it("freezes for a wrong version in a new boot, without a second drain (NW19)", () => {
    const { status, writes } = plan([afterReboot], {}, { active: [entry("a")] });
    assert.ok(status.frozen);
    assert.deepEqual(
      writes.map(({ spec }) => spec.state),
      ["Idle"],
    );
  });

  it("freezes at as many failures as configured", () => {
    const failed = [{ node: "z", startedAt: at(-1), to: "1.1.0", at: at(-1), reason: "UpdateFailed", message: "" }];
    assert.equal(plan([afterReboot], { maxFailed: 2 }, { active: [entry("a")] }).status.frozen, undefined);
    assert.ok(plan([afterReboot], { maxFailed: 2 }, { active: [entry("a")], failed }).status.frozen);
  });

  it("counts an attempt once, however often the step is repeated (NR20)", () => {
    const first = plan([afterReboot], { maxFailed: 2 }, { active: [entry("a")] }).status;
    assert.equal(plan([afterReboot], { maxFailed: 2 }, first).status.failed.length, 1);
  });

  const frozen = { frozen: { id: "f1", at: at(-1), reason: "RebootTimeout", message: "a" } };
  const failed = [
    { node: "a", startedAt: entry("a").startedAt, to: "1.1.0", at: at(-1), reason: "RebootTimeout", message: "" },
  ];
  const gone = busyNode("a", R, S, {
    node: { ready: false, cordonedBy: "shadow-a" },
    status: { rebooting: { boot_id: "boot-1", at: at(-1) } },
  });
  const stuck: Partial<PolicyStatus> = {
    ...frozen,
    failed,
    active: [entry("a", { phase: "Rebooting", since: at(-3600_000) })],
  };

  it("starts nothing while frozen, and reboots no node that is staged", () => {
    const { started, writes } = plan(
      [busyNode("a", S, S), node("b")],
      { maxConcurrent: 5 },
      { ...frozen, active: [entry("a", { phase: "Holding", since: at(0) })] },
    );
    assert.deepEqual([started, writes], [[], []]);
  });

  it("reboots no other node in the very pass that freezes", () => {
    const staged = busyNode("b", S, S);
    const { status, writes } = plan(
      [afterReboot, staged],
      { maxConcurrent: 2 },
      { active: [entry("a"), entry("b", { phase: "Holding" })] },
    );
    assert.ok(status.frozen);
    assert.deepEqual(
      writes.map(({ node, spec }) => `${node.name} ${spec.state}`),
      ["a Idle"],
    );
  });

  const draining = [entry("a", { phase: "Draining", since: at(0) })];

  it("puts a node back into service that is being drained when the policy freezes, and tries it again after the freeze", () => {
    const { status, writes } = plan([busyNode("a", R, S)], {}, { ...frozen, active: draining });
    assert.deepEqual(
      writes.map(({ node, spec }) => `${node.name} ${spec.state}`),
      ["a Idle"],
    );
    assert.deepEqual(
      status.deferred.map(({ node, count, reason }) => [node, count, reason]),
      [["a", 0, "Frozen"]],
    );
    assert.deepEqual(status.failed, []);
  });

  it("leaves a node cordoned that is being drained and not Ready, or whose reboot is announced", () => {
    const notReady = busyNode("a", R, S, { node: { ready: false } });
    assert.deepEqual(plan([notReady], {}, { ...frozen, active: draining }).writes, []);
    const announced = busyNode("a", R, S, { status: { rebooting: { boot_id: "boot-1", at: at(0) } } });
    assert.deepEqual(plan([announced], {}, { ...frozen, active: draining }).writes, []);
  });

  it("lets nodes that have rebooted finish while frozen", () => {
    const { writes } = plan(
      [busyNode("a", R, R, { node: { bootId: "boot-2" } })],
      {},
      { ...frozen, active: [entry("a", { phase: "Returning", since: at(0) })] },
    );
    assert.deepEqual(
      writes.map(({ spec }) => spec.state),
      ["MonitoringUpdate"],
    );
  });

  describe("a node that is frozen as it came back and did not become Ready", () => {
    const returning = (ready: boolean) =>
      busyNode("a", R, R, { node: { ready, bootId: "boot-2", cordonedBy: "shadow-a" } });
    const late = [entry("a", { phase: "Returning", since: at(-3600_000), waitsFor: "the node is not Ready" })];

    it("names its cause, over and over the same", () => {
      let { status } = plan([returning(false)], {}, { active: late });
      assert.deepEqual(
        [status.frozen?.reason, status.frozen?.message],
        ["ReturnTimeout", "a: a was in phase Returning for 15m: the node is not Ready"],
      );
      for (let i = 0; i < 3; i++) {
        ({ status } = plan([returning(false)], {}, status));
        assert.equal(status.active[0]?.waitsFor, "the node is not Ready");
      }
      assert.equal(status.failed.length, 1);
    });

    it("finishes once it is Ready, and the policy stays frozen", () => {
      const { status } = plan([returning(false)], {}, { active: late });
      const { status: after, writes } = plan([returning(true)], {}, status);
      assert.deepEqual(
        writes.map(({ spec }) => spec.state),
        ["MonitoringUpdate"],
      );
      assert.ok(after.frozen);
    });
  });

  for (const unfreeze of [undefined, "", "f0", "true"])
    it(`stays frozen with unfreeze: ${unfreeze}`, () =>
      assert.ok(plan([gone], unfreeze === undefined ? {} : { unfreeze }, stuck).status.frozen));

  it("goes on once a person has named the freeze, and the stuck node has no slot any more", () => {
    const { status, started, writes } = plan([gone, node("b")], { unfreeze: "f1" }, stuck);
    assert.deepEqual([status.frozen, status.failed], [undefined, []]);
    assert.deepEqual(
      started.map(({ name }) => name),
      ["b"],
    );
    assert.deepEqual(
      writes.map(({ node, spec }) => `${node.name} ${spec.state}`),
      ["b StagedAndPerformedUpdate", "a Idle"],
    );
    assert.deepEqual(
      status.deferred.map(({ node, reason }) => `${node} ${reason}`),
      ["a ReleasedByHand"],
    );
  });

  const twoMore = ["b", "c", "d"].map((name) => node(name));
  const startedWith = (released: Parameters<typeof snapshot>[0][number], maxConcurrent: number): number =>
    plan([released, ...twoMore], { unfreeze: "f1", maxConcurrent }, stuck).started.length;
  const isBack = { node: { bootId: "boot-2", cordonedBy: "shadow-a" } };
  const serves = { node: { bootId: "boot-2" } };
  for (const [title, released, maxConcurrent, count] of [
    ["that is cordoned by us and Ready takes a slot", busyNode("a", R, R, isBack), 2, 1],
    ["that is cordoned by us and Ready takes the only slot", busyNode("a", R, R, isBack), 1, 0],
    ["that serves takes a slot until its agent has reported", busyNode("a", R, R, serves), 2, 1],
    ["that is not Ready takes a slot", gone, 2, 1],
    ["that is not Ready, and may never be, leaves one slot", gone, 1, 1],
    ["that is at rest takes none", node("a", { shadow: shadow("a", {}, { current_version: "1.1.0" }) }), 2, 2],
    [
      "that is at rest and not Ready takes none",
      node("a", { ready: false, shadow: shadow("a", {}, { current_version: "1.1.0" }) }),
      2,
      2,
    ],
  ] as const)
    it(`a released node ${title}`, () => assert.equal(startedWith(released, maxConcurrent), count));

  it("a released node that serves takes no slot any more if its agent does not report in time, and those that wait say for whom", () => {
    const released = (ms: number) => ({ deferred: [{ node: "a", count: 1, at: at(ms), reason: "ReleasedByHand" }] });
    const of = [busyNode("a", R, R, serves), ...twoMore];
    assert.equal(plan(of, { maxConcurrent: 1 }, released(-301_000)).started.length, 1);
    assert.match(
      plan(of, { maxConcurrent: 1 }, released(-299_000)).status.waiting.at(-1)?.message ?? "",
      /; a counts until it is back in service$/,
    );
  });

  it("does not go on by an id that was used before", () => {
    const again = { ...stuck, frozen: { id: "f2", at: at(0), reason: "RebootTimeout", message: "" } };
    assert.ok(plan([gone], { unfreeze: "f1" }, again).status.frozen);
  });
});
