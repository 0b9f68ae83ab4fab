/** Which nodes start, and why the others do not (§17.12). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readNode } from "../../../reconciler/nodes/node.ts";
import { collect, read } from "../../infra/manifests.ts";
import { passOf, table } from "./adapter.ts";
import { at, MINUTE, startedBy } from "./fixture.ts";

it("a start is first in the status, then in the shadow", () => {
  const { status, writes } = passOf({ nodes: "a" });
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
  [undefined, 4, 1],
  ["2", 4, 2],
  [0, 4, 0],
  ["25%", 12, 3],
  ["1%", 4, 1],
  ["0%", 4, 0],
  ["99%", 4, 3],
  ["100%", 4, 4],
  ["UNLIMITED", 4, 4],
] as const)
  it(`${count} of ${total} nodes start with maxConcurrent ${maxConcurrent} in one pass`, () => {
    const nodes = Array.from({ length: total }, (_, i) => `n${i}`).join(", ");
    assert.equal(
      startedBy(passOf({ nodes, ...(maxConcurrent !== undefined && { spec: { maxConcurrent } }) })).length,
      count,
    );
  });

table(
  "a node starts",
  `
  by name, where nothing else tells them apart | c, a, b
    | wants a S; slots a Starting; skips b LimitReached, c LimitReached
  with fewer failures first | a failing, b | wants b S; slots b Starting; skips a LimitReached
  other than the controller's own first | a, b {ownNode: a} | wants b S; slots b Starting; skips a LimitReached
  by name where the controller's own is not among them | b, a {ownNode: z}
    | wants a S; slots a Starting; skips b LimitReached
  and the controller's own last | a, b, c {maxConcurrent: 3, ownNode: a}
    | wants b S, c S, a S; slots b Starting, c Starting, a Starting
  only if its host has chosen an update | a nothing | nothing
  also to a lower version that its host has chosen | a lower | wants a S 0.9.0; slots a Starting
  unless a node that is stuck or failing has the slot | a R/S Draining, b | slots a Draining; skips b LimitReached
  after no more reads than it needs | a unread, b unread, c | skips b LimitReached, c LimitReached; reads a
  once the pods of those before it are read | a unread, b, c, d {maxConcurrent: 2}
    | skips c LimitReached, d LimitReached; reads a
  unless its own pods forbid it, also before that | a unread, b obstacle, c unread {maxConcurrent: 2}
    | skips b DrainBlocked; reads a
  after those that were held too long | a, b {status: held}
    | wants b S; slots b Starting; deferred a HeldTooLong 0; skips a LimitReached
`,
  { named: { held: { deferred: [{ node: "a", count: 0, at: at(-MINUTE), reason: "HeldTooLong" }] } } },
);

table(
  "nothing starts",
  `
  Disabled | a {enabled: false} | skips a Disabled
  WindowClosed | a {window: {cron: "* * 3 * * *"}} | skips a WindowClosed
  LimitReached | a {maxConcurrent: 0} | skips a LimitReached
  PolicyInvalid | a {maxConcurrent: -1} | skips a PolicyInvalid
`,
);

const deferred = (ms: number) => ({ deferred: [{ node: "a", count: 2, at: at(ms), reason: "DrainTimeout" }] });

table(
  "a node is skipped, with the reason, and the next one is tried",
  `
  not Ready | a notready, b | wants b S; slots b Starting; skips a NodeNotReady
  being deleted | a deleted, b | wants b S; slots b Starting; skips a NodeTerminating
  being removed by an autoscaler | a removed, b | wants b S; slots b Starting; skips a BeingRemoved
  without its label | a unmanaged, b | wants b S; slots b Starting; skips a NotManaged
  without a shadow | a noshadow, b | wants b S; slots b Starting; skips a AgentSilent
  whose agent has not reported | a unreported, b | wants b S; slots b Starting; skips a AgentSilent
  with the shadow of an earlier node | a foreign, b | wants b S; slots b Starting; skips a AgentSilent
  with our own cordon | a cordoned, b | wants b S; slots b Starting; skips a Recovering
  in back-off | a crashed, b | wants b S; slots b Starting; skips a BackOff
  deferred | a, b {status: lately} | wants b S; slots b Starting; deferred a DrainTimeout 2; skips a Deferred
  no longer deferred | a, b {status: before}
    | wants b S; slots b Starting; deferred a DrainTimeout 2; skips a LimitReached
  with pods that cannot start | a unfit, b | wants b S; slots b Starting; skips a UnhealthyPods
  with pods of another zone than the one that rolls out | a rollout, b
    | wants b S; slots b Starting; skips a RolloutInProgress
  that could not be drained | a obstacle, b | wants b S; slots b Starting; skips a DrainBlocked
  with a shadow that cannot be read | a unreadable, b | wants b S; slots b Starting; skips a ShadowUnreadable
`,
  { named: { lately: deferred(-4 * MINUTE), before: deferred(-5 * MINUTE) } },
);

it("nodes that need a person are listed before those that wait for time, of which fifty are listed at most", () => {
  const crashed = Array.from({ length: 60 }, (_, i) => `n${i} crashed`).join(", ");
  const nodes = `${crashed}, y removed, z zone:a takes:b1 onebyone, zz obstacle`;
  const { waiting, nodes: counts } = passOf({ nodes }).status;
  assert.deepEqual(
    waiting.slice(0, 4).map(({ node, reason }) => `${node} ${reason}`),
    ["y BeingRemoved", "zz DrainBlocked", "z NoPlaceForPods", "n0 BackOff"],
  );
  assert.deepEqual([waiting.length, counts.waiting], [50, 63]);
});

it("a deferred node names what ended its drain", () => {
  const message = "1 pod is left, shop/db-0 (DisruptionBudget: zpdb db exceeded)";
  const [one] = deferred(0).deferred;
  const [skip] = passOf({ nodes: "a", status: { deferred: one ? [{ ...one, message }] : [] } }).skips;
  assert.equal(skip?.message, `DrainTimeout at ${at(0)}, attempt 2: ${message}`);
});

table(
  "one zone after the other",
  `
  nodes of one zone only start | a1 zone:a, a2 zone:a, b1 zone:b
    | wants a1 S, a2 S; slots a1 Starting, a2 Starting; skips b1 OtherZoneFirst
  a zone waits for the last node of the one before | a1 M/R zone:a Returning, b1 zone:b
    | slots a1 Returning; skips b1 OtherZoneFirst
  the zone that has begun goes on | a1 zone:a, b1 zone:b {status: {zone: b}}
    | wants b1 S; slots b1 Starting; skips a1 OtherZoneFirst
  nodes that their pods hold count as finished | a1 zone:a obstacle, b1 zone:b
    | wants b1 S; slots b1 Starting; skips a1 DrainBlocked
  and so do nodes that are not Ready | a1 zone:a notready, b1 zone:b
    | wants b1 S; slots b1 Starting; skips a1 NodeNotReady
`,
  { spec: { maxConcurrent: 10 } },
);

table(
  "nodes that are updated beside each other",
  `
  leave one of their zone | a1 zone:a takes:a1+a2+a3+b1, a2 zone:a takes:a1+a2+a3+b1, a3 zone:a takes:a1+a2+a3+b1
    | wants a1 S, a2 S; slots a1 Starting, a2 Starting; skips a3 LimitReached
  leave none where no pod has to go | a1 zone:a, a2 zone:a | wants a1 S, a2 S; slots a1 Starting, a2 Starting
  do not start as the last of their zone | a1 S/I zone:a Staging, a2 zone:a takes:a1+b1
    | slots a1 Staging; skips a2 LimitReached
  nor beside one that waits for its drain | a1 S/S zone:a Holding takes:b1, a2 zone:a takes:a1+b1
    | wants a1 R; slots a1 Holding; skips a2 LimitReached
  nor where all others that take pods go | a1 S/I zone:a Staging, a2 zone:a takes:a1 | slots a1 Staging; skips a2 LimitReached
  nor where none takes pods | a1 zone:a takes:a1 | skips a1 DrainBlocked
  nor where none does, whatever ends the drain | a1 zone:a takes:a1 onebyone {drain: {onTimeout: Reboot}}
    | skips a1 DrainBlocked
  start where one of their zone stays | a1 zone:a takes:a2+a3 onebyone, a2 R/S zone:a Draining
    | wants a1 S; slots a2 Draining, a1 Starting
  not where the only one of their zone goes | a1 zone:a takes:a2+b1, a2 R/S zone:a Draining
    | slots a2 Draining; skips a1 LimitReached
  start alone in their zone with pods that may all be away | a1 zone:a takes:b1
    | wants a1 S; slots a1 Starting
  nor alone in their zone with pods that go one by one | a1 zone:a takes:b1 onebyone | skips a1 NoPlaceForPods
  unless the reboot ends the drain | a1 zone:a takes:b1 onebyone {drain: {onTimeout: Reboot}}
    | wants a1 S; slots a1 Starting
  do not wait for each other once staged, and one of them reboots
    | a1 S/S zone:a Holding takes:a1+a2, a2 S/S zone:a Holding takes:a1+a2
    | wants a1 R; slots a1 Holding, a2 Holding
  wait for no node of another zone while one of theirs stays
    | a1 S/S zone:a Holding takes:a2+b1 onebyone, b1 R/S zone:b Draining | wants a1 R; slots a1 Holding, b1 Draining
  wait for the only one that takes pods, where that is | a1 S/S zone:a Holding takes:b1, b1 R/S zone:b Draining
    | slots a1 Holding, b1 Draining
  wait for none if no pod has to leave | a1 S/S zone:a Holding onebyone, b1 R/S zone:b Draining
    | wants a1 R; slots a1 Holding, b1 Draining
  wait until the one that drains is back | a1 R/S zone:a Draining, a2 S/S zone:a Holding takes:a1
    | slots a1 Draining, a2 Holding
`,
  { spec: { maxConcurrent: 10 } },
);

it("a node says for which nodes it waits", () => {
  const nodes = "a1 R/S zone:a Draining, a2 S/S zone:a Holding takes:a1+b1";
  assert.equal(
    passOf({ nodes }).status.active[1]?.waitsFor,
    "no other node of zone a takes its pods until a1 is back in service",
  );
});

describe("a one-shot window", () => {
  const campaign = { cron: "0 0 11 * * *", timeZone: "UTC", handledThrough: at(-120 * MINUTE) };
  const closedAt = (nodes: string, handledThrough = campaign.handledThrough): boolean =>
    passOf({ nodes, spec: { window: { cron: campaign.cron } }, status: { campaign: { ...campaign, handledThrough } } })
      .status.campaign?.handledThrough === at(0);

  for (const nodes of ["a notready", "a noshadow", "a deleted", "a removed", "a zone:a takes:b1 onebyone"])
    it(`is over although an update is left that will not start by itself: ${nodes}`, () => assert.ok(closedAt(nodes)));

  for (const nodes of ["a crashed", "a obstacle", "a zone:a takes:b1"])
    it(`stays open for ${nodes}`, () => assert.ok(!closedAt(nodes)));

  it("fires again after the clock was far ahead for a moment", () => assert.ok(closedAt("a", "2099-01-01T00:00:00Z")));
});

for (const [value, managed] of [
  ["2.0.0", true],
  ["1.0.0", false],
] as const)
  it(`a node with version ${value} in its label is ${managed ? "" : "not "}managed`, () => {
    const labels = { "bottlerocket.aws/updater-interface-version": value };
    assert.equal(readNode({ metadata: { name: "a", labels } }, undefined).managed, managed);
  });

it("the reconciler knows on which node it runs: that comes last", () => {
  const env = collect(read("infra/manifests/reconciler/cronjob.yaml")[0], (one) =>
    one["name"] === "MY_NODE_NAME" ? JSON.stringify(one["valueFrom"]) : undefined,
  );
  assert.match(env.join(), /spec\.nodeName/);
});
