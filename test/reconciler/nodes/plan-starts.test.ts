import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planPass } from "../../../reconciler/nodes/plan-pass.ts";
import type { PolicySnapshot } from "../../../reconciler/nodes/snapshot.ts";
import type { UpdateNode } from "../../../reconciler/nodes/node.ts";
import { at, busyNode, entry, FREE, MINUTE, node, policy, shadow, snapshot } from "./fixture.ts";

const writes = (input: PolicySnapshot): string[] =>
  planPass(input).writes.map(({ node: { name }, spec }) => `${name} ${spec.state} ${spec.version}`);
const started = (input: PolicySnapshot): string[] => planPass(input).started.map(({ name }) => name);
const skipped = (input: PolicySnapshot): string[] => planPass(input).skips.map((skip) => `${skip.node} ${skip.reason}`);
const three = [node("a"), node("b"), node("c")];

describe("starts", () => {
  it("takes one node at a time by default (NR29), first in the status, then in the shadow", () => {
    const { status, writes } = planPass(snapshot(three));
    assert.deepEqual(
      status.active.map(({ node, phase, from, to, bootId }) => ({ node, phase, from, to, bootId })),
      [{ node: "a", phase: "Starting", from: "1.0.0", to: "1.1.0", bootId: "boot-1" }],
    );
    assert.deepEqual(
      writes.map(({ spec }) => spec),
      [{ state: "StagedAndPerformedUpdate", state_transition_timestamp: at(0), version: "1.1.0" }],
    );
  });

  for (const [maxConcurrent, total, count] of [
    [1, 4, 1],
    ["2", 4, 2],
    [0, 4, 0],
    ["25%", 4, 1],
    ["25%", 12, 3],
    ["1%", 4, 1],
    ["0%", 4, 0],
    ["99%", 4, 3],
    ["100%", 4, 4],
    ["unlimited", 4, 4],
    ["UNLIMITED", 4, 4],
  ] as const)
    it(`starts ${count} of ${total} nodes with maxConcurrent ${maxConcurrent} in one pass (NR30, NW25)`, () => {
      const nodes = Array.from({ length: total }, (_, i) => node(`n${i}`));
      assert.equal(started(snapshot(nodes, { policy: policy({ maxConcurrent }) })).length, count);
    });

  it("takes a percentage of the nodes that the policy may update: those that another one selects as well are not among them (NR30)", () => {
    const nodes = Array.from({ length: 10 }, (_, i) => node(`n${i}`));
    const contested = new Map(nodes.slice(2).map(({ name }) => [name, ["default", "other"]]));
    assert.deepEqual(started(snapshot(nodes, { contested, policy: policy({ maxConcurrent: "50%" }) })), ["n0"]);
  });

  it("counts nodes that are stuck or failing against the limit", () => {
    const nodes = [busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate"), node("b")];
    assert.deepEqual(started(snapshot(nodes, { policy: policy({}, { active: [entry("a")] }) })), []);
  });

  for (const [name, nodes, expected, ownNode] of [
    ["ties by name (NW25)", [node("c"), node("a"), node("b")], "a", undefined],
    [
      "the node with fewer failures",
      [node("a", { shadow: shadow("a", {}, { crash_count: 2 }) }), node("b")],
      "b",
      undefined,
    ],
    ["another node than the controller's own", [node("a"), node("b")], "b", "a"],
    ["by name where the controller's node is not among them", [node("b"), node("a")], "a", "z"],
  ] as const)
    it(`prefers ${name}`, () => assert.deepEqual(started(snapshot(nodes, { ownNode })), [expected]));

  it("keeps the order of the others when the controller's node goes last", () =>
    assert.deepEqual(started(snapshot(three, { ownNode: "a", policy: policy({ maxConcurrent: 3 }) })), [
      "b",
      "c",
      "a",
    ]));

  it("never starts a node for which its host has chosen no update (NR7)", () =>
    assert.deepEqual(started(snapshot([node("a", { shadow: shadow("a", {}, { target_version: "1.0.0" }) })])), []));

  it("follows a host that has chosen a lower version", () =>
    assert.deepEqual(writes(snapshot([node("a", { shadow: shadow("a", {}, { target_version: "0.9.0" }) })])), [
      "a StagedAndPerformedUpdate 0.9.0",
    ]));

  for (const [reason, spec] of [
    ["Disabled", { enabled: false }],
    ["WindowClosed", { window: { cron: "* * 3 * * *" } }],
    ["LimitReached", { maxConcurrent: 0 }],
  ] as const)
    it(`starts nothing, and says ${reason} (NR8)`, () =>
      assert.deepEqual(skipped(snapshot([node("a")], { policy: policy(spec) })), [`a ${reason}`]));

  describe("a one-shot window", () => {
    const firedAt = { cron: "0 0 11 * * *", timeZone: "UTC", handledThrough: at(-120 * MINUTE) };
    const isOver = (nodes: readonly UpdateNode[]): boolean => {
      const input = snapshot(nodes, { policy: policy({ window: { cron: firedAt.cron } }, { campaign: firedAt }) });
      return planPass(input).status.campaign?.handledThrough === at(0);
    };
    const hopeless: readonly Partial<UpdateNode>[] = [
      { ready: false },
      { shadow: undefined },
      { terminating: true },
      { removedBy: "taint" },
    ];
    it("does not stay open for nodes that will not start by themselves: later updates would start at any time", () =>
      assert.deepEqual(
        hopeless.map((overrides) => isOver([node("a", overrides)])),
        [true, true, true, true],
      ));
    it("stays open for a node in back-off", () => {
      const failed = shadow("a", {}, { crash_count: 1, state_transition_failure_timestamp: at(-MINUTE) });
      assert.equal(isOver([node("a", { shadow: failed })]), false);
    });
    it("fires again after the clock was far ahead for a moment", () => {
      const ahead = { ...firedAt, handledThrough: "2099-01-01T00:00:00Z" };
      const input = snapshot([node("a")], { policy: policy({ window: { cron: firedAt.cron } }, { campaign: ahead }) });
      assert.equal(planPass(input).status.campaign?.handledThrough, at(0));
    });
  });

  it("lets running updates finish outside the window, and while it is switched off (NR8)", () => {
    const nodes = [busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate")];
    for (const spec of [{ enabled: false }, { window: { cron: "* * 3 * * *" } }])
      assert.deepEqual(
        writes(snapshot(nodes, { policy: policy(spec, { active: [entry("a", { phase: "Holding" })] }) })),
        ["a RebootedIntoUpdate 1.1.0"],
      );
  });
});

describe("a node is skipped, with the reason (NR26, NR31, NR32), and the next one is tried", () => {
  const blocked: readonly (readonly [string, Partial<UpdateNode>])[] = [
    ["NodeNotReady", { ready: false }],
    ["NodeTerminating", { terminating: true }],
    ["BeingRemoved", { removedBy: "karpenter.sh/disrupted" }],
    ["NotManaged", { managed: false }],
    ["AgentSilent", { shadow: undefined }],
    ["AgentSilent", { shadow: shadow("a", {}, "none") }],
    ["AgentSilent", { shadow: { ...shadow("a"), owner: { name: "a", uid: "an earlier node" } } }],
    ["ShadowUnreadable", { shadow: { ...shadow("a"), problem: "status.crash_count: too big" } }],
    ["Recovering", { cordonedBy: "shadow-a" }],
    ["BackOff", { shadow: shadow("a", {}, { crash_count: 1, state_transition_failure_timestamp: at(-2 * MINUTE) }) }],
  ];
  for (const [reason, overrides] of blocked)
    it(reason, () => {
      const input = snapshot([node("a", overrides), node("b")]);
      assert.deepEqual(started(input), ["b"]);
      assert.equal(planPass(input).status.skipped[reason], 1);
      assert.deepEqual(planPass(input).status.waiting[0]?.node, "a");
    });

  for (const [reason, reading] of [
    ["UnhealthyPods", { unfit: "shop/api CrashLoopBackOff" }],
    ["RolloutInProgress", { rollout: "group shop/db is rolling" }],
    ["DrainBlocked", { obstacle: "shop/db-0: zpdb exceeded" }],
  ] as const)
    it(reason, () => {
      const readings = new Map([
        ["a", { ...FREE, ...reading }],
        ["b", FREE],
      ]);
      const input = snapshot([node("a"), node("b")], { readings });
      assert.deepEqual(started(input), ["b"]);
      assert.deepEqual(skipped(input), [`a ${reason}`]);
    });

  it("SeveralPolicies", () => {
    const contested = new Map([["a", ["default", "other"]]]);
    assert.deepEqual(skipped(snapshot([node("a")], { contested })), ["a SeveralPolicies"]);
  });

  it("Deferred, until the back-off of our own count is over", () => {
    const deferred = (ms: number) =>
      policy({}, { deferred: [{ node: "a", count: 2, at: at(ms), reason: "DrainTimeout" }] });
    assert.deepEqual(skipped(snapshot([node("a")], { policy: deferred(-4 * MINUTE) })), ["a Deferred"]);
    assert.deepEqual(started(snapshot([node("a")], { policy: deferred(-5 * MINUTE) })), ["a"]);
  });

  it("Deferred after a drain that its time has ended, with the pod and the budget that said no", () => {
    const drain = {
      started_at: at(-90 * MINUTE),
      round_at: at(-MINUTE),
      remaining: 1,
      blocked: [{ namespace: "shop", name: "db-0", reason: "DisruptionBudget", message: "zpdb db exceeded" }],
    };
    const draining = busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate", { status: { drain } });
    const active = [entry("a", { phase: "Draining", since: at(-90 * MINUTE) })];
    const { status } = planPass(snapshot([draining], { policy: policy({}, { active }) }));
    const [skip] = planPass(snapshot([node("a")], { policy: policy({}, { ...status, active: [] }) })).skips;
    assert.equal(skip?.reason, "Deferred");
    assert.match(
      skip?.message ?? "",
      /^DrainTimeout at .*1 pod is left, shop\/db-0 \(DisruptionBudget: zpdb db exceeded\)$/,
    );
  });

  it("goes to the end of the queue after it was held too long", () => {
    const deferred = [{ node: "a", count: 0, at: at(-MINUTE), reason: "HeldTooLong" }];
    assert.deepEqual(started(snapshot(three, { policy: policy({ maxConcurrent: 3 }, { deferred }) })), ["b", "c", "a"]);
  });

  it("asks to read no more pods than it needs", () => {
    const nodes = Array.from({ length: 100 }, (_, i) => node(`n${i}`));
    const { toRead, writes } = planPass(snapshot(nodes, { readings: new Map() }));
    assert.deepEqual([toRead.length, writes.length], [4, 0]);
  });
});

describe("zones in order", () => {
  const zoned = (name: string, zone: string, overrides: Partial<UpdateNode> = {}) => node(name, { zone, ...overrides });
  const nodes = [zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), zoned("b2", "b")];
  const many = { maxConcurrent: 10 };

  it("starts nodes of one zone only", () => {
    const input = snapshot(nodes, { policy: policy(many) });
    assert.deepEqual(started(input), ["a1", "a2"]);
    assert.deepEqual(skipped(input), ["b1 OtherZoneFirst", "b2 OtherZoneFirst"]);
    assert.equal(planPass(input).status.zone, "a");
  });

  it("waits for the last node of a zone before the next zone begins", () => {
    const input = snapshot(
      [busyNode("a1", "MonitoringUpdate", "RebootedIntoUpdate", { node: { zone: "a" } }), zoned("b1", "b")],
      {
        policy: policy(many, { active: [entry("a1", { zone: "a", phase: "Returning" })] }),
      },
    );
    assert.deepEqual(skipped(input), ["b1 OtherZoneFirst"]);
  });

  it("goes on with the zone that has begun", () =>
    assert.deepEqual(started(snapshot(nodes, { policy: policy(many, { zone: "b" }) })), ["b1", "b2"]));

  it("counts skipped nodes as finished", () => {
    const readings = new Map(
      nodes.map(({ name }) => [name, name.startsWith("a") ? { ...FREE, obstacle: "budget" } : FREE]),
    );
    assert.deepEqual(started(snapshot(nodes, { readings, policy: policy(many) })), ["b1", "b2"]);
    const notReady = nodes.map((one) => (one.zone === "a" ? { ...one, ready: false } : one));
    assert.deepEqual(started(snapshot(notReady, { policy: policy(many) })), ["b1", "b2"]);
  });
});
