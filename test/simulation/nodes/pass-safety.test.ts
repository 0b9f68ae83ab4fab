/** The oracle of passes over nodes against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import type { Caller } from "../network.ts";
import { begin, createHistory, entry, type History, node, pod, policy, shadow, SHAPE, zone } from "./history.ts";
import type { Shape } from "../shape.ts";
import { createPassSafety } from "./pass-safety.ts";
import { POLICIES, SHADOWS } from "./shape.ts";

const [A, A2, B] = ["node-a-1", "node-a-2", "node-b-1"];
const LIST = "/apis/zonewise.dev/v1/nodeupdatepolicies?limit=500";

interface Tools extends History {
  readonly reconciler: () => Caller;
  /** By a node API. */
  readonly uncordon: (node: string) => void;
  readonly check: (verdict: "Success" | "Failure") => void;
  /** Passes in which nothing is written. */
  readonly idle: (passes: number) => void;
  /** A pass begins, and these seconds later it writes what it has decided. */
  readonly pass: (resource: string, object: KubeObject, reads?: boolean, refused?: string) => void;
}

/** Nodes on which alone the pods of their zone can run; the budget counts them. */
const ALONE: Shape = { ...SHAPE, ...(SHAPE.nodes && { nodes: { ...SHAPE.nodes, perZone: 1 } }) };
/** Two nodes in zone a. */
const PAIRS: Shape = { ...SHAPE, ...(SHAPE.nodes && { nodes: { ...SHAPE.nodes, perZone: 2 } }) };
/** Two nodes in each zone, and pods of zone b that can run on one of them alone. */
const CAPTIVE: Shape = {
  ...PAIRS,
  ...(PAIRS.nodes && { nodes: { ...PAIRS.nodes, bound: { by: "affinity", nodes: 1, zone: "node-b" } } }),
};

function judge(play: (tools: Tools) => void, shape: Shape = PAIRS): string {
  const violations: string[] = [];
  const history = createHistory(shape, (event, by) => oracle.onEvent(event, by));
  const { facts, now, store, put, wait } = history;
  const oracle = createPassSafety({
    shape,
    facts,
    now,
    store: () => store,
    isSteady: () => true,
    violated: (what) => void violations.push(what),
  });
  const reconciler = (): Caller => ({ actor: "reconciler-1", call: "x", sentAt: now() });
  begin(history);
  play({
    ...history,
    reconciler,
    uncordon(name) {
      const caller = { actor: "node-api-1", call: "x", sentAt: now() };
      put("nodes", node(name), caller);
      oracle.onRequest(caller, "PATCH", `/api/v1/nodes/${name}?timeout=9ms`, '{"spec":{"unschedulable":null}}');
    },
    check: (verdict) => oracle.onAnswer({ at: now(), expr: "nodes", verdict }),
    idle(passes) {
      for (let i = 0; i < passes; i++) {
        wait(10);
        oracle.onRequest(reconciler(), "GET", LIST);
      }
    },
    pass(resource, object, reads = true, refused = "") {
      wait(10);
      oracle.onRequest(reconciler(), "GET", LIST);
      if (reads) oracle.onAnswered(reconciler(), "GET", `/api/v1/nodes/${A}`, "", 200);
      if (refused) oracle.onAnswered(reconciler(), "GET", `/api/v1/persistentvolumes/${refused}`, "", 403);
      for (const name of reads ? [A, A2] : [])
        oracle.onRequest(reconciler(), "GET", `/api/v1/pods?fieldSelector=spec.nodeName%3D${name}&limit=500`);
      wait(5);
      put(resource, object, reconciler());
    },
  });
  return violations.join("; ");
}

const starting = (of: string, status: object = {}, spec: object = {}): KubeObject =>
  policy({ active: [entry(of, "Starting")], ...status }, spec);
const starts = (t: Tools, of = A): void => t.pass(POLICIES, starting(of));
/** The reboot of a staged node is wanted, beside others. */
function drains(t: Tools, ...others: readonly object[]): void {
  t.put(SHADOWS, shadow(A, "StagedAndPerformedUpdate"));
  t.put(POLICIES, policy({ active: [entry(A, "Holding"), ...others] }));
  t.pass(SHADOWS, shadow(A, "RebootedIntoUpdate"));
}
const frees = (t: Tools, before: object, deferred: readonly object[] = [], reads = true): void => {
  t.put(POLICIES, policy({ active: [before] }));
  t.pass(POLICIES, policy({ active: [], deferred }), reads);
};

type Case = readonly [name: string, play: (tools: Tools) => void, expected: RegExp, shape?: Shape];
/** Given up in a phase, for a reason. */
const givesUp = (t: Tools, phase: string, reason: string): void => {
  t.put(POLICIES, policy({ active: [entry(A, phase)] }));
  t.pass(POLICIES, policy({ active: [entry(A, phase, { ending: { reason } })] }));
};
/** The end of an attempt is written again, with so many more. */
function endsTwice(t: Tools, more: number): void {
  const ended = (count: number): KubeObject =>
    policy({
      active: [entry(A, "Staging", { ending: { reason: "StagingTimeout" } })],
      deferred: [{ node: A, count, reason: "StagingTimeout" }],
    });
  t.put(POLICIES, policy({ active: [entry(A, "Staging")] }));
  t.pass(POLICIES, ended(1));
  t.pass(POLICIES, ended(1 + more));
}
const lost = (t: Tools): void => t.put("nodes", node(A, { ready: false, ours: true }));
const checked = { checks: [{ name: "nodes" }] };
const startsChecked = (t: Tools): void => (
  t.put(POLICIES, policy({}, checked)),
  t.pass(POLICIES, starting(A, {}, checked))
);
/** A node is done; nothing of another one is known but that. */
const leavesSlot = (t: Tools): void => (
  t.put(POLICIES, policy({ active: [entry(B, "Monitoring")] })),
  t.put(SHADOWS, shadow(B, "Idle", { current_state: "Idle" })),
  t.wait(20),
  t.pass(POLICIES, policy({ active: [] }))
);
/** By a success that the status has. */
function startsAfter(t: Tools, time: number): void {
  const results = [{ name: "a", lastTime: new Date(time).toISOString() }];
  t.check("Success");
  t.put(POLICIES, policy({ checks: { results } }, checked));
  t.pass(POLICIES, starting(A, {}, checked));
}
/** Open, while the first node has no place for its pods. */
const oneShot = (): KubeObject =>
  policy({ campaign: {}, windowOpen: true, waiting: [{ node: A, reason: "NoPlaceForPods" }] });
/** Node b drains while a starts. */
const besideB = (t: Tools): void => (
  t.put(POLICIES, policy({ active: [entry(B, "Draining")] }, FREE)),
  t.pass(POLICIES, policy({ active: [entry(B, "Draining"), entry(A, "Starting")] }, FREE))
);
const FREE = { zonesInOrder: false, maxConcurrent: 2 };
const holds = (t: Tools, phase: string, isFirst = true): void => {
  const staged = (waitsFor?: string): KubeObject => {
    const active = [entry(A, "Holding", waitsFor === undefined ? {} : { waitsFor }), entry(A2, phase)];
    return policy({ active: isFirst ? active : active.toReversed() });
  };
  t.put(POLICIES, staged());
  t.pass(POLICIES, staged(`ns/ingester-zone-a-0 of ${A} has no place: it fits on ${A2} (being updated) alone`));
};
/** Node a-2 has the last place of a pod of a-1, which is drained. */
const takesPlace = (t: Tools): void => (
  t.put(POLICIES, policy({ active: [entry(A, "Draining")] }, { maxConcurrent: 2 })),
  t.pass(POLICIES, policy({ active: [entry(A, "Draining"), entry(A2, "Starting")] }, { maxConcurrent: 2 }))
);
const CASES: readonly Case[] = [
  ["a start", starts, /^$/],
  [
    "a start of a node that is not Ready",
    (t) => (t.put("nodes", node(A, { ready: false })), starts(t)),
    /that it is not Ready$/,
  ],
  [
    "a start of a node that somebody else works on",
    (t) => (t.put("nodes", node(A, { theirs: ["GracefulNodeShutdownInProgress"] })), starts(t)),
    /^reconciler-1 starts node-a-1, and has read that it is worked on by somebody else$/,
  ],
  [
    "a start of a node that has lost its label",
    (t) => (t.put("nodes", node(A, { managed: false })), starts(t)),
    /has lost its label/,
  ],
  [
    "a start by a policy that cannot be read",
    (t) => (
      t.put(POLICIES, policy({}, { maxConcurrent: "many" })),
      t.pass(POLICIES, starting(A, {}, { maxConcurrent: "many" }))
    ),
    /its policy cannot be read/,
  ],
  [
    "a start by a policy whose limit is written as text",
    (t) => (
      t.put(POLICIES, policy({}, { maxConcurrent: "1" })),
      t.pass(POLICIES, starting(A, {}, { maxConcurrent: "1" }))
    ),
    /^$/,
  ],
  [
    "a start while frozen",
    (t) => (t.put(POLICIES, policy({ frozen: { id: "x" } })), t.pass(POLICIES, starting(A, { frozen: { id: "x" } }))),
    /policy is frozen/,
  ],
  [
    "a start after a freeze was cleared",
    (t) => (t.put(POLICIES, policy({ frozen: { id: "x" } }, { unfreeze: "x" })), starts(t)),
    /^$/,
  ],
  [
    "a start beside another one",
    (t) => {
      t.put(POLICIES, policy({ active: [entry(A2, "Staging")] }));
      t.pass(POLICIES, policy({ active: [entry(A2, "Staging"), entry(A, "Starting")] }));
    },
    /node-a-2, node-a-1 are out of service or come to it: 1 may be/,
  ],
  [
    "a start beside a node that was released and is not back",
    (t) => {
      t.put("nodes", node(A2, { ours: true }));
      t.pass(POLICIES, starting(A, { deferred: [{ node: A2, reason: "ReleasedByHand" }] }));
    },
    /node-a-2, node-a-1 are out of service/,
  ],
  [
    "a start of a node that two policies select",
    (t) => (t.put(POLICIES, policy({}, {}, "rival")), starts(t)),
    /rival selects it, too/,
  ],
  ["a drain", drains, /^$/],
  [
    "a start without a list of pods",
    (t) => t.pass(POLICIES, starting(A), false),
    /starts node-a-1, whose pods it has not listed/,
  ],
  [
    "a drain of the only node that takes pods",
    (t) => (t.put("nodes", node(A2, { cordoned: true })), t.put("nodes", node(B, { ready: false })), drains(t)),
    /no other node takes ingester-zone-a-0/,
  ],
  [
    "a drain without another place in the zone",
    (t) => (t.put("nodes", node(A2, { cordoned: true })), drains(t)),
    /has no other place/,
  ],
  ["a drain beside one that is under way", (t) => drains(t, entry(A2, "Draining")), /has no other place/],
  ["a drain beside one that is back", (t) => drains(t, entry(A2, "Monitoring")), /^$/],
  [
    "a drain that its budget denies",
    (t) => (t.put("pods", pod("ingester-zone-b-0", B, false)), drains(t)),
    /the budget keeps ingester-zone-a-0 on it, as ingester-zone-b-0 is missing/,
  ],
  [
    "a drain while a pod of another zone is missing that comes up elsewhere",
    (t) => (t.put("pods", pod("ingester-zone-b-0", A, false)), drains(t)),
    /^$/,
  ],
  ["a pass that frees a slot", (t) => frees(t, entry(A, "Monitoring")), /^$/],
  [
    "one of a node that is cordoned by us",
    (t) => (t.put("nodes", node(A, { ours: true })), frees(t, entry(A, "Recovering"))),
    /which is cordoned by us/,
  ],
  [
    "one of a node that is not Ready after its deadline",
    (t) => (
      t.put("nodes", node(A, { ready: false })),
      frees(t, entry(A, "Recovering"), [{ node: A, reason: "RecoveryTimeout" }])
    ),
    /which is not Ready/,
  ],
  [
    "one of a node without its shadow, for no reason",
    (t) => (t.put(SHADOWS, shadow(A, "Idle")), t.remove(SHADOWS, shadow(A, "Idle")), frees(t, entry(A, "Staging"))),
    /may not have its update/,
  ],
  [
    "one of a node that is gone, and that it has not looked for",
    (t) => (t.remove("nodes", node(A)), frees(t, entry(A, "Staging"), [], false)),
    /^reconciler-1 frees the slot of node-a-1, for which it has not looked$/,
  ],
  [
    "one of a node that is gone",
    (t) => (t.remove("nodes", node(A, { ours: true })), frees(t, entry(A, "Staging"))),
    /^$/,
  ],
  [
    "a failure after the reboot that does not count",
    (t) => {
      t.put("nodes", node(A, { boot: "2" }));
      t.put(POLICIES, policy({ active: [entry(A, "Rebooting")] }));
      t.pass(POLICIES, policy({ active: [entry(A, "Recovering", { ending: { reason: "UpdateFailed" } })] }));
    },
    /does not count the failure of node-a-1/,
  ],
  [
    "a failure that counts twice",
    (t) =>
      t.pass(POLICIES, policy({ failed: [1, 2].map(() => ({ node: A, startedAt: "x", reason: "UpdateFailed" })) })),
    /counts the failure of node-a-1 twice/,
  ],
  ["an attempt that ends", (t) => endsTwice(t, 0), /^$/],
  ["an attempt that counts again", (t) => endsTwice(t, 1), /counts the same attempt at node-a-1 again/],
  [
    "an end of a freeze that nobody has asked for",
    (t) => (
      t.put(POLICIES, policy({ frozen: { id: "x" } }, { unfreeze: "w" })),
      t.pass(POLICIES, policy({}, { unfreeze: "w" }))
    ),
    /clears the freeze of default/,
  ],
  [
    "an end of our cordon on a node that is not Ready",
    (t) => (t.put("nodes", node(A, { ours: true, ready: false })), t.pass("nodes", node(A, { ready: false }))),
    /uncordons node-a-1, which is not Ready/,
  ],
  [
    "one that has undone no cordon of ours",
    (t) => t.uncordon(A),
    /^node-api-1 uncordons node-a-1, whose cordon is not ours$/,
  ],
  ["one that has", (t) => (t.put("nodes", node(A, { ours: true })), t.uncordon(A)), /^$/],
  [
    "one of such a node that a person has released, as its record goes",
    (t) => {
      t.put("nodes", node(A, { ours: true }));
      t.put(SHADOWS, shadow(A, "Idle", { rebooting: { boot_id: "1" } }));
      t.put(POLICIES, policy({ deferred: [{ node: A, reason: "ReleasedByHand" }] }));
      t.pass(POLICIES, policy());
      t.put("nodes", node(A), t.reconciler());
    },
    /^$/,
  ],
  [
    "one of a node that is about to reboot",
    (t) => {
      t.put("nodes", node(A, { ours: true }));
      t.put(SHADOWS, shadow(A, "Idle", { rebooting: { boot_id: "1" } }));
      t.pass("nodes", node(A));
    },
    /has read that it is about to reboot/,
  ],
  [
    "one of a node that has rebooted",
    (t) => {
      t.put("nodes", node(A, { ours: true, boot: "2" }));
      t.put(SHADOWS, shadow(A, "Idle", { rebooting: { boot_id: "1" } }));
      t.pass("nodes", node(A, { boot: "2" }));
    },
    /^$/,
  ],
  [
    "a limit that is not reached",
    (t) => t.pass(POLICIES, policy({ waiting: [{ node: A, reason: "LimitReached" }] })),
    /a slot is free/,
  ],
  [
    "a limit that a node takes on which somebody else works",
    (t) => {
      t.put("nodes", node(A2, { theirs: ["DrainInProgress"] }));
      t.pass(POLICIES, policy({ waiting: [{ node: A, reason: "LimitReached" }] }));
    },
    /^$/,
  ],
  ["a drain that is given up", (t) => givesUp(t, "Draining", "DrainTimeout"), /^$/],
  [
    "a drain that is given up on a node that is lost",
    (t) => (lost(t), givesUp(t, "Draining", "DrainTimeout")),
    /^reconciler-1 gives up node-a-1 as DrainTimeout, and has read that it is not Ready$/,
  ],
  ["a label that is lost before the reboot", (t) => (lost(t), givesUp(t, "Staging", "NoLongerManaged")), /^$/],
  [
    "a label that is lost in the reboot",
    (t) => (lost(t), givesUp(t, "Rebooting", "NoLongerManaged")),
    /gives up node-a-1 as NoLongerManaged, and has read that it is not Ready/,
  ],
  [
    "a slot that is freed as nobody hears of its node",
    (t) => frees(t, entry(A, "Returning"), [{ node: A, reason: "ReturnTimeout" }]),
    /^reconciler-1 frees the slot of node-a-1, which waits for a person after its ReturnTimeout$/,
  ],
  [
    "a slot of a node without a label that may reboot at any moment",
    (t) => (
      t.put(SHADOWS, shadow(A, "Idle", { current_state: "ErrorReset", rebooting: { boot_id: "1" } })),
      frees(t, entry(A, "Recovering", { ending: { reason: "x" } }), [{ node: A, reason: "NoLongerManaged" }])
    ),
    /^reconciler-1 frees the slot of node-a-1, which has announced its reboot$/,
  ],
  ["a start after its check has succeeded", (t) => (t.check("Success"), startsChecked(t)), /^$/],
  [
    "a start after its check has failed",
    (t) => (t.check("Failure"), t.check("Failure"), t.check("Failure"), startsChecked(t)),
    /its check has failed 3 times/,
  ],
  [
    "a start after its check has failed, by a policy that has none any more",
    (t) => {
      for (let i = 0; i < 3; i++) t.check("Failure");
      t.put(POLICIES, policy({}, { checks: [] }));
      t.pass(POLICIES, starting(A, {}, { checks: [] }));
    },
    /^$/,
  ],
  ["a start before its check has been answered", startsChecked, /its check has not succeeded since a node last left/],
  [
    "a start by an answer from before another node left its slot",
    (t) => (t.check("Success"), leavesSlot(t), startsChecked(t)),
    /its check has not succeeded since a node last left/,
  ],
  [
    "a start by an answer since another node left its slot",
    (t) => (leavesSlot(t), t.check("Success"), startsChecked(t)),
    /^$/,
  ],
  [
    "a start by an answer from a time that is to come",
    (t) => startsAfter(t, t.now() + 300_000),
    /its check has not succeeded since a node last left/,
  ],
  ["a start by an answer of just now", (t) => startsAfter(t, t.now()), /^$/],
  [
    "a start of a node whose pods have a volume that may not be read",
    (t) => t.pass(POLICIES, starting(A), true, "ingester-zone-a"),
    /^reconciler-1 starts node-a-1, and may not read its pods' volume$/,
  ],
  [
    "a start of a node without pods of such a volume",
    (t) => t.pass(POLICIES, starting(A), true, "ingester-zone-b"),
    /^$/,
  ],
  [
    "a start of a node with the only pod of the node API",
    (t) => (t.put("pods", pod("brupop-apiserver", A)), t.wait(20), starts(t)),
    /the only pod of the node API would come back to it alone/,
    ALONE,
  ],
  [
    "a start of a node whose pod of the node API has another place",
    (t) => (t.put("pods", pod("brupop-apiserver", A)), t.wait(20), starts(t)),
    /^$/,
  ],
  ["a start beside another zone whose pods have other places", besideB, /^$/],
  ["a start beside another zone whose pods have none", besideB, /would wait for each other's node/, ALONE],
  ["a start beside a zone whose pods alone have none", besideB, /would wait for each other's node/, CAPTIVE],
  [
    "a start beside such a zone while a pod of its own zone is missing",
    (t) => (t.put("statefulsets.apps", zone("ingester-zone-a", 2)), t.wait(60), besideB(t)),
    /^$/,
    CAPTIVE,
  ],
  [
    "a start of a node whose pods come back to it alone, and that somebody has cordoned",
    (t) => (t.put("nodes", node(A, { cordoned: true })), starts(t)),
    /could not come back to this one/,
    ALONE,
  ],
  [
    "a start with more pods that come back to their node alone than the budget allows",
    (t) => (t.put("pods", pod("ingester-zone-a-1", A)), t.wait(20), starts(t)),
    /ingester-zone-a-0, ingester-zone-a-1 come back to it alone, and the budget allows 1/,
    ALONE,
  ],
  [
    "a start with so many pods that have another place",
    (t) => (t.put("pods", pod("ingester-zone-a-1", A)), starts(t)),
    /^$/,
  ],
  [
    "a start on the last place of a pod",
    (t) => (t.wait(90), takesPlace(t)),
    /^reconciler-1 starts node-a-2, and has read that ingester-zone-a-0 of node-a-1 has no place but on it$/,
  ],
  ["a place that is a staged node", (t) => holds(t, "Holding"), /says that ingester-zone-a-0 of node-a-1 has no place/],
  ["a place that is being drained", (t) => holds(t, "Draining"), /^$/],
  ["a place that may go on in the same pass", (t) => holds(t, "Holding", false), /^$/],
  [
    "a drain that a frozen policy goes on with",
    (t) => (t.put(POLICIES, policy({ frozen: { id: "x" }, active: [entry(A, "Draining")] })), t.idle(4)),
    /^node-a-1 is being drained, and default is frozen, after 2 passes of reconciler-1$/,
  ],
  [
    "a drain of a node that is lost, by a frozen policy",
    (t) => (lost(t), t.put(POLICIES, policy({ frozen: { id: "x" }, active: [entry(A, "Draining")] })), t.idle(4)),
    /^$/,
  ],
  [
    "a shadow that no policy has",
    (t) => (t.remove(POLICIES, policy()), t.put(SHADOWS, shadow(A, "StagedAndPerformedUpdate")), t.idle(4)),
    /^node-a-1 wants StagedAndPerformedUpdate, and no policy has it, after 2 passes of reconciler-1$/,
  ],
  [
    "a shadow that no policy has, and that nobody can read",
    (t) => (t.remove(POLICIES, policy()), t.put(SHADOWS, shadow(A, "Asleep")), t.idle(4)),
    /^$/,
  ],
  [
    "a shadow that no policy has, and that goes",
    (t) => {
      const left = shadow(A, "StagedAndPerformedUpdate");
      t.remove(POLICIES, policy());
      t.put(SHADOWS, { ...left, metadata: { ...left.metadata, deletionTimestamp: "x" } });
      t.idle(4);
    },
    /^$/,
  ],
  ["a shadow of a policy", (t) => (t.put(SHADOWS, shadow(A, "StagedAndPerformedUpdate")), t.idle(4)), /^$/],
  [
    "a one-shot that waits for a person's cordon",
    (t) => (t.put("nodes", node(A2, { cordoned: true })), t.put(POLICIES, oneShot()), t.idle(4)),
    /^default waits for people's cordons, and its one-shot is not over/,
  ],
  [
    "a one-shot that waits for our cordon",
    (t) => (t.put("nodes", node(A2, { ours: true })), t.put(POLICIES, oneShot()), t.idle(4)),
    /^$/,
  ],
  [
    "a reason that is not true",
    (t) => t.pass(POLICIES, policy({ waiting: [{ node: A, reason: "NodeNotReady" }] })),
    /says that node-a-1 waits as NodeNotReady, and has read that it is Ready/,
  ],
];

describe("the oracle of passes over nodes", () => {
  for (const [name, play, expected, shape] of CASES)
    it(`${expected.source === "^$" ? "accepts" : "condemns"} ${name}`, () => {
      const found = judge(play, shape);
      assert.match(found, expected);
      assert.doesNotMatch(found, /;/, "one violation");
    });

  it("accepts what was so only after the pass began", () => {
    const found = judge((t) => {
      t.pass(SHADOWS, shadow(B, "Idle"));
      t.put("nodes", node(A, { ready: false }));
      t.put(POLICIES, starting(A), t.reconciler());
    });
    assert.equal(found, "");
  });
});
