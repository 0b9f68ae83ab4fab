import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planPass } from "../../../reconciler/nodes/plan-pass.ts";
import type { PolicySnapshot } from "../../../reconciler/nodes/snapshot.ts";
import { at, busyNode, entry, FREE, MINUTE, node, NOW, policy, shadow, snapshot } from "./fixture.ts";

const writes = (input: PolicySnapshot): string[] =>
  planPass(input).writes.map(({ node: { name }, spec }) => `${name} ${spec.state} ${spec.version}`);
const started = (input: PolicySnapshot): string[] => planPass(input).started.map(({ name }) => name);
const current = { current_version: "1.1.0", target_version: "1.1.0" };

describe("the steps of an active node", () => {
  const active = (overrides = {}) => ({ active: [entry("a", overrides)] });
  const back = { bootId: "boot-2", readySince: NOW - 10 * MINUTE };
  const updated = { ...current, boot_reported_at: at(-10 * MINUTE) };

  for (const [title, one, stored, expected] of [
    ["waits for the agent that stages", busyNode("a", "StagedAndPerformedUpdate", "Idle"), {}, []],
    [
      "reboots once staged",
      busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate"),
      {},
      ["a RebootedIntoUpdate 1.1.0"],
    ],
    [
      "does not reboot a node that is not Ready (NR15)",
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
      "does not monitor a node that is not Ready (NR15)",
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
      "monitors for as long as configured (NR33)",
      busyNode("a", "MonitoringUpdate", "MonitoringUpdate", {
        node: { ...back, readySince: NOW - 59_000 },
        status: updated,
      }),
      {},
      [],
    ],
    [
      "monitors from the report on, as a quick reboot shows no NotReady (NR33)",
      busyNode("a", "MonitoringUpdate", "MonitoringUpdate", {
        node: { ...back, readySince: 0 },
        status: { ...current, boot_reported_at: at(-59_000) },
      }),
      {},
      [],
    ],
    [
      "wants a new boot (NW19)",
      busyNode("a", "MonitoringUpdate", "MonitoringUpdate", { node: { ...back, bootId: "boot-1" }, status: updated }),
      {},
      [],
    ],
    [
      "wants the new version",
      busyNode("a", "MonitoringUpdate", "MonitoringUpdate", {
        node: back,
        status: { ...updated, current_version: "1.0.0" },
      }),
      {},
      [],
    ],
    ["sends a failed node back to Idle", busyNode("a", "StagedAndPerformedUpdate", "ErrorReset"), {}, ["a Idle 1.1.0"]],
    [
      "leaves a failed node alone that is on its way to Idle (NW2)",
      busyNode("a", "Idle", "ErrorReset"),
      { phase: "Recovering" },
      [],
    ],
    ["repeats a start whose answer was lost", node("a"), { phase: "Starting" }, ["a StagedAndPerformedUpdate 1.1.0"]],
    ["takes back a wish for ErrorReset", busyNode("a", "ErrorReset", "Idle"), {}, ["a Idle 1.1.0"]],
  ] as const)
    it(title, () => assert.deepEqual(writes(snapshot([one], { policy: policy({}, active(stored)) })), expected));

  for (const [title, spec] of [
    ["it is switched off", { enabled: false }],
    ["the window is closed", { window: { cron: "* * 3 * * *" } }],
  ] as const)
    it(`does not repeat a start whose answer was lost if ${title} by now (NR8)`, () =>
      assert.deepEqual(
        writes(snapshot([node("a")], { policy: policy(spec, active({ phase: "Starting", since: at(0) })) })),
        [],
      ));

  it("begins a phase now if it began in the future, as after a step of the clock", () => {
    const { status } = planPass(
      snapshot([busyNode("a", "StagedAndPerformedUpdate", "Idle")], {
        policy: policy({}, active({ since: at(1000 * MINUTE) })),
      }),
    );
    assert.equal(status.active[0]?.since, at(0));
  });

  it("does not reboot while a drain would not succeed, nor while a rollout is in progress", () => {
    const staged = busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate");
    for (const reading of [{ obstacle: "zpdb exceeded" }, { rollout: "group shop/db" }]) {
      const input = snapshot([staged], {
        policy: policy({}, active()),
        readings: new Map([["a", { ...FREE, ...reading }]]),
      });
      assert.deepEqual(writes(input), []);
      assert.equal(planPass(input).status.active[0]?.waitsFor, reading.obstacle ?? reading.rollout);
    }
  });

  it("remembers whose pods are drained, and waits until they are back (NR33)", () => {
    const workloads = [{ kind: "StatefulSet", namespace: "shop", name: "db", uid: "u", ready: 3 }];
    const staged = snapshot([busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate")], {
      policy: policy({}, active({ phase: "Holding" })),
      readings: new Map([["a", { workloads }]]),
    });
    assert.deepEqual(planPass(staged).status.active[0]?.workloads, workloads);
    const monitored = busyNode("a", "MonitoringUpdate", "MonitoringUpdate", { node: back, status: updated });
    const missing = new Map([["a", { workloads, missing: "StatefulSet shop/db has 2 ready pods" }]]);
    assert.deepEqual(writes(snapshot([monitored], { policy: policy({}, active()), readings: missing })), []);
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
    const held = policy(
      { maxConcurrent: "unlimited" },
      { active: names.map((name) => entry(name, { phase: "Holding" })) },
    );
    const { status } = planPass(
      snapshot(nodes, { policy: held, readings: new Map(names.map((name) => [name, { workloads }])) }),
    );
    assert.ok(JSON.stringify(status).length < 1_200_000, `${JSON.stringify(status).length} bytes`);
    assert.ok(status.active.every((one) => one.workloads?.length === 3));
  });

  it("wipes what is left of an update, without taking a slot", () => {
    const leftover = node("a", {
      shadow: shadow("a", { version: "1.1.0", state_transition_timestamp: at(-MINUTE) }, current),
    });
    const input = snapshot([leftover, node("b")]);
    assert.deepEqual(writes(input), ["b StagedAndPerformedUpdate 1.1.0", "a Idle null"]);
  });

  it("makes no write for a settled node (silence)", () => {
    const settled = snapshot([node("a", { shadow: shadow("a", {}, current) })]);
    const first = planPass(settled);
    assert.deepEqual(first.writes, []);
    assert.deepEqual(
      planPass({ ...settled, now: NOW + MINUTE, policy: { ...settled.policy, status: first.status } }).status,
      first.status,
    );
  });

  it("frees the slot of a node that has finished, and of one that is gone", () => {
    const finished = node("a", { shadow: shadow("a", { version: "1.1.0" }, current) });
    assert.deepEqual(
      started(snapshot([finished, node("b")], { policy: policy({}, active({ phase: "Recovering" })) })),
      ["b"],
    );
    assert.deepEqual(started(snapshot([node("b")], { policy: policy({}, active()) })), ["b"]);
    assert.deepEqual(
      started(snapshot([node("a", { uid: "a new node" }), node("b")], { policy: policy({}, active()) })),
      ["b"],
    );
  });

  it("keeps the slot of a finished node until our cordon is off", () => {
    const finished = node("a", { cordonedBy: "shadow-a", shadow: shadow("a", { version: "1.1.0" }, current) });
    assert.deepEqual(
      started(snapshot([finished, node("b")], { policy: policy({}, active({ phase: "Recovering" })) })),
      [],
    );
  });

  it("leaves a node on its way alone that two policies select and the other one drives", () => {
    const contested = new Map([["a", ["another", "default"]]]);
    const { status, writes } = planPass(
      snapshot([busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate")], { contested }),
    );
    assert.deepEqual([status.active, writes], [[], []]);
  });

  it("does not take in the shadow of an earlier node of that name", () => {
    const stale = busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate", { node: { uid: "a new node" } });
    assert.deepEqual(planPass(snapshot([stale])).status.active, []);
  });

  const announced = { rebooting: { boot_id: "boot-1", at: at(-MINUTE) } };
  for (const [title, taken, phase, state] of [
    ["is sent back while it stages", busyNode("a", "StagedAndPerformedUpdate", "Idle"), "Staging", "Idle"],
    [
      "is sent back while it is drained",
      busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate"),
      "Draining",
      "Idle",
    ],
    [
      "is sent back if its host did not get the call to reboot",
      busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate", { status: announced }),
      "Rebooting",
      "Idle",
    ],
    [
      "comes back first if it reboots",
      busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate", { status: announced, node: { ready: false } }),
      "Rebooting",
      undefined,
    ],
    [
      "goes on once it has rebooted",
      busyNode("a", "RebootedIntoUpdate", "RebootedIntoUpdate", { node: { bootId: "boot-2" } }),
      "Returning",
      "MonitoringUpdate",
    ],
  ] as const)
    it(`takes in a node that another controller has started, which counts, and ${title}`, () => {
      const { status, writes, started } = planPass(snapshot([taken, node("b")]));
      assert.deepEqual(
        status.active.map((one) => `${one.node} ${one.phase}`),
        [`a ${phase}`],
      );
      assert.deepEqual([writes.map(({ spec }) => spec.state), started], [state === undefined ? [] : [state], []]);
    });
});
