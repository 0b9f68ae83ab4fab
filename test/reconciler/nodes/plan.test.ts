import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planPass } from "../../../reconciler/nodes/plan.ts";
import type { PolicySnapshot } from "../../../reconciler/nodes/snapshot.ts";
import type { UpdateNode } from "../../../reconciler/nodes/node.ts";
import { at, busyNode, entry, FREE, MINUTE, node, NOW, policy, shadow, snapshot } from "./fixture.ts";

const writes = (input: PolicySnapshot): string[] =>
  planPass(input).writes.map(({ node: { name }, spec }) => `${name} ${spec.state} ${spec.version}`);
const started = (input: PolicySnapshot): string[] => planPass(input).started.map(({ name }) => name);
const skipped = (input: PolicySnapshot): string[] => planPass(input).skips.map((skip) => `${skip.node} ${skip.reason}`);
const three = [node("a"), node("b"), node("c")];
const current = { current_version: "1.1.0", target_version: "1.1.0" };

describe("starts", () => {
  it("takes one node at a time by default (R29), first in the status, then in the shadow", () => {
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
    it(`starts ${count} of ${total} nodes with maxConcurrent ${maxConcurrent} in one pass (R30, W25)`, () => {
      const nodes = Array.from({ length: total }, (_, i) => node(`n${i}`));
      assert.equal(started(snapshot(nodes, { policy: policy({ maxConcurrent }) })).length, count);
    });

  it("takes a percentage of the nodes that the policy may update: those that another one selects as well are not among them (R30)", () => {
    const nodes = Array.from({ length: 10 }, (_, i) => node(`n${i}`));
    const contested = new Map(nodes.slice(2).map(({ name }) => [name, ["default", "other"]]));
    assert.deepEqual(started(snapshot(nodes, { contested, policy: policy({ maxConcurrent: "50%" }) })), ["n0"]);
  });

  it("counts nodes that are stuck or failing against the limit", () => {
    const nodes = [busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate"), node("b")];
    assert.deepEqual(started(snapshot(nodes, { policy: policy({}, { active: [entry("a")] }) })), []);
  });

  for (const [name, nodes, expected, ownNode] of [
    ["ties by name (W25)", [node("c"), node("a"), node("b")], "a", undefined],
    ["the node with fewer failures", [node("a", { shadow: shadow("a", {}, { crash_count: 2 }) }), node("b")], "b", undefined],
    ["another node than the controller's own", [node("a"), node("b")], "b", "a"],
    ["by name where the controller's node is not among them", [node("b"), node("a")], "a", "z"],
  ] as const)
    it(`prefers ${name}`, () => assert.deepEqual(started(snapshot(nodes, { ownNode })), [expected]));

  it("keeps the order of the others when the controller's node goes last", () =>
    assert.deepEqual(started(snapshot(three, { ownNode: "a", policy: policy({ maxConcurrent: 3 }) })), ["b", "c", "a"]));

  it("never starts a node for which its host has chosen no update (R7)", () =>
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
    it(`starts nothing, and says ${reason} (R8)`, () =>
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

  it("lets running updates finish outside the window, and while it is switched off (R8)", () => {
    const nodes = [busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate")];
    for (const spec of [{ enabled: false }, { window: { cron: "* * 3 * * *" } }])
      assert.deepEqual(writes(snapshot(nodes, { policy: policy(spec, { active: [entry("a", { phase: "Holding" })] }) })), [
        "a RebootedIntoUpdate 1.1.0",
      ]);
  });
});

describe("a node is skipped, with the reason (R26, R31, R32), and the next one is tried", () => {
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

  for (const [reason, look] of [
    ["UnhealthyPods", { unfit: "shop/api CrashLoopBackOff" }],
    ["RolloutInProgress", { rollout: "group shop/db is rolling" }],
    ["DrainBlocked", { obstacle: "shop/db-0: zpdb exceeded" }],
  ] as const)
    it(reason, () => {
      const looks = new Map([
        ["a", { ...FREE, ...look }],
        ["b", FREE],
      ]);
      const input = snapshot([node("a"), node("b")], { looks });
      assert.deepEqual(started(input), ["b"]);
      assert.deepEqual(skipped(input), [`a ${reason}`]);
    });

  it("SeveralPolicies", () => {
    const contested = new Map([["a", ["default", "other"]]]);
    assert.deepEqual(skipped(snapshot([node("a")], { contested })), ["a SeveralPolicies"]);
  });

  it("Deferred, until the back-off of our own count is over", () => {
    const deferred = (ms: number) => policy({}, { deferred: [{ node: "a", count: 2, at: at(ms), reason: "DrainTimeout" }] });
    assert.deepEqual(skipped(snapshot([node("a")], { policy: deferred(-4 * MINUTE) })), ["a Deferred"]);
    assert.deepEqual(started(snapshot([node("a")], { policy: deferred(-5 * MINUTE) })), ["a"]);
  });

  it("goes to the end of the queue after it was held too long", () => {
    const deferred = [{ node: "a", count: 0, at: at(-MINUTE), reason: "HeldTooLong" }];
    assert.deepEqual(started(snapshot(three, { policy: policy({ maxConcurrent: 3 }, { deferred }) })), ["b", "c", "a"]);
  });

  it("asks for a look at no more pods than it needs", () => {
    const nodes = Array.from({ length: 100 }, (_, i) => node(`n${i}`));
    const { looks, writes } = planPass(snapshot(nodes, { looks: new Map() }));
    assert.deepEqual([looks.length, writes.length], [4, 0]);
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
    const input = snapshot([busyNode("a1", "MonitoringUpdate", "RebootedIntoUpdate", { node: { zone: "a" } }), zoned("b1", "b")], {
      policy: policy(many, { active: [entry("a1", { zone: "a", phase: "Returning" })] }),
    });
    assert.deepEqual(skipped(input), ["b1 OtherZoneFirst"]);
  });

  it("goes on with the zone that has begun", () =>
    assert.deepEqual(started(snapshot(nodes, { policy: policy(many, { zone: "b" }) })), ["b1", "b2"]));

  it("counts skipped nodes as finished", () => {
    const looks = new Map(nodes.map(({ name }) => [name, name.startsWith("a") ? { ...FREE, obstacle: "budget" } : FREE]));
    assert.deepEqual(started(snapshot(nodes, { looks, policy: policy(many) })), ["b1", "b2"]);
    const notReady = nodes.map((one) => (one.zone === "a" ? { ...one, ready: false } : one));
    assert.deepEqual(started(snapshot(notReady, { policy: policy(many) })), ["b1", "b2"]);
  });

  it("takes all zones together if it is switched off", () =>
    assert.equal(started(snapshot(nodes, { policy: policy({ ...many, zonesInOrder: false }) })).length, 4));
});

describe("the steps of an active node", () => {
  const active = (overrides = {}) => ({ active: [entry("a", overrides)] });
  const back = { bootId: "boot-2", readySince: NOW - 10 * MINUTE };
  const updated = { ...current, boot_reported_at: at(-10 * MINUTE) };

  for (const [title, one, stored, expected] of [
    ["waits for the agent that stages", busyNode("a", "StagedAndPerformedUpdate", "Idle"), {}, []],
    ["reboots once staged", busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate"), {}, ["a RebootedIntoUpdate 1.1.0"]],
    [
      "does not reboot a node that is not Ready (R15)",
      busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate", { node: { ready: false } }),
      {},
      [],
    ],
    [
      "does not reboot a node that is being removed",
      busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate", { node: { removedBy: "taint" } }),
      {},
      [],
    ],
    ["waits for the drain", busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate"), {}, []],
    [
      "monitors a node that has come back",
      busyNode("a", "RebootedIntoUpdate", "RebootedIntoUpdate", { node: back }),
      {},
      ["a MonitoringUpdate 1.1.0"],
    ],
    [
      "does not monitor a node that is not Ready (R15)",
      busyNode("a", "RebootedIntoUpdate", "RebootedIntoUpdate", { node: { ...back, ready: false } }),
      {},
      [],
    ],
    [
      "finishes a healthy node",
      busyNode("a", "MonitoringUpdate", "MonitoringUpdate", { node: back, status: updated }),
      {},
      ["a Idle 1.1.0"],
    ],
    [
      "monitors for as long as configured (R33)",
      busyNode("a", "MonitoringUpdate", "MonitoringUpdate", { node: { ...back, readySince: NOW - 59_000 }, status: updated }),
      {},
      [],
    ],
    [
      "monitors from the report on, as a quick reboot shows no NotReady (R33)",
      busyNode("a", "MonitoringUpdate", "MonitoringUpdate", {
        node: { ...back, readySince: 0 },
        status: { ...current, boot_reported_at: at(-59_000) },
      }),
      {},
      [],
    ],
    [
      "wants a new boot (W19)",
      busyNode("a", "MonitoringUpdate", "MonitoringUpdate", { node: { ...back, bootId: "boot-1" }, status: updated }),
      {},
      [],
    ],
    [
      "wants the new version",
      busyNode("a", "MonitoringUpdate", "MonitoringUpdate", { node: back, status: { ...updated, current_version: "1.0.0" } }),
      {},
      [],
    ],
    ["sends a failed node back to Idle", busyNode("a", "StagedAndPerformedUpdate", "ErrorReset"), {}, ["a Idle 1.1.0"]],
    ["leaves a failed node alone that is on its way to Idle (W2)", busyNode("a", "Idle", "ErrorReset"), { phase: "Recovering" }, []],
    ["repeats a start whose answer was lost", node("a"), { phase: "Starting" }, ["a StagedAndPerformedUpdate 1.1.0"]],
    ["takes back a wish for ErrorReset", busyNode("a", "ErrorReset", "Idle"), {}, ["a Idle 1.1.0"]],
  ] as const)
    it(title, () => assert.deepEqual(writes(snapshot([one], { policy: policy({}, active(stored)) })), expected));

  for (const [title, spec] of [
    ["it is switched off", { enabled: false }],
    ["the window is closed", { window: { cron: "* * 3 * * *" } }],
  ] as const)
    it(`does not repeat a start whose answer was lost if ${title} by now (R8)`, () =>
      assert.deepEqual(writes(snapshot([node("a")], { policy: policy(spec, active({ phase: "Starting", since: at(0) })) })), []));

  it("begins a phase now if it began in the future, as after a step of the clock", () => {
    const { status } = planPass(
      snapshot([busyNode("a", "StagedAndPerformedUpdate", "Idle")], { policy: policy({}, active({ since: at(1000 * MINUTE) })) }),
    );
    assert.equal(status.active[0]?.since, at(0));
  });

  it("does not reboot while a drain would not succeed, nor while a rollout is in progress", () => {
    const staged = busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate");
    for (const look of [{ obstacle: "zpdb exceeded" }, { rollout: "group shop/db" }]) {
      const input = snapshot([staged], { policy: policy({}, active()), looks: new Map([["a", { ...FREE, ...look }]]) });
      assert.deepEqual(writes(input), []);
      assert.equal(planPass(input).status.active[0]?.waitsFor, look.obstacle ?? look.rollout);
    }
  });

  it("remembers whose pods are drained, and waits until they are back (R33)", () => {
    const workloads = [{ kind: "StatefulSet", namespace: "shop", name: "db", uid: "u", ready: 3 }];
    const staged = snapshot([busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate")], {
      policy: policy({}, active({ phase: "Holding" })),
      looks: new Map([["a", { workloads }]]),
    });
    assert.deepEqual(planPass(staged).status.active[0]?.workloads, workloads);
    const monitored = busyNode("a", "MonitoringUpdate", "MonitoringUpdate", { node: back, status: updated });
    const missing = new Map([["a", { workloads, missing: "StatefulSet shop/db has 2 ready pods" }]]);
    assert.deepEqual(writes(snapshot([monitored], { policy: policy({}, active()), looks: missing })), []);
  });

  it("keeps the status small, however many nodes are drained at once", () => {
    const workloads = Array.from({ length: 110 }, (_, i) => ({
      kind: "ReplicaSet",
      namespace: "n".repeat(40),
      name: `${"x".repeat(50)}${i}`,
      uid: "u".repeat(36),
      ready: 1,
    }));
    const names = Array.from({ length: 1000 }, (_, i) => `node-${i}.example.internal`);
    const nodes = names.map((name) => busyNode(name, "StagedAndPerformedUpdate", "StagedAndPerformedUpdate"));
    const held = policy({ maxConcurrent: "unlimited" }, { active: names.map((name) => entry(name, { phase: "Holding" })) });
    const { status } = planPass(snapshot(nodes, { policy: held, looks: new Map(names.map((name) => [name, { workloads }])) }));
    assert.ok(JSON.stringify(status).length < 1_200_000, `${JSON.stringify(status).length} bytes`);
    assert.ok(status.active.every((one) => one.workloads?.length === 3));
  });

  it("wipes what is left of an update, without taking a slot", () => {
    const leftover = node("a", { shadow: shadow("a", { version: "1.1.0", state_transition_timestamp: at(-MINUTE) }, current) });
    const input = snapshot([leftover, node("b")]);
    assert.deepEqual(writes(input), ["b StagedAndPerformedUpdate 1.1.0", "a Idle null"]);
  });

  it("makes no write for a settled node (silence)", () => {
    const settled = snapshot([node("a", { shadow: shadow("a", {}, current) })]);
    const first = planPass(settled);
    assert.deepEqual(first.writes, []);
    assert.deepEqual(planPass({ ...settled, now: NOW + MINUTE, policy: { ...settled.policy, status: first.status } }).status, first.status);
  });

  it("frees the slot of a node that has finished, and of one that is gone", () => {
    const finished = node("a", { shadow: shadow("a", { version: "1.1.0" }, current) });
    assert.deepEqual(started(snapshot([finished, node("b")], { policy: policy({}, active({ phase: "Recovering" })) })), ["b"]);
    assert.deepEqual(started(snapshot([node("b")], { policy: policy({}, active()) })), ["b"]);
    assert.deepEqual(started(snapshot([node("a", { uid: "a new node" }), node("b")], { policy: policy({}, active()) })), ["b"]);
  });

  it("keeps the slot of a finished node until our cordon is off", () => {
    const finished = node("a", { cordonedBy: "shadow-a", shadow: shadow("a", { version: "1.1.0" }, current) });
    assert.deepEqual(started(snapshot([finished, node("b")], { policy: policy({}, active({ phase: "Recovering" })) })), []);
  });

  it("leaves a node on its way alone that two policies select and the other one drives", () => {
    const contested = new Map([["a", ["another", "default"]]]);
    const { status, writes } = planPass(snapshot([busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate")], { contested }));
    assert.deepEqual([status.active, writes], [[], []]);
  });

  it("does not take in the shadow of an earlier node of that name", () => {
    const stale = busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate", { node: { uid: "a new node" } });
    assert.deepEqual(planPass(snapshot([stale])).status.active, []);
  });

  it("takes in nodes that another controller has started, and counts them", () => {
    const adopted = planPass(snapshot([busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate"), node("b")])).status;
    assert.deepEqual(
      adopted.active.map(({ node, phase }) => `${node} ${phase}`),
      ["a Draining"],
    );
  });
});
