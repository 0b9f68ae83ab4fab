/** The lifecycle conditions of nodes: what is written of an update, and whose conditions are obeyed. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import {
  type ActiveUpdate,
  hasOurConditions,
  LIFECYCLE_TYPES,
  type LifecycleCondition,
  type LifecycleType,
  maintenanceOf,
  OUR_REASON,
  planConditions,
  readLifecycle,
} from "../../../reconciler/nodes/lifecycle-conditions.ts";
import { planPass } from "../../../reconciler/nodes/plan-pass.ts";
import { NODE_PHASES, type NodePhase } from "../../../reconciler/nodes/policy-status.ts";
import { PRECONDITIONS } from "../../../reconciler/nodes/preconditions.ts";
import { entry, node, NOW, policy, snapshot } from "./fixture.ts";

const condition = (type: LifecycleCondition["type"], more: Partial<LifecycleCondition> = {}): LifecycleCondition => ({
  type,
  status: "True",
  reason: "AdminRequested",
  message: "",
  ...more,
});
const update = (phase: NodePhase, isDrained = true): ActiveUpdate => ({
  phase,
  to: "1.1.0",
  policy: "default",
  isDrained,
});
interface Written {
  readonly type: LifecycleType;
  readonly status: string;
  readonly reason: string;
  readonly lastTransitionTime?: string;
}

function written(lifecycle: readonly LifecycleCondition[], active: ActiveUpdate | undefined, cordonedBy?: string) {
  const plan = planConditions([node("a", { lifecycle, cordonedBy })], new Map(active ? [["a", active]] : []), NOW);
  return plan.flatMap(({ patch }) => patch.status.conditions) as Written[];
}
const brief = (list: readonly Written[]): string[] => list.map(({ type, status }) => `${type}=${status}`);

describe("what is written of a node", () => {
  for (const [phase, cordonedBy, expected] of [
    ["Starting", undefined, ["MaintenancePlanned=True"]],
    ["Staging", undefined, ["MaintenancePlanned=True"]],
    ["Holding", undefined, ["MaintenancePlanned=True"]],
    ["Draining", "s", ["DrainInProgress=True", "MaintenancePlanned=True"]],
    ["Rebooting", "s", ["Drained=True", "MaintenanceInProgress=True"]],
    ["Returning", "s", ["MaintenanceInProgress=True"]],
    ["Monitoring", "s", ["MaintenanceInProgress=True"]],
    ["Monitoring", undefined, []],
    ["Recovering", undefined, []],
  ] as const)
    it(`in ${phase}, ${cordonedBy ? "cordoned" : "schedulable"}: ${expected.join(", ") || "nothing"}`, () =>
      assert.deepEqual(brief(written([], update(phase), cordonedBy)), expected));

  it("has no Drained if pods were left", () =>
    assert.deepEqual(brief(written([], update("Rebooting", false), "s")), ["MaintenanceInProgress=True"]));

  it("clears what of ours is over, whoever wrote it, and nothing else", () => {
    const ours = LIFECYCLE_TYPES.map((type) => condition(type, { reason: OUR_REASON }));
    assert.deepEqual(
      brief(written(ours, undefined)),
      LIFECYCLE_TYPES.map((type) => `${type}=False`),
    );
    assert.deepEqual(
      written(
        LIFECYCLE_TYPES.map((type) => condition(type)),
        undefined,
      ),
      [],
    );
  });

  it("never takes over a condition that is somebody else's, and may write one that is False", () => {
    assert.deepEqual(brief(written([condition("DrainInProgress")], update("Draining"))), ["MaintenancePlanned=True"]);
    const over = condition("DrainInProgress", { status: "False" });
    assert.deepEqual(brief(written([over], update("Draining"))), ["DrainInProgress=True", "MaintenancePlanned=True"]);
  });

  it("is written once: a second pass over what was written writes nothing", () => {
    for (const phase of NODE_PHASES) {
      const first = written([], update(phase), "s");
      const stored = readLifecycle({ conditions: first });
      assert.deepEqual(written(stored, update(phase), "s"), [], phase);
      assert.equal(hasOurConditions({ lifecycle: stored }), first.length > 0);
    }
  });

  it("turns with its status alone: another version keeps the time", () => {
    const stored = [condition("MaintenancePlanned", { reason: OUR_REASON, message: "an earlier one" })];
    assert.equal(written(stored, update("Staging"))[0]?.lastTransitionTime, undefined);
    assert.notEqual(written([], update("Staging"))[0]?.lastTransitionTime, undefined);
  });

  it("is never that the node shuts down: it says so itself, also where we reboot it", () => {
    const shutdown = condition("GracefulNodeShutdownInProgress", { reason: OUR_REASON });
    assert.deepEqual(written([shutdown], undefined), []);
    assert.equal(hasOurConditions({ lifecycle: [shutdown] }), false);
    for (const phase of NODE_PHASES)
      assert.deepEqual(written([shutdown], update(phase), "s"), written([], update(phase), "s"), phase);
  });

  it("is nothing where they are not asked for", () =>
    assert.deepEqual(planConditions([node("a")], new Map([["a", update("Draining")]]), NOW), []));
});

describe("a condition of somebody else", () => {
  for (const type of [
    "DrainInProgress",
    "Drained",
    "MaintenanceInProgress",
    "GracefulNodeShutdownInProgress",
  ] as const) {
    const maintained = node("a", { lifecycle: [condition(type)] });
    it(`${type} keeps a node from a start, and takes a slot`, () => {
      const { status, ...plan } = planPass(snapshot([maintained, node("b")]));
      assert.deepEqual(
        status.waiting.map(({ node, reason }) => [node, reason]),
        [
          ["a", "InMaintenance"],
          ["b", "LimitReached"],
        ],
      );
      assert.match(
        status.waiting[1]?.message ?? "",
        new RegExp(`; a counts until somebody clears its condition ${type}$`),
      );
      assert.equal(status.active.length, 0, JSON.stringify(plan));
      const two = planPass(snapshot([maintained, node("b"), node("c")], { policy: policy({ maxConcurrent: 2 }) }));
      assert.deepEqual(
        two.status.active.map(({ node }) => node),
        ["b"],
      );
    });
    it(`${type} keeps a node that is staged from its drain`, () => {
      const facts = {
        snapshot: snapshot([maintained]),
        entry: entry("a", { phase: "Holding" }),
        reading: undefined,
        going: [],
      };
      const why = PRECONDITIONS.drainable(facts, maintained);
      assert.ok(typeof why === "string");
      assert.match(why, new RegExp(`condition ${type} of somebody else`));
    });
  }
  const plan = (nodes: Parameters<typeof snapshot>[0], maxConcurrent: number, records = {}) =>
    planPass(snapshot(nodes, { policy: policy({ maxConcurrent }, records) })).status;
  const lost = node("a", { ready: false, lifecycle: [condition("Drained"), condition("MaintenanceInProgress")] });
  for (const [title, nodes, maxConcurrent, started] of [
    ["leaves one slot", [lost, node("b"), node("c")], 1, ["b"]],
    ["takes a slot of several", [lost, node("b"), node("c"), node("d")], 2, ["b"]],
    ["leaves one slot together with another such", [lost, { ...lost, name: "e" }, node("b"), node("c")], 2, ["b"]],
  ] as const)
    it(`on a node that is not Ready, and may never be, ${title}`, () => {
      const { active, waiting } = plan(nodes, maxConcurrent);
      assert.deepEqual(
        active.map(({ node }) => node),
        started,
      );
      assert.match(
        waiting.find(({ node }) => node === "c")?.message ?? "",
        /; a counts until somebody clears its condition Drained and its condition MaintenanceInProgress(;|$)/,
      );
    });
  it("takes a slot also on a node that was released from a freeze and is at rest", () => {
    const released = { deferred: [{ node: "a", count: 1, at: formatTimestamp(NOW), reason: "ReleasedByHand" }] };
    const nodes = [node("a", { lifecycle: [condition("Drained")] }), node("b")];
    assert.deepEqual(plan(nodes, 1, released).active, []);
  });
  it("is told together with what of ours keeps the node as well", () => {
    const cordoned = node("a", { cordonedBy: "s", lifecycle: [condition("Drained")] });
    const records = { deferred: [{ node: "a", count: 1, at: formatTimestamp(NOW), reason: "ReleasedByHand" }] };
    const told = (nodes: Parameters<typeof snapshot>[0]) =>
      plan(nodes, 1, records).waiting.map(({ node, reason, message }) => `${node} ${reason}: ${message}`);
    const theirs = "the node has condition Drained of somebody else (AdminRequested)";
    assert.deepEqual(told([cordoned, node("b")]), [
      `a InMaintenance: ${theirs}; Recovering: our own cordon has not been removed yet`,
      "b LimitReached: as many nodes are active as may be; a counts until it is back in service, and until somebody clears its condition Drained",
    ]);
    const idle = node("a", { lifecycle: [condition("Drained")] });
    assert.match(told([idle, node("b")])[0] ?? "", /^a InMaintenance: .*; Deferred: ReleasedByHand at .*, attempt 1$/);
  });
  it("a node that shuts down while we reboot it goes on with its update", () => {
    const lifecycle = [condition("GracefulNodeShutdownInProgress"), condition("DrainInProgress")];
    const facts = {
      snapshot: snapshot([]),
      entry: entry("a", { phase: "Rebooting" }),
      reading: undefined,
      going: [],
    };
    assert.equal(PRECONDITIONS.ready(facts, node("a", { lifecycle })), undefined);
  });
  it("MaintenancePlanned, one that is not True, and our own keep nobody", () => {
    for (const one of [
      condition("MaintenancePlanned"),
      condition("Drained", { status: "False" }),
      condition("Drained", { status: "Unknown" }),
      condition("DrainInProgress", { reason: OUR_REASON }),
    ])
      assert.equal(maintenanceOf({ lifecycle: [one] }), undefined);
  });
});
